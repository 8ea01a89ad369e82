"""A finished (or interrupted) experiment as values: what tables and pages are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fairagent.evaluate.outcome import GroupShares, HitRecord, Outcome, StepRecord

__all__ = ["Comparison", "GroupShares", "HitRecord", "Outcome", "Run", "StepRecord", "load_run"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One system by one measure: its mean over the topics that count, and how it stands to the baseline.

    `dimension` is "" for measures of relevance alone. `low` and `high` are the 95 % bootstrap interval of the mean.
    `difference` (of means, system - baseline) and the p-values are None for the baseline itself, and the p-values
    where fewer than two topics count; `t_holm` and `randomization_holm` are corrected (Holm) over the systems of the
    measure. Wins, ties and losses are topics.
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


@dataclass(frozen=True, slots=True)
class Run:
    """An experiment's outcome: `systems` in their order, the baseline first.

    `outcomes` holds every topic and system that was run, failed ones too; `excluded` says of each topic that no system
    is judged by why. `partial` marks a run that is not finished: its comparisons cover the topics that all systems
    have done. `oracle_systems` looked at the judgments. `expected` are numbers to compare with (a paper's):
    system -> dimension ("" for relevance) -> measure -> value.
    """

    name: str
    collection: str
    n: int
    systems: tuple[str, ...]
    baseline: str
    dimensions: tuple[str, ...]
    measures: tuple[str, ...]
    comparisons: tuple[Comparison, ...]
    outcomes: tuple[Outcome, ...]
    excluded: Mapping[str, str]
    provenance: Mapping[str, object]
    partial: bool
    oracle_systems: tuple[str, ...]
    expected: Mapping[str, Mapping[str, Mapping[str, float]]] | None = None


def load_run(folder: Path | str) -> Run:
    """The run in `folder`, from its run.json and journal alone."""
    raise NotImplementedError
