"""Plackett-Luce rankings: from an engine's scores to chances, and exact draws (Diaz et al. 2020; Fair-RAG, Eq. 2).

p(d | above) = exp(z_d) / sum of exp(z) over the documents not yet placed, with z = s^alpha and s the scores on [1, 2].
alpha = 0 makes all orders equally likely; the larger alpha, the closer to the engine's order. z grows without bound
(2^alpha), so it travels as its logarithm and exp(z) is never formed.
"""

import hashlib
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairagent.errors import DataError, UsageError
from fairagent.retrieve.races import WIDEST, arrivals, bounded, earliest, thinned
from fairagent.types import FloatArray

Compat = Literal["authors"] | None
"""None: the paper's normalization; "authors": that of its code, which shifts negative scores twice."""

DEEP = 25
"""From this many documents for each of the k on, it is cheaper not to let all of them race (benchmarks/sampling.py)."""


def sampler_log_scores(scores: FloatArray, alpha: float, compat: Compat = None) -> FloatArray:
    """The ln z of each document, (n,): alpha ln((score - min) / (max - min) + 1); 0, so uniform, for equal scores.

    `compat="authors"`: where min < 0 the range is [1 - min / (max - min), 2 - min / (max - min)] instead of [1, 2].
    (For equal scores the authors' code has 0 / 0; they are uniform here in both.)
    Raises UsageError where alpha is negative or not finite, DataError where a score is not finite.

    >>> np.exp(sampler_log_scores(np.array([3.0, 1.0, 2.0]), alpha=2)).round(6).tolist()
    [4.0, 1.0, 2.25]
    """
    checked_alpha(alpha)
    if not np.isfinite(scores).all():
        raise DataError("Plackett-Luce: a score is no finite number")
    if not len(scores) or scores.min() == scores.max():
        return np.zeros(len(scores))
    with np.errstate(over="ignore"):
        low, width = scores.min(), scores.max() - scores.min()
    if width == np.inf:
        # The scale does not matter, and of halves the difference is a double.
        return sampler_log_scores(scores / 2, alpha, compat)
    normalized = (scores - low) / width + 1
    if compat == "authors" and low < 0:
        normalized -= low / width
    return np.asarray(alpha * np.log(normalized))


def oracle_log_scores(useful: ArrayLike, alpha: float) -> FloatArray:
    """The ln z of each item (n,) under an oracle that knows which are `useful`: z is 10^alpha, or 0^alpha for the rest.

    0^0 is 1, so that alpha = 0 is uniform. Raises UsageError where alpha is negative or not finite.

    >>> oracle_log_scores([True, False], alpha=2).round(3).tolist()
    [4.605, -inf]
    """
    checked_alpha(alpha)
    found = np.asarray(useful, dtype=bool)
    return np.where(found, alpha * np.log(10), -np.inf) if alpha else np.zeros(len(found))


def checked_alpha(alpha: float) -> float:
    """`alpha` as it is; UsageError where it is no finite number of 0 or more."""
    if not 0 <= alpha < np.inf:
        raise UsageError(f"Plackett-Luce: alpha is a finite number of 0 or more, not {alpha}")
    return alpha


def topic_rng(seed: int, topic: str, request: int = 0) -> np.random.Generator:
    """The random numbers of one request for a topic: the same whatever other topics and requests there are.

    Requests are counted from 0. Raises UsageError where `seed` is below 0.
    """
    if seed < 0:
        raise UsageError(f"Plackett-Luce: the seed is a number of 0 or more, not {seed}")
    digest = hashlib.sha256(topic.encode("utf-8", "surrogatepass")).digest()
    return np.random.default_rng([seed, int.from_bytes(digest[:16]), *([request] if request else [])])


def sample_rankings(log_scores: FloatArray, k: int, rng: np.random.Generator, draws: int = 1) -> NDArray[np.intp]:
    """Independent rankings of the best min(k, n) documents, (draws, k), as indices: exactly Plackett-Luce.

    All documents race; of many, only those that may well be among the first, against a stream of the others (see
    `thinned`), except for a single ranking. Both are the same distribution.
    Raises UsageError where `k` or `draws` is below 1.

    >>> sample_rankings(np.log([256.0, 1.0, 100.0]), k=2, rng=np.random.default_rng(0)).tolist()
    [[0, 2]]
    """
    if k < 1 or draws < 1:
        raise UsageError(f"Plackett-Luce: k and the number of draws are 1 or more, not {k} and {draws}")
    levels = bounded(log_scores)
    if draws > 1 and len(levels) >= DEEP * k and np.ptp(levels) <= WIDEST:
        return thinned(levels, k, rng, draws, apart=k)
    return earliest(arrivals(levels, rng, draws), k)


def race(log_scores: FloatArray, k: int, log_waits: FloatArray) -> NDArray[np.intp]:
    """The first min(k, n) arrivals of each race, (draws, k), where document d arrives after wait / exp(z_d).

    `log_waits` (draws, n) are logarithms of exponential waiting times (the negatives of Gumbel noise): then the order
    of arrival is Plackett-Luce, and so are its first k places.

    >>> race(np.log([2.0, 1.0]), 2, np.array([[0.0, 0.0], [0.5, -0.6]])).tolist()
    [[0, 1], [1, 0]]
    """
    return earliest(log_waits - bounded(log_scores), k)


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
