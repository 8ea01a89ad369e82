"""A checked experiment as plain values: all that a worker needs to know, on this machine or another."""

from __future__ import annotations

from typing import Any

from fairagent.evaluate.experiment_file import Price
from fairagent.measures import AWRF, Measure, Product, parse_measure
from fairagent.settings import Section, Settings


class SystemPlan(Section):
    """One system: its kind and options (`fairagent.evaluate.systems`), its settings, and its index's folder."""

    kind: str
    options: dict[str, Any]
    settings: Settings
    index: str


class Plan(Section):
    """What is to be done. Paths are absolute, `systems` begins with the baseline, `topics` are those that count."""

    name: str
    about: str
    collection: str
    topics: tuple[str, ...]
    dimensions: tuple[str, ...]
    per_group: int
    measures: tuple[str, ...]
    seed: int
    systems: dict[str, SystemPlan]
    prices: dict[str, Price]
    expected: dict[str, dict[str, dict[str, float]]]

    @property
    def n(self) -> int:
        """The length of the rankings: the largest cut-off."""
        return max(cutoff(parse_measure(measure)) for measure in self.measures)

    @property
    def baseline(self) -> str:
        """The system that the others are tested against."""
        return next(iter(self.systems))


def cutoff(measure: Measure) -> int:
    """How many ranks a measure looks at."""
    if isinstance(measure, Product):
        return max(cutoff(measure.left), cutoff(measure.right))
    return int(measure.n)  # type: ignore[attr-defined]


def of_groups(measure: Measure) -> AWRF | None:
    """The part of a measure that looks at groups, so that it has a value a dimension; None for relevance alone."""
    if isinstance(measure, Product):
        return of_groups(measure.left) or of_groups(measure.right)
    return measure if isinstance(measure, AWRF) else None
