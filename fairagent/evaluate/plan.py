"""What is to be done, as workers and run.json need it, and the systems that do it."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, SerializeAsAny

from fairagent.collection import Collection
from fairagent.evaluate.kind import ExperimentKind, Opened, as_kind
from fairagent.evaluate.thresholds import Threshold
from fairagent.llm.models import Models
from fairagent.retrieve.site import Site
from fairagent.search.agent import FairAgent
from fairagent.search.pipeline import build, parts_of, resolved, searching_parts
from fairagent.settings import BudgetSettings, Part, Price, Section, Settings, Without
from fairagent.storage.threads import Memo


class SystemPlan(Section):
    """One row of the tables: its system's settings, and its index's folder.

    `asks` are the ids of the prompt templates that it uses, `row` what its kind of experiment says of it alone. Where
    its rankings depend on groups, or it is measured by its own target, `steers` names that of each dimension.
    """

    settings: Settings
    index: str
    asks: tuple[str, ...] = ()
    row: dict[str, Any] = Field(default={})
    steers: dict[str, str] = Field(default={})

    @property
    def searches(self) -> bool:
        return self.settings.engine.searches

    @property
    def searching_with(self) -> tuple[str, ...]:
        """The ids of the templates that a search uses."""
        return tuple(id for part in searching_parts(self.settings) for id in part.asks_with(self.settings))

    def without_loop(self) -> SystemPlan | None:
        """The same system without its loop; None where it has none."""
        if not self.settings.loops:
            return None
        plain = self.model_copy(update={"settings": self.settings.model_copy(update={"loop": Without()})})
        return plain.model_copy(update={"asks": plain.searching_with})

    def name_among(self, systems: Mapping[str, SystemPlan]) -> str:
        """The name of the one with the same settings, by whichever profile; "" where there is none."""
        settings = self.settings.model_dump(exclude={"profile"})
        same = (name for name, one in systems.items() if one.settings.model_dump(exclude={"profile"}) == settings)
        return next(same, "")


class Plan(Section):
    """What is to be done. Paths are absolute, `systems` begins with the baseline, `topics` are those that count.

    `without_loops` are systems that the experiment does not name, to tell what its loops add. `unjudged` are further
    topics of systems, which are searched for their run files alone.
    """

    experiment: Annotated[SerializeAsAny[ExperimentKind], BeforeValidator(as_kind)]
    topics: tuple[str, ...]
    dimensions: tuple[str, ...]
    measures: tuple[str, ...]
    n: int
    systems: dict[str, SystemPlan]
    without_loops: dict[str, SystemPlan] = Field(default={})
    unjudged: dict[str, tuple[str, ...]] = Field(default={})
    prices: dict[str, Price]
    expected: dict[str, dict[str, dict[str, float]]]
    thresholds: tuple[Threshold, ...] = ()
    budget: BudgetSettings = BudgetSettings()
    cache: str = ""

    @property
    def baseline(self) -> str:
        """The system that the others are tested against."""
        return next(iter(self.systems))

    @property
    def all_systems(self) -> dict[str, SystemPlan]:
        return {**self.systems, **self.without_loops}

    @property
    def jobs(self) -> list[tuple[str, str]]:
        """Each system with each of its topics, in the order in which they are done."""
        judged = [(system, topic) for topic in self.topics for system in self.all_systems]
        return judged + [(system, topic) for system, topics in self.unjudged.items() for topic in topics]


@dataclass(frozen=True, slots=True)
class System:
    """What answers topics."""

    agent: FairAgent
    site: Site

    @property
    def sees_groups(self) -> bool:
        return self.site.settings.sees_groups


def site_of(
    system: SystemPlan, collection: Collection, models: Models, seed: int = 0, memo: Memo | None = None
) -> Site:
    """What a system is built from; systems that share a `memo` share what they open."""
    # Each query from the same state: an outcome depends on no other.
    return Site(collection, system.settings, Path(system.index), models, seed, memo or Memo(), stateless=True)


def prepared(systems: Mapping[str, SystemPlan], collection: Collection) -> Iterator[tuple[Part, Site]]:
    """Every part that may need an index, with the site that it is needed at; all of them share one memo."""
    memo, models = Memo(), Models()
    for system in systems.values():
        site = resolved(site_of(system, collection, models, memo=memo), preparing=True)
        for part in parts_of(site.settings):
            yield part, site


def build_systems(opened: Opened, names: Container[str] | None = None) -> dict[str, System]:
    """The systems that search (only those of these `names`), which may train some of them."""
    built = {}
    for name, system in opened.plan.all_systems.items():
        if system.searches and (names is None or name in names):
            seed = opened.plan.experiment.seed
            site = site_of(system, opened.collection, opened.models, seed, opened.memo)
            built[name] = System(build(site), site)
    return built
