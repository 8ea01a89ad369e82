"""Systems compared, measure by measure, over the topics that all of them answered."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairagent.errors import DataError
from fairagent.evaluate.engine.outcome import Outcome
from fairagent.evaluate.engine.statistics import (
    bootstrap_intervals,
    holm,
    paired_randomization,
    paired_t,
    seeded,
    wins_ties_losses,
)
from fairagent.types import FloatArray


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


SAME = 1e-9
"""Two values of a topic that differ by no more are a tie."""

Answers = Mapping[tuple[str, str], Outcome]
"""(topic, system) -> outcome."""


def compare(
    answers: Answers,
    topics: Sequence[str],
    systems: Sequence[str],
    columns: Sequence[tuple[str, str]],
    seed: int,
    lower_is_better: Container[str] = (),
) -> tuple[Comparison, ...]:
    """Every system by every measure over `topics`, which all systems answered; the first system is the baseline.

    `columns` are (dimension, measure); one that no topic counts for is left out. `lower_is_better` are the measures of
    which it is. In the order of the columns, then of the systems. The random numbers depend on `seed`, dimension and
    measure: all systems are resampled alike.
    """
    found: list[Comparison] = []
    for dimension, measure in columns:
        counted = [topic for topic in topics if measure in answers[topic, systems[0]].values.get(dimension, {})]
        if not counted:
            continue
        try:
            of_topic = [[answers[topic, system].values[dimension][measure] for topic in counted] for system in systems]
        except KeyError as error:
            raise DataError(f"the journal is damaged: an outcome lacks {error}; start over with --new") from None
        found.extend(_rows(dimension, measure, systems, np.array(of_topic), seed, measure in lower_is_better))
    return tuple(found)


def _rows(
    dimension: str, measure: str, systems: Sequence[str], values: FloatArray, seed: int, lower: bool
) -> Iterator[Comparison]:
    """The comparisons of one column; `values` is (systems, topics), the baseline first."""
    low, high = bootstrap_intervals(values, seeded(seed, "bootstrap", dimension, measure))
    ends = zip(systems, values.mean(axis=1).tolist(), low.tolist(), high.tolist(), strict=True)
    topics = values.shape[1]
    rows = [
        Comparison(system, dimension, measure, mean, least, most, None, None, None, None, None, 0, 0, 0, topics)
        for system, mean, least, most in ends
    ]
    yield rows[0]
    differences = values[1:] - values[0]
    differences[np.abs(differences) <= SAME] = 0
    t = [paired_t(of_system) for of_system in differences]
    randomization = paired_randomization(differences, seeded(seed, "randomization", dimension, measure))
    tests = zip(rows[1:], differences, t, holm(t), randomization, holm(randomization), strict=True)
    for row, of_system, t_p, t_holm, randomization_p, randomization_holm in tests:
        wins, ties, losses = wins_ties_losses(-of_system if lower else of_system)
        yield replace(
            row,
            difference=float(of_system.mean()),
            t_p=t_p,
            randomization_p=randomization_p,
            t_holm=t_holm,
            randomization_holm=randomization_holm,
            wins=wins,
            ties=ties,
            losses=losses,
        )
