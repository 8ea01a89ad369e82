"""A checked experiment as plain values: all that a worker needs to know, on this machine or another."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, SerializeAsAny

from fairagent.evaluate.engine.kind import ExperimentKind
from fairagent.evaluate.engine.reading import as_kind
from fairagent.evaluate.engine.thresholds import Threshold
from fairagent.loop.config import ControllerConfig
from fairagent.pipeline import loop_parts
from fairagent.settings import BudgetSettings, Part, Price, Section, Settings

NOT_SEARCHING = ("none", "oracle", "adversarial")
"""Engines that search nothing: there are no documents, or they are taken from the judgments."""


class SystemPlan(Section):
    """One row of the tables: its system's settings, and its index's folder.

    `asks` are the ids of the templates that it asks its model with, `row` what its kind of experiment says of it alone.
    """

    settings: Settings
    index: str
    asks: tuple[str, ...] = ()
    row: dict[str, Any] = Field(default={})

    @property
    def searches(self) -> bool:
        """Whether it has a search engine."""
        return self.settings.engine.kind not in NOT_SEARCHING

    @property
    def searching(self) -> tuple[Part, ...]:
        """The parts that a search asks."""
        settings = self.settings
        return (settings.engine, *loop_parts(settings), settings.rerank)

    @property
    def searching_with(self) -> tuple[str, ...]:
        """The ids of the templates that a search asks with; a loop that filters asks with the filter's."""
        own, loop = (id for part in self.searching for id in part.templates), self.settings.loop
        filtering = isinstance(loop, ControllerConfig) and "filter" in loop.actions
        return (*own, *(self.settings.filter.templates if filtering else ()))


class Plan(Section):
    """What is to be done. Paths are absolute, `systems` begins with the baseline, `topics` are those that count."""

    experiment: Annotated[SerializeAsAny[ExperimentKind], BeforeValidator(as_kind)]
    topics: tuple[str, ...]
    dimensions: tuple[str, ...]
    measures: tuple[str, ...]
    n: int
    systems: dict[str, SystemPlan]
    prices: dict[str, Price]
    expected: dict[str, dict[str, dict[str, float]]]
    thresholds: tuple[Threshold, ...] = ()
    budget: BudgetSettings = BudgetSettings()
    cache: str = ""

    @property
    def baseline(self) -> str:
        """The system that the others are tested against."""
        return next(iter(self.systems))
