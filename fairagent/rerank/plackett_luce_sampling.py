"""Plackett-Luce rankings: from an engine's scores to chances, and exact draws (Diaz et al. 2020; Fair-RAG, Eq. 2).

p(d | above) = exp(z_d) / sum of exp(z) over the documents not yet placed, with z = s^alpha and s the scores on [1, 2].
alpha = 0 makes all orders equally likely; the larger alpha, the closer to the engine's order. z grows without bound
(2^alpha), so it travels as its logarithm and exp(z) is never formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import DataError, UsageError
from fairagent.types import FloatArray

Compat = Literal["authors"] | None
"""None: the paper's normalization; "authors": that of its code, which shifts negative scores twice."""

DECISIVE = 100.0
"""A difference in z that no waiting time makes up for: in doubles its logarithm lies between about -40 and 4."""


def sampler_log_scores(scores: FloatArray, alpha: float, compat: Compat = None) -> FloatArray:
    """The ln z of each document, (n,): alpha ln((score - min) / (max - min) + 1); 0, so uniform, for equal scores.

    `compat="authors"`: where min < 0 the range is [1 - min / (max - min), 2 - min / (max - min)] instead of [1, 2].
    (For equal scores the authors' code has 0 / 0; they are uniform here in both.)
    Raises UsageError where alpha is negative or not finite, DataError where a score is not finite.

    >>> np.exp(sampler_log_scores(np.array([3.0, 1.0, 2.0]), alpha=2)).round(6).tolist()
    [4.0, 1.0, 2.25]
    """
    if not 0 <= alpha < np.inf:
        raise UsageError(f"Plackett-Luce: alpha is a finite number of 0 or more, not {alpha}")
    if not np.isfinite(scores).all():
        raise DataError("Plackett-Luce: a score is no finite number")
    if not len(scores) or scores.min() == scores.max():
        return np.zeros(len(scores))
    low, width = scores.min(), scores.max() - scores.min()
    normalized = (scores - low) / width + 1
    if compat == "authors" and low < 0:
        normalized -= low / width
    return np.asarray(alpha * np.log(normalized))


def sample_rankings(log_scores: FloatArray, k: int, rng: np.random.Generator, draws: int = 1) -> NDArray[np.intp]:
    """Independent rankings of the best min(k, n) documents, (draws, k), as indices: exactly Plackett-Luce.

    >>> sample_rankings(np.log([256.0, 1.0, 100.0]), k=2, rng=np.random.default_rng(0)).tolist()
    [[0, 2]]
    """
    waits = rng.standard_exponential(size=(draws, len(log_scores)))
    with np.errstate(divide="ignore"):
        return race(log_scores, k, np.log(waits, out=waits))


def race(log_scores: FloatArray, k: int, log_waits: FloatArray) -> NDArray[np.intp]:
    """The first min(k, n) arrivals of each race, (draws, k), where document d arrives after wait / exp(z_d).

    `log_waits` (draws, n) are logarithms of exponential waiting times (the negatives of Gumbel noise): then the order
    of arrival is Plackett-Luce, and so are its first k places.

    >>> race(np.log([2.0, 1.0]), 2, np.array([[0.0, 0.0], [0.5, -0.6]])).tolist()
    [[0, 1], [1, 0]]
    """
    arrivals = log_waits - _levels(log_scores)
    if k >= arrivals.shape[1]:
        return np.argsort(arrivals, axis=1)
    first = np.argpartition(arrivals, k, axis=1)[:, :k]
    order = np.argsort(np.take_along_axis(arrivals, first, axis=1), axis=1)
    return np.take_along_axis(first, order, axis=1)


def placement_log_probabilities(log_scores: FloatArray, ranking: Sequence[int]) -> FloatArray:
    """The ln p(d | above) at each rank of `ranking`, (k,), indices of distinct documents; their sum is the ranking's.

    >>> np.exp(placement_log_probabilities(np.zeros(3), [2, 0])).round(6).tolist()
    [0.333333, 0.5]
    """
    left = np.ones(len(log_scores), dtype=bool)
    found = np.zeros(len(ranking))
    for rank, document in enumerate(ranking):
        top = log_scores[left].max()
        with np.errstate(over="ignore", invalid="ignore"):
            # z - max z, without forming either: both may be beyond the largest double.
            below = np.where(log_scores == top, 0.0, np.exp(top) * np.expm1(log_scores - top))
        found[rank] = below[document] - np.log(np.exp(below[left]).sum())
        left[document] = False
    return found


def _levels(log_scores: FloatArray) -> FloatArray:
    """The z with gaps between neighbors cut to DECISIVE: small numbers in which no noise is rounded away.

    z itself may be 1e8 or infinite; adding noise of size 1 to that would order equal documents by their place.
    """
    distinct, which = np.unique(log_scores, return_inverse=True)
    with np.errstate(over="ignore", invalid="ignore"):
        gaps = np.diff(np.exp(distinct))
    # fmin takes DECISIVE where both neighbors are infinite and the gap is a nan.
    return np.concatenate([[0.0], np.cumsum(np.fmin(gaps, DECISIVE))])[which]
