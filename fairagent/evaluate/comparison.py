"""Systems compared, measure by measure, over the topics that all of them answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairagent.evaluate.outcome import Outcome
from fairagent.evaluate.statistics import (
    bootstrap_interval,
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
    measure and dimension. Wins, ties and losses are topics (0 for the baseline).
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


Answers = Mapping[tuple[str, str], Outcome]
"""(topic, system) -> outcome."""


def compare(
    answers: Answers,
    topics: Sequence[str],
    systems: Sequence[str],
    columns: Sequence[tuple[str, str]],
    seed: int,
) -> tuple[Comparison, ...]:
    """Every system by every measure over `topics`, which all systems answered; the first system is the baseline.

    `columns` are (dimension, measure); one that no topic counts for is left out. In the order of the columns, then of
    the systems. The random numbers depend on `seed`, dimension and measure: all systems are resampled alike.
    """
    found: list[Comparison] = []
    for dimension, measure in columns:
        counted = [topic for topic in topics if measure in answers[topic, systems[0]].values.get(dimension, {})]
        if not counted:
            continue
        values = {
            system: np.array([answers[topic, system].values[dimension][measure] for topic in counted])
            for system in systems
        }
        rows = [_row(system, dimension, measure, values, systems[0], seed) for system in systems]
        corrected = zip(holm([row.t_p for row in rows]), holm([row.randomization_p for row in rows]), strict=True)
        found.extend(
            replace(row, t_holm=t, randomization_holm=randomization)
            for row, (t, randomization) in zip(rows, corrected, strict=True)
        )
    return tuple(found)


def _row(
    system: str, dimension: str, measure: str, values: Mapping[str, FloatArray], baseline: str, seed: int
) -> Comparison:
    own = values[system]
    low, high = bootstrap_interval(own, seeded(seed, "bootstrap", dimension, measure))
    row = Comparison(
        system, dimension, measure, float(own.mean()), low, high, None, None, None, None, None, 0, 0, 0, len(own)
    )
    if system == baseline:
        return row
    differences = own - values[baseline]
    wins, ties, losses = wins_ties_losses(differences)
    return replace(
        row,
        difference=float(differences.mean()),
        t_p=paired_t(differences),
        randomization_p=paired_randomization(differences, seeded(seed, "randomization", dimension, measure)),
        wins=wins,
        ties=ties,
        losses=losses,
    )
