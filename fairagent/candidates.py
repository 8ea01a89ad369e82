"""Candidate selection: which of the lists that the loop retrieved the re-ranker sees."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from fairagent.measures import min_max
from fairagent.rerank.base import ordered
from fairagent.types import Ranking, Step

ListPolicy = Literal["best", "last", "union"]


def select(policy: ListPolicy, steps: Sequence[Step]) -> Ranking:
    """The candidates for the re-ranker.

    `best`: the last accepted list, the one with the smallest gap since the loop began (topic words, which come before,
    may have raised it). `last`: the list of the last query tried, even if its gap did not fall. `union`: all accepted
    lists.

    The union holds the first list, so to re-rank it by the user's own query alone gives the first list back.
    """
    accepted = [step.ranking for step in steps if step.accepted]
    if policy == "union":
        return union(accepted)
    return accepted[-1] if policy == "best" else steps[-1].ranking


def union(rankings: Sequence[Ranking]) -> Ranking:
    """All documents of the rankings, scored by the mean of their min-max scores (0 where a ranking lacks one)."""
    total: dict[str, float] = {}
    for ranking in rankings:
        for id, score in zip(ranking.ids, min_max(ranking.scores).tolist(), strict=True):
            total[id] = total.get(id, 0.0) + score / len(rankings)
    return ordered(tuple(total), np.array(list(total.values())), len(total))
