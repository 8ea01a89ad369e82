"""What would lift a document into the served list, all else being equal: relevance, weight on fairness, or its group.

A counterfactual of the re-ranker: the candidates stay as they are, and the guard, which may serve the engine's own
list, is left out. Where another group would lift a document, its group, and not its text, keeps it out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fairagent.errors import UsageError
from fairagent.search.agent import FairAgent
from fairagent.search.rerank.base import Pool, Reranker, pool_of, reranked, with_fairness
from fairagent.search.run import SearchRun
from fairagent.types import Group, Ranking
from fairagent.types.change import ordinal

TRIED = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""The weights on fairness that are tried."""


@dataclass(frozen=True, slots=True)
class Lift:
    """What would bring document `id` into the first n.

    `rank` is where it is served (None: it is not), `place` its place among the candidates by relevance, 1 first, and
    `needed` the place, `place` or a better one, from which it would be served with what it is now (None: not even from
    the first). `fairness` are the weights of `TRIED` under which it would be served, `groups` the labels.
    """

    id: str
    rank: int | None
    place: int
    needed: int | None
    fairness: tuple[float, ...]
    groups: tuple[Group, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """The same for people.

        >>> for sentence in Lift("d7", None, 6, 5, (2.0, 4.0), (Group("gender", "female"),)).sentences:
        ...     print(sentence)
        It is not in the list; by relevance it is 6th of the candidates.
        It would be from the 5th place by relevance.
        It would be at a fairness of 2 or 4 (tried: 0 to 8).
        It would be as a document of female (gender): its group, and not its text, keeps it out.
        """
        if self.rank is not None:
            return (f"It is {ordinal(self.rank)} in the list; by relevance it is {ordinal(self.place)}.",)
        where = f"It is not in the list; by relevance it is {ordinal(self.place)} of the candidates."
        never = "It would not be even if it were the most relevant."
        place = never if self.needed is None else f"It would be from the {ordinal(self.needed)} place by relevance."
        tried = f"(tried: {TRIED[0]:g} to {TRIED[-1]:g})"
        weights = " or ".join(f"{weight:g}" for weight in self.fairness)
        fairness = f"It would be at a fairness of {weights} {tried}." if weights else f"No fairness lifts it {tried}."
        groups = " or ".join(map(str, self.groups))
        kept_out = f"It would be as a document of {groups}: its group, and not its text, keeps it out."
        return (where, place, fairness, *([kept_out] if groups else []))


def lift(agent: FairAgent, run: SearchRun, id: str) -> Lift:
    """What would lift `id`, of the search `run` by `agent` (`run = agent.find(query, n)`).

    Raises UsageError for a document that no search has retrieved, and for an agent without a re-ranker.
    """
    reranker, candidates, meter = agent.reranker, run.loop.candidates, run.meter
    if reranker is None:
        raise UsageError("without a re-ranker the engine's order decides, and nothing but relevance lifts a document")
    if id not in candidates.ids:
        raise UsageError(
            f"document {id!r} is none of the {len(candidates)} candidates: no search has retrieved it, and no order "
            "can lift it; `depth` says how many each query retrieves"
        )
    pool = pool_of(run.query, candidates, meter, agent.settings.n, run.loop.unit)
    at = candidates.ids.index(id)

    def serves(changed: Pool, by: Reranker = reranker) -> bool:
        return id in reranked(by, changed, agent.settings.rerank).ids

    served = reranked(reranker, pool, agent.settings.rerank).ids
    needed = at + 1 if id in served else _needed(pool, at, serves)
    groups = (
        Group(target.dimension, label)
        for dimension, target in enumerate(meter.targets)
        for column, label in enumerate(target.labels, start=1)
        if pool.memberships[dimension][at, column] < 1 and serves(_of_group(pool, at, dimension, column))
    )
    try:
        weights = tuple(weight for weight in TRIED if serves(pool, with_fairness(reranker, weight)))
    except UsageError:
        weights = ()
    return Lift(id, served.index(id) + 1 if id in served else None, at + 1, needed, weights, tuple(groups))


def _needed(pool: Pool, at: int, serves: Callable[[Pool], bool]) -> int | None:
    """The lowest place by relevance, 1 first, from which the candidate `at` is served; None where not even the first.

    It is as relevant there as the candidate whose place it takes. Bisected: a better place never does harm.
    """
    low, high = 0, at
    if not serves(_at_place(pool, at, 0)):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if serves(_at_place(pool, at, middle)) else (low, middle)
    return low + 1


def _at_place(pool: Pool, at: int, place: int) -> Pool:
    """The pool in which the candidate `at` stands at a better `place`, 0 first, with the score of the one there."""
    ids, scores = pool.ranking.ids, pool.ranking.scores
    order = [*range(place), at, *(i for i in range(place, len(ids)) if i != at)]
    moved = np.concatenate([scores[: place + 1], scores[place:at], scores[at + 1 :]])
    return pool.of(Ranking(tuple(ids[i] for i in order), moved))


def _of_group(pool: Pool, at: int, dimension: int, column: int) -> Pool:
    """The pool in which the candidate `at` has one label alone in a dimension."""
    memberships, unlabeled = list(pool.memberships), list(pool.unlabeled)
    memberships[dimension] = memberships[dimension].copy()
    memberships[dimension][at] = np.eye(memberships[dimension].shape[1])[column]
    if unlabeled and (one := unlabeled[dimension]):
        rows = one.rows.copy()
        rows[at] = 0
        unlabeled[dimension] = replace(one, rows=rows)
    return replace(pool, memberships=tuple(memberships), unlabeled=tuple(unlabeled))
