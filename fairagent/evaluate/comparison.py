"""Systems compared, measure by measure, over the topics that all of them answered, and the statistics of that.

Values of one query are no independent witnesses: where several dimensions, aims or requests of the same query are taken
together, `by_query` makes one of them, and what is resampled are queries.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from fairagent.errors import DataError
from fairagent.evaluate.outcome import Outcome
from fairagent.measures.base import seeded
from fairagent.types import FloatArray

SAME = 1e-9
"""Two values of a topic that differ by no more are a tie."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One system by one measure: its mean over the topics that count, and how it stands to the baseline.

    `dimension` is "" for measures of relevance alone. `low` and `high` are the 95 % bootstrap interval of the mean.
    `difference` (of means, system - baseline) and the p-values are None for the baseline itself, and the p-values
    where fewer than two topics count; `t_holm` and `randomization_holm` are corrected (Holm) over the systems of the
    measure and dimension. Wins, ties (up to 1e-9) and losses are topics (0 for the baseline); where lower values are
    better, these win.
    """

    system: str
    dimension: str
    measure: str
    mean: float
    low: float
    high: float
    difference: float | None
    t_p: float | None
    randomization_p: float | None
    t_holm: float | None
    randomization_holm: float | None
    wins: int
    ties: int
    losses: int
    topics: int


def compare(
    outcomes: Mapping[tuple[str, str], Outcome],
    topics: Sequence[str],
    systems: Sequence[str],
    columns: Sequence[tuple[str, str]],
    seed: int,
    lower_is_better: Container[str] = (),
) -> tuple[Comparison, ...]:
    """Every system by every column (dimension, measure) that a topic counts for; the first system is the baseline.

    `outcomes` are by (topic, system). Random numbers depend on seed, dimension and measure: systems have the same.
    """
    rows: list[Comparison] = []
    for dimension, measure in columns:
        counted = [topic for topic in topics if measure in outcomes[topic, systems[0]].values.get(dimension, {})]
        if not counted:
            continue
        try:
            of_topic = [[outcomes[topic, system].values[dimension][measure] for topic in counted] for system in systems]
        except KeyError as error:
            raise DataError(f"the journal is damaged: an outcome lacks {error}; start over with --new") from None
        values = np.array(of_topic)
        low, high = bootstrap_intervals(values, seeded(seed, "bootstrap", dimension, measure))
        differences = values[1:] - values[0]
        differences[np.abs(differences) <= SAME] = 0
        t = [paired_t(of_system) for of_system in differences]
        randomization = paired_randomization(differences, seeded(seed, "randomization", dimension, measure))
        # Of the baseline there is nothing to test.
        p_values = [(None,) * 4, *zip(t, randomization, holm(t), holm(randomization), strict=True)]
        for place, (system, mean) in enumerate(zip(systems, values.mean(axis=1).tolist(), strict=True)):
            of_system = differences[place - 1] if place else np.zeros(0)
            won = wins_ties_losses(-of_system if measure in lower_is_better else of_system)
            difference = float(of_system.mean()) if place else None
            ends = float(low[place]), float(high[place])
            rows.append(
                Comparison(system, dimension, measure, mean, *ends, difference, *p_values[place], *won, len(counted))
            )
    return tuple(rows)


SIGN = "="
"""Marks systems whose rankings equal those of another."""


@dataclass(frozen=True, slots=True)
class Equal:
    """`system` ranks as `other` does, a system before it, on all topics."""

    system: str
    other: str

    def __str__(self) -> str:
        return f"{SIGN} {self.system}: the rankings of {self.other} on all topics"


def equal_systems(rankings: Mapping[str, Sequence[Sequence[str]]]) -> tuple[Equal, ...]:
    """The systems whose rankings are those of one before them: system -> the ids of each topic, best first."""
    first: dict[tuple[tuple[str, ...], ...], str] = {}
    others = {system: first.setdefault(tuple(map(tuple, of)), system) for system, of in rankings.items() if len(of)}
    return tuple(Equal(system, other) for system, other in others.items() if other != system)


RESAMPLES = 10_000
BATCH = 500
"""Resamples that are in memory at a time."""
ROUNDING = 1e-12


def bootstrap_intervals(
    values: FloatArray, rng: np.random.Generator, counts: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Low and high ends (s,) of the 95 % percentile bootstrap intervals of the means of `values` (s, n), n >= 1.

    With `counts` (n,) they are sums of so many values each, which are resampled together (those of a query, or of a
    cluster of requests), and a mean is the ratio of both sums; what counts 0 says nothing.
    Source: Efron & Tibshirani 1993, chapter 13; 10,000 resamples of the topics, the same for all s systems.
    """
    sizes = np.ones(values.shape[1]) if counts is None else counts
    sums, sizes = values[:, sizes > 0], sizes[sizes > 0]
    means = []
    for _ in range(RESAMPLES // BATCH):
        drawn = rng.integers(len(sizes), size=(BATCH, len(sizes)))
        means.append(sums[:, drawn].sum(axis=2) / sizes[drawn].sum(axis=1))
    low, high = np.quantile(np.hstack(means), [0.025, 0.975], axis=1)
    return low, high


def by_query(values: FloatArray, queries: Sequence[Hashable]) -> tuple[FloatArray, FloatArray]:
    """Sums (s, q) of the values (s, n) of each query, and how many (q,) these are; `queries` (n,) says whose each is.

    Signs tossed for these sums (`paired_randomization`) are tossed for all values of a query together.

    >>> by_query(np.array([[0.5, 0.25, 1.0]]), ["a", "b", "a"])
    (array([[1.5 , 0.25]]), array([2., 1.]))
    """
    numbers = {query: number for number, query in enumerate(dict.fromkeys(queries))}
    belongs = np.eye(len(numbers))[[numbers[query] for query in queries]]
    return values @ belongs, belongs.sum(axis=0)


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

    Source: Smucker, Allan & Carterette 2007. 10,000 tosses of the signs, the same for all s systems, or all 2^n where
    these are fewer.
    """
    from scipy.stats import permutation_test

    if differences.shape[1] < 2 or not len(differences):
        return [None] * len(differences)
    test: Any = partial(permutation_test, permutation_type="samples", vectorized=True, n_resamples=RESAMPLES)
    p_values: list[float | None] = test((differences,), np.mean, batch=BATCH, axis=1, rng=rng).pvalue.tolist()
    return p_values


def smallest_p(topics: int) -> float:
    """The smallest p-value of `paired_randomization` where it draws: of one that small only a bound is known; else 0.

    Corrected (Holm), it is as many times that as there are tests.

    >>> round(smallest_p(50), 5), smallest_p(5)
    (0.0002, 0.0)
    """
    return 2 / (RESAMPLES + 1) if 2**topics > RESAMPLES else 0.0


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """The p-values corrected for being several (Holm 1979), in their places; None stays None and does not count."""
    tested = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for smaller, (p, place) in enumerate(tested):
        corrected[place] = highest = max(highest, min(1.0, (len(tested) - smaller) * p))
    return corrected


SIGNIFICANT = 0.05


def tested(p: float | None, gain: float | None) -> Literal["better", "worse", ""]:
    """What a test says of a `gain` on the baseline, "" being nothing: the one rule of marks, sentences and verdicts.

    `p` is that of the randomization test, after Holm where several were tested; None where nothing could be.

    >>> tested(0.01, -0.2), tested(0.2, -0.2), tested(None, 0.3)
    ('worse', '', '')
    """
    if p is None or p >= SIGNIFICANT or not gain:
        return ""
    return "better" if gain > 0 else "worse"


def wins_ties_losses(differences: FloatArray) -> tuple[int, int, int]:
    """On how many topics the system is better, the same and worse.

    >>> wins_ties_losses(np.array([0.2, 0.0, -0.1, 0.3]))
    (2, 1, 1)
    """
    wins, losses = int((differences > 0).sum()), int((differences < 0).sum())
    return wins, len(differences) - wins - losses, losses
