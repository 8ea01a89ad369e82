"""Plackett-Luce rankings: from an engine's scores to chances, and exact draws (Diaz et al. 2020; Fair-RAG, Eq. 2).

p(d | above) = exp(z_d) / sum of exp(z) over the documents not yet placed, with z = s^alpha and s the scores on [1, 2].
alpha = 0 makes all orders equally likely; the larger alpha, the closer to the engine's order. z grows without bound
(2^alpha), so it travels as its logarithm and exp(z) is never formed.

Draws are races: where document d arrives after an exponential waiting time of rate exp(z_d), the order of arrival is
Plackett-Luce (the logarithm of that time is Gumbel noise on z with the sign changed). `levels` are the z, `bounded`.
"""

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import DataError, UsageError
from fairagent.retrieve.base import placed
from fairagent.types import FloatArray, Ranking
from fairagent.types.common import Compat

DECISIVE = 100.0
"""A difference in z that no waiting time makes up for: in doubles its logarithm lies between about -40 and 4."""
WIDEST = 600.0
"""The widest range of z whose exponentials, times a waiting time, are still doubles of full precision."""
DEEP = 25
"""From this many documents for each of the k on, it is cheaper not to let all of them race (benchmarks/sampling.py)."""


def bounded(log_scores: FloatArray) -> FloatArray:
    """The z with gaps between neighbors cut to DECISIVE: small numbers in which no noise is rounded away.

    z itself may be 1e8 or infinite; adding noise of size 1 to that would order equal documents by their place.
    """
    if not len(log_scores):
        return log_scores
    if log_scores.max() < np.log(DECISIVE):
        # Nothing to cut, so nothing to sort.
        return np.exp(log_scores)
    distinct, which = np.unique(log_scores, return_inverse=True)
    with np.errstate(over="ignore", invalid="ignore"):
        gaps = np.diff(np.exp(distinct))
    # fmin takes DECISIVE where both neighbors are infinite and the gap is a nan.
    return np.concatenate([[0.0], np.cumsum(np.fmin(gaps, DECISIVE))])[which]


def arrivals(levels: FloatArray, rng: np.random.Generator, draws: int) -> FloatArray:
    """When each document arrives in each race, (draws, n); of wide levels the logarithm of that."""
    waits = rng.standard_exponential(size=(draws, len(levels)))
    if not len(levels):
        return waits
    if levels.max() - levels.min() <= WIDEST:
        waits *= np.exp(levels.min() - levels)
        return waits
    with np.errstate(divide="ignore"):
        return np.log(waits, out=waits) - levels


def earliest(times: FloatArray, k: int) -> NDArray[np.intp]:
    """The first min(k, n) of each row in their order, (draws, k)."""
    if k >= times.shape[1]:
        return np.argsort(times, axis=1)
    first = np.argpartition(times, k, axis=1)[:, :k]
    order = np.argsort(np.take_along_axis(times, first, axis=1), axis=1)
    return np.take_along_axis(first, order, axis=1)


def thinned(levels: FloatArray, k: int, rng: np.random.Generator, draws: int, apart: int) -> NDArray[np.intp]:
    """As `earliest` of `arrivals`, (draws, k), without a waiting time for every document of every race.

    The `apart` documents with the highest levels get one each. The others arrive as one stream whose rate is the sum of
    theirs: each of its first 2k arrivals is one of them by chance, skipped where it has arrived before. Of races in
    which the stream ends before k documents have arrived, the rest, which has no memory, is run in full.
    """
    n, length = len(levels), 2 * k
    order = np.argpartition(levels, n - apart)
    others, highest = order[: n - apart], order[n - apart :]
    rates = np.exp(levels - levels.max())
    bounds = rates[others].cumsum()
    stream = rng.standard_exponential(size=(draws, length)).cumsum(axis=1) / bounds[-1]
    end = stream[:, -1:].copy()
    drawn = np.searchsorted(bounds / bounds[-1], rng.random((draws, length)), side="right")
    # Sorted by document, then by time: an entry that follows one of its own document came up before.
    keys = np.sort(drawn * length + np.arange(length), axis=1)
    race, place = np.nonzero(np.diff(keys // length, axis=1) == 0)
    stream[race, keys[race, place + 1] % length] = np.inf

    times = np.hstack([rng.standard_exponential(size=(draws, apart)) / rates[highest], stream])
    documents = np.hstack([np.broadcast_to(highest, (draws, apart)), others[drawn]])
    best = earliest(times, k)
    rankings = np.take_along_axis(documents, best, axis=1)
    (late,) = np.nonzero(np.take_along_axis(times, best[:, -1:], axis=1)[:, 0] > end[:, 0])
    if len(late):
        again = arrivals(levels, rng, len(late))
        race, place = np.nonzero(times[late] <= end[late])
        # Before all that is still to come, in the order of arrival.
        again[race, documents[late][race, place]] = -1 / times[late][race, place]
        rankings[late] = earliest(again, k)
    return rankings


def sampler_log_scores(scores: FloatArray, alpha: float, compat: Compat = None) -> FloatArray:
    """The ln z of each document, (n,): alpha ln((score - min) / (max - min) + 1); 0, so uniform, for equal scores.

    `compat="authors"`: where min < 0 the range is [1 - min / (max - min), 2 - min / (max - min)] instead of [1, 2].
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
        # The scale does not matter, and the difference of two halves is still a finite double.
        return sampler_log_scores(scores / 2, alpha, compat)
    normalized = (scores - low) / width + 1
    if compat == "authors" and low < 0:
        normalized -= low / width
    return np.asarray(alpha * np.log(normalized))


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


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Rankings that were drawn for one query: `rankings` (N, k') hold places in `ids`, the pool's n documents.

    k' is min(k, n); N rankings of no documents are those of an empty pool.
    """

    ids: tuple[str, ...]
    rankings: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.rankings)

    def ranking(self, number: int) -> Ranking:
        """The ranking of that number, from 0; its scores only say the rank."""
        return placed(self.ids, self.rankings[number].tolist())


def draw(pool: Ranking, alpha: float, k: int, rng: np.random.Generator, n: int = 1) -> Samples:
    """`n` rankings of the best min(k, len(pool)) documents of `pool`: Plackett-Luce over its scores.

    Raises what `sampler_log_scores` and `sample_rankings` do.
    """
    return Samples(pool.ids, sample_rankings(sampler_log_scores(pool.scores, alpha), k, rng, n))


class RequestCounter:
    """The number of each request among those for its topic, from 0; threads may share it.

    Of the topics the `most` recent ones count on: a server may see any number of different queries.
    """

    def __init__(self, most: int = 100_000) -> None:
        self._most = most
        self._next: OrderedDict[str, int] = OrderedDict()
        self._lock = threading.Lock()

    def number(self, topic: str) -> int:
        """That of this request.

        >>> requests = RequestCounter()
        >>> [requests.number(topic) for topic in ("a", "b", "a", "a")]
        [0, 0, 1, 2]
        """
        with self._lock:
            number = self._next.pop(topic, 0)
            self._next[topic] = number + 1
            if len(self._next) > self._most:
                self._next.popitem(last=False)
            return number
