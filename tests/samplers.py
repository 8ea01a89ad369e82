"""Both ways to draw Plackett-Luce rankings, whichever a size would get: each has to be exact."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from fairagent.retrieve.stochastic import WIDEST, arrivals, bounded, earliest, sample_rankings, thinned
from fairagent.types import FloatArray

DRAWS = 20_000

Sampler = Callable[[FloatArray, int, np.random.Generator, int], np.ndarray]


def by_stream(apart: int) -> Sampler:
    """How many documents are drawn, here any number of them; what cannot be drawn so races."""

    def sample(log_scores: FloatArray, k: int, rng: np.random.Generator, draws: int) -> np.ndarray:
        levels = bounded(log_scores)
        if len(levels) <= apart or len(levels) < k or np.ptp(levels) > WIDEST:
            return earliest(arrivals(levels, rng, draws), k)
        return thinned(levels, k, rng, draws, apart)

    return sample


all_ways = pytest.mark.parametrize("sample", [sample_rankings, by_stream(1), by_stream(2)], ids=["race", "1", "2"])


def placement_log_probabilities(log_scores: FloatArray, ranking: Sequence[int]) -> FloatArray:
    """The ln p(d | above) at each rank of `ranking`, (k,), indices of distinct documents; their sum is the ranking's.

    >>> np.exp(placement_log_probabilities(np.zeros(3), [2, 0])).round(6).tolist()
    [0.333333, 0.5]
    """
    left = np.ones(len(log_scores), dtype=bool)
    values = np.zeros(len(ranking))
    for rank, document in enumerate(ranking):
        top = log_scores[left].max()
        with np.errstate(over="ignore", invalid="ignore"):
            # z - max z, without forming either: both may be beyond the largest double.
            below = np.where(log_scores == top, 0.0, np.exp(top) * np.expm1(log_scores - top))
        values[rank] = below[document] - np.log(np.exp(below[left]).sum())
        left[document] = False
    return values
