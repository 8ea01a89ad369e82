"""Which documents' labels would help most: those that the labeler is unsure of and that readers see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairagent.measures import LOG2_MAX2
from fairagent.types import FloatArray, Ranking
from fairagent.types.common import counted

DEPTH = 100
"""Of the engine's list for each topic: what a re-ranker may bring up."""


@dataclass(frozen=True, slots=True)
class Helpful:
    """A document to be asked about, and why.

    `uncertainty` is 0 where its group is certain, 1 where all are as likely; `lists` are the topics in whose list it
    is, `weight` what it counts for: its attention there, or how much it is like the others.
    """

    id: str
    uncertainty: float
    weight: float
    lists: int

    @property
    def why(self) -> str:
        """In words."""
        seen = f"in the lists of {counted(self.lists, 'topic')}" if self.lists else "like many others"
        return f"uncertainty {self.uncertainty:.2f}, {seen}"


def uncertainty(chances: FloatArray) -> FloatArray:
    """The entropy of the groups' chances (n, g), as a share of the largest, (n,).

    >>> uncertainty(np.array([[0.5, 0.5], [1.0, 0.0]])).tolist()
    [1.0, 0.0]
    """
    terms = np.where(chances > 0, -chances * np.log(np.where(chances > 0, chances, 1.0)), 0.0)
    share: FloatArray = np.abs(terms.sum(axis=1)) / np.log(chances.shape[1])
    return share


def most_helpful(
    ids: Sequence[str],
    chances: FloatArray | None,
    lists: Mapping[str, Ranking],
    vectors: FloatArray | None = None,
    count: int = 20,
) -> list[Helpful]:
    """The `count` of the documents `ids` with the largest product of uncertainty and weight, the largest first.

    `chances` (n, g) are what is made of them so far; None: nothing is, and all are as uncertain. The weight is the
    attention that the engine's `lists` (topic -> ranking) give a document; where there are none, the mean product of
    its vector (n, d) with all. Documents that neither tells of are last, in their order.
    """
    place = {id: number for number, id in enumerate(ids)}
    weight, seen = np.zeros(len(ids)), np.zeros(len(ids), np.intp)
    for ranking in lists.values():
        for id, attention in zip(ranking.ids, LOG2_MAX2(len(ranking)).tolist(), strict=True):
            if id in place:
                weight[place[id]] += attention
                seen[place[id]] += 1
    if not lists and vectors is not None and len(ids):
        weight = np.maximum(vectors @ vectors.mean(axis=0), 0.0)
    unsure = np.ones(len(ids)) if chances is None else uncertainty(chances)
    order = np.argsort(-(unsure * weight), kind="stable")[:count]
    return [Helpful(ids[at], float(unsure[at]), float(weight[at]), int(seen[at])) for at in order.tolist()]
