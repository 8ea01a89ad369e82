"""The objective of a list: J = R - fairness * G, its relevance less the price of its gap.

R is the discounted mean of the documents' estimated relevance: 1 for the best document of the engine's own list, 0 for
its last. G, the gap, is a sum over dimensions, each by its importance, of two divergences of exposure from its target:
how the known groups share what they have, and how much of all exposure is left to documents without a label, which is
left out where these are ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairagent.measures.exposure import LARGEST, SMOOTHING, TERMS
from fairagent.types import FloatArray


def objective(relevance: FloatArray, gap: FloatArray, fairness: float) -> FloatArray:
    """J of lists with these relevances R (k,), 0 to 1, and gaps G (k,), 0 or more; `fairness` is what a gap of 1 costs.

    >>> objective(np.array([0.9, 0.8]), np.array([0.3, 0.1]), 1.0).round(6).tolist()
    [0.6, 0.7]
    """
    return np.asarray(relevance - fairness * gap)


def estimated_relevance(scores: FloatArray, first: float, last: float) -> FloatArray:
    """Scores (n,) as relevance, `first` and `last` being the scores of the engine's best and last document: 1 and 0.

    Where these are equal, the scores say nothing, and every document counts 1.

    >>> estimated_relevance(np.array([-3.0, -4.0, -5.0]), -3.0, -5.0).tolist()
    [1.0, 0.5, 0.0]
    """
    return np.ones(len(scores)) if first <= last else np.asarray((scores - last) / (first - last))


def list_relevance(relevance: FloatArray, weights: FloatArray) -> FloatArray:
    """R of lists whose documents have this `relevance` (k, n), at ranks of these `weights` (n,)."""
    return np.asarray(relevance @ weights / weights.sum())


@dataclass(frozen=True, slots=True, eq=False)
class GapTarget:
    """What one dimension should get: the known groups `target` (g,), documents without a label `unlabeled` (u,).

    The first adds up to 1, the second is of all exposure: one share for all of them, or two, for documents that cannot
    have a label and those that can. Unless they count (`counts`), they have no part in the gap.
    """

    target: FloatArray
    unlabeled: FloatArray
    counts: bool = True
    importance: float = 1.0


class GapColumns:
    """The gap of exposures whose columns are those of all dimensions side by side, c in all.

    Of each dimension they are the known groups, then documents without a label (one column or two), then all that have
    one. `part` (c,) says which divergence a column belongs to: two a dimension. `divergence` is one of `TERMS`.
    """

    def __init__(self, aims: Sequence[GapTarget], divergence: str) -> None:
        targets, importance = [], []
        for aim in aims:
            targets += [aim.target, np.append(aim.unlabeled, 1 - aim.unlabeled.sum())]
            importance += [aim.importance, aim.importance * aim.counts]
        sizes = np.array([len(target) for target in targets], dtype=np.intp)
        self.part = np.repeat(np.arange(len(sizes)), sizes)
        self.member = np.eye(len(sizes))[self.part]
        self._scale = 1 + SMOOTHING * sizes[self.part]
        self._target = (np.concatenate(targets or [np.zeros(0)]) + SMOOTHING) / self._scale
        self._terms, self._importance = TERMS[divergence], np.array(importance)[self.part]
        # What columns without exposure add up to, and what a part without any is more than that: the largest there is.
        self.bare = self._importance * self._terms(np.asarray(SMOOTHING / self._scale), self._target)
        self._missing = np.array(importance) * LARGEST[divergence] - self.bare @ self.member

    def terms(self, exposure: FloatArray, mass: FloatArray, columns: NDArray[np.intp] | slice) -> FloatArray:
        """What `exposure` in these `columns` adds to `bare`; `mass` is that of the part of each, all (..., k)."""
        share = exposure / np.where(mass > 0, mass, np.inf)
        smoothed = (share + SMOOTHING) / self._scale[columns]
        terms = self._importance[columns] * self._terms(smoothed, self._target[columns]) - self.bare[columns]
        return np.asarray(terms)

    def missing(self, mass: FloatArray) -> FloatArray:
        """What parts without exposure add, (...,); `mass` is (..., parts)."""
        return np.asarray((mass <= 0) @ self._missing)

    def gaps(self, exposure: FloatArray) -> FloatArray:
        """The gap of each of the exposures (..., c), 0 or more."""
        mass = exposure @ self.member
        terms = self.terms(exposure, mass[..., self.part], np.arange(len(self.part))).sum(axis=-1)
        return np.asarray(np.maximum(self.bare.sum() + terms + self.missing(mass), 0.0))


def gap_rows(*dimensions: tuple[FloatArray, FloatArray]) -> FloatArray:
    """The rows of `GapColumns`, (n, c), of documents with these known groups (n, g) and unlabeled (n, u) in each."""
    return np.column_stack([part for known, none in dimensions for part in (known, none, known.sum(axis=1))])
