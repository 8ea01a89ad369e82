"""Statistics over topics: an interval for a mean, and whether two systems differ, topic by topic."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from fairagent.types import FloatArray

RESAMPLES = 10_000
LEVEL = 0.95
SAME = 1e-9
"""Two values of a topic that differ by no more are a tie."""


def seeded(seed: int, *names: str) -> np.random.Generator:
    """Random numbers that depend on `seed` and `names` alone: not on what else is drawn, or in which order."""
    digest = hashlib.sha256("\n".join(names).encode("utf-8", "surrogatepass")).digest()
    return np.random.default_rng([seed, int.from_bytes(digest[:16])])


def bootstrap_interval(values: FloatArray, rng: np.random.Generator) -> tuple[float, float]:
    """The 95 % percentile bootstrap interval of the mean of `values` (n,), n >= 1, from 10,000 resamples of topics.

    Source: Efron & Tibshirani 1993, chapter 13; computed by scipy.stats.bootstrap.
    """
    from scipy.stats import bootstrap

    if np.ptp(values) == 0:
        return float(values[0]), float(values[0])
    found = bootstrap(
        (values,), np.mean, n_resamples=RESAMPLES, confidence_level=LEVEL, method="percentile", rng=rng, vectorized=True
    )
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def paired_t(differences: FloatArray) -> float | None:
    """The two-sided p-value of the paired t-test that the mean of `differences` (n,) is 0; None for n < 2.

    Where all differences are the same it is 1 if they are 0, and otherwise 0: there is no spread to doubt.

    >>> round(paired_t(np.array([1.0, 2.0, 3.0, 4.0])), 4)
    0.0305
    """
    from scipy.stats import ttest_1samp

    if len(differences) < 2:
        return None
    if np.ptp(differences) <= SAME:
        return float(abs(differences[0]) <= SAME)
    return float(ttest_1samp(differences, 0.0).pvalue)


def paired_randomization(differences: FloatArray, rng: np.random.Generator) -> float | None:
    """The two-sided p-value of the paired randomization test on the mean of `differences` (n,); None for n < 2.

    Under the null hypothesis the sign of each topic's difference is a coin toss: 10,000 tosses, or all 2^n where these
    are fewer. Source: Smucker, Allan & Carterette 2007; computed by scipy.stats.permutation_test.

    >>> paired_randomization(np.array([1.0, 2.0, 3.0, 4.0]), np.random.default_rng(0))
    0.125
    """
    from scipy.stats import permutation_test

    if len(differences) < 2:
        return None
    if np.abs(differences).max() <= SAME:
        return 1.0
    found = permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=RESAMPLES, rng=rng, vectorized=True
    )
    return float(found.pvalue)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """The p-values corrected for being several (Holm 1979), in their places; None stays None and does not count.

    >>> holm([0.01, 0.04, None, 0.03])
    [0.03, 0.06, None, 0.06]
    """
    tested = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for smaller, (p, place) in enumerate(tested):
        highest = max(highest, min(1.0, (len(tested) - smaller) * p))
        corrected[place] = highest
    return corrected


def wins_ties_losses(differences: FloatArray) -> tuple[int, int, int]:
    """On how many topics the system is better, about the same (within 1e-9) and worse.

    >>> wins_ties_losses(np.array([0.2, 0.0, -0.1, 0.3]))
    (2, 1, 1)
    """
    wins, losses = int((differences > SAME).sum()), int((differences < -SAME).sum())
    return wins, len(differences) - wins - losses, losses
