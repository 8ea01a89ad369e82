"""Statistics over topics: an interval for a mean, and whether two systems differ, topic by topic.

Parts of the topics: halves, of which one is for choosing settings and one for reporting, and samples by class.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Literal

import numpy as np

from fairagent.types import FloatArray, Topic

RESAMPLES = 10_000
BATCH = 500
"""Resamples that are in memory at a time."""
LEVEL = 0.95
ROUNDING = 1e-12


def seeded(seed: int, *names: str) -> np.random.Generator:
    """Random numbers that depend on `seed` and `names` alone: not on what else is drawn, or in which order."""
    digest = hashlib.sha256("\n".join(names).encode("utf-8", "surrogatepass")).digest()
    return np.random.default_rng([seed, int.from_bytes(digest[:16])])


def bootstrap_intervals(values: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Low and high ends (s,) of the 95 % percentile bootstrap intervals of the means of `values` (s, n), n >= 1.

    10,000 resamples of the topics, the same for all s systems.
    Source: Efron & Tibshirani 1993, chapter 13; computed by scipy.stats.bootstrap.

    >>> low, high = bootstrap_intervals(np.array([[0.0, 1.0], [0.5, 0.5]]), np.random.default_rng(0))
    >>> low.tolist(), high.tolist()
    ([0.0, 0.5], [1.0, 0.5])
    """
    from scipy.stats import bootstrap

    if values.shape[1] < 2:
        return values[:, 0], values[:, 0]
    found = bootstrap(
        (values,),
        np.mean,
        axis=1,
        n_resamples=RESAMPLES,
        batch=BATCH,
        confidence_level=LEVEL,
        method="percentile",
        rng=rng,
    ).confidence_interval
    return np.asarray(found.low), np.asarray(found.high)


def paired_t(differences: FloatArray) -> float | None:
    """The two-sided p-value of the paired t-test that the mean of `differences` (n,) is 0; None for n < 2.

    Where all differences are the same it is 1 if they are 0, and otherwise 0: there is no spread to doubt.

    >>> round(paired_t(np.array([1.0, 2.0, 3.0, 4.0])), 4)
    0.0305
    """
    from scipy.stats import ttest_1samp

    if len(differences) < 2:
        return None
    # What differs by less is rounding, of which a test would make a spread.
    if np.ptp(differences) <= ROUNDING:
        return float(abs(differences[0]) <= ROUNDING)
    return float(ttest_1samp(differences, 0.0).pvalue)


def paired_randomization(differences: FloatArray, rng: np.random.Generator) -> list[float | None]:
    """Two-sided p-values of the paired randomization tests on the means of `differences` (s, n); None for n < 2.

    Under the null hypothesis the sign of each topic's difference is a coin toss: 10,000 tosses, the same for all s
    systems, or all 2^n where these are fewer.
    Source: Smucker, Allan & Carterette 2007. The p-values are those of scipy.stats.permutation_test, in a tenth of its
    time.

    >>> paired_randomization(np.array([[1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 0.0]]), np.random.default_rng(0))
    [0.125, 1.0]
    """
    topics = differences.shape[1]
    if topics < 2:
        return [None] * len(differences)
    observed = differences.mean(axis=1)
    # Sums in another order differ by rounding: a toss that gives the observed mean counts as such.
    near = 100 * np.finfo(np.float64).eps * np.abs(observed)
    below, above = np.zeros((2, len(differences)))
    drawn = 0
    for signs in _signs(topics, rng):
        means = signs @ differences.T / topics
        below += (means <= observed + near).sum(axis=0)
        above += (means >= observed - near).sum(axis=0)
        drawn += len(signs)
    # What was observed is one of the tosses; where all there are were tried, it is among them.
    itself = int(drawn < 2**topics)
    p_values: list[float | None] = np.minimum(1.0, 2 * (np.minimum(below, above) + itself) / (drawn + itself)).tolist()
    return p_values


def _signs(topics: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Tosses (b, topics) of +1 and -1, a batch at a time: all 2^topics that there are, or 10,000 drawn."""
    if 2**topics <= RESAMPLES:
        yield np.array(list(product((1.0, -1.0), repeat=topics)))
        return
    for _ in range(RESAMPLES // BATCH):
        # The draws that scipy's shuffling of each topic's pair of signs comes to.
        yield np.where(rng.integers(0, 2**32, (BATCH, topics), np.uint32) & 1, 1.0, -1.0)


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
    """On how many topics the system is better, the same and worse.

    >>> wins_ties_losses(np.array([0.2, 0.0, -0.1, 0.3]))
    (2, 1, 1)
    """
    wins, losses = int((differences > 0).sum()), int((differences < 0).sum())
    return wins, len(differences) - wins - losses, losses


Half = Literal["tune", "test"]


def half(collection: str, topic: str) -> Half:
    """Which half a topic is in: by a hash of the collection's name and the topic's id, so for ever.

    >>> half("wikilead", "1"), half("wikilead", "3")
    ('tune', 'test')
    """
    digest = hashlib.sha256(f"{collection}/{topic}".encode("utf-8", "surrogatepass")).hexdigest()
    return "tune" if int(digest, 16) % 2 == 0 else "test"


def sample_of(topics: Mapping[str, Topic], ids: Sequence[str], count: int, seed: int) -> tuple[str, ...]:
    """`count` of the `ids` in their order, of each group of the `topics` its share; see `sampled`."""
    chosen = sampled({id: topics[id].group for id in ids}, count, seed)
    return tuple(id for id in ids if id in chosen)


def sampled(classes: Mapping[str, str], count: int, seed: int) -> frozenset[str]:
    """`count` of the topics (topic -> class), of each class as many as its share: all, where there are no more.

    What is left over by rounding goes to the classes with the largest remainders, ties to the first in the alphabet.
    Within a class the topics are those whose hash with the seed is the smallest, so that no other topic matters.

    >>> sorted(sampled(dict(zip("abcdef", "xxxxyy")), 3, seed=1))
    ['a', 'd', 'e']
    """

    def drawn(topic: str) -> bytes:
        return hashlib.sha256(f"{seed}/{topic}".encode("utf-8", "surrogatepass")).digest()

    ordered: dict[str, list[str]] = {}
    for topic in sorted(classes, key=drawn):
        ordered.setdefault(classes[topic], []).append(topic)
    count = min(count, len(classes))
    quotas = {name: count * len(topics) // len(classes) for name, topics in ordered.items()}
    left = sorted(ordered, key=lambda name: (-(count * len(ordered[name]) % len(classes)), name))
    for name in left[: count - sum(quotas.values())]:
        quotas[name] += 1
    return frozenset(topic for name, topics in ordered.items() for topic in topics[: quotas[name]])
