"""Exact Plackett-Luce draws, by races.

Where document d arrives after an exponential waiting time of rate exp(z_d), the order of arrival is Plackett-Luce (the
logarithm of that time is Gumbel noise on z with the sign changed). `levels` are the z, `bounded`.
"""

import numpy as np
from numpy.typing import NDArray

from fairagent.types import FloatArray

DECISIVE = 100.0
"""A difference in z that no waiting time makes up for: in doubles its logarithm lies between about -40 and 4."""

WIDEST = 600.0
"""The widest range of z whose exponentials, times a waiting time, are still doubles of full precision."""


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

    The `apart` documents (1 to n - 1) with the highest levels get one each. The others arrive as one stream whose rate
    is the sum of theirs: each of its first 2k arrivals is one of them by chance, skipped where it has arrived before.
    Of races in which the stream ends before k documents have arrived, the rest, which has no memory, is run in full.
    Levels range over WIDEST at most.
    """
    n, length = len(levels), 2 * k
    order = np.argpartition(levels, n - apart)
    others, highest = order[: n - apart], order[n - apart :]
    rates = np.exp(levels - levels.max())
    bounds = rates[others].cumsum()
    stream = rng.standard_exponential(size=(draws, length)).cumsum(axis=1) / bounds[-1]
    end = stream[:, -1:].copy()
    drawn = np.searchsorted(bounds / bounds[-1], rng.random((draws, length)), side="right")
    # Sorted by document, then by time: whatever follows its own kind has arrived before.
    keys = np.sort(drawn * length + np.arange(length), axis=1)
    race, place = np.nonzero(np.diff(keys // length, axis=1) == 0)
    stream[race, keys[race, place + 1] % length] = np.inf

    times = np.hstack([rng.standard_exponential(size=(draws, apart)) / rates[highest], stream])
    documents = np.hstack([np.broadcast_to(highest, (draws, apart)), others[drawn]])
    best = earliest(times, k)
    found = np.take_along_axis(documents, best, axis=1)
    (late,) = np.nonzero(np.take_along_axis(times, best[:, -1:], axis=1)[:, 0] > end[:, 0])
    if len(late):
        again = arrivals(levels, rng, len(late))
        race, place = np.nonzero(times[late] <= end[late])
        # Before all that is still to come, in the order of arrival.
        again[race, documents[late][race, place]] = -1 / times[late][race, place]
        found[late] = earliest(again, k)
    return found
