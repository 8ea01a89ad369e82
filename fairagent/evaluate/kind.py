"""What a kind of experiment is: the keys of its file, and what is done with them from the checks to the page.

A kind is a subclass of `ExperimentKind`. An experiment file names it (`kind: utility`), and its fields are the keys
that such a file may have. Kinds of other packages come through the entry points `fairagent.kinds`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from pydantic import ConfigDict, Field

from fairagent.collection import Collection
from fairagent.errors import SettingsError
from fairagent.evaluate.fields import (
    FileSection,
    Name,
    Problems,
    Published,
    Topics,
    TopicSample,
    Values,
    half,
    sample_of,
)
from fairagent.evaluate.outcome import Outcome
from fairagent.evaluate.tables import PageSection, Table
from fairagent.llm.models import Models
from fairagent.llm.prompts.calls import Calls
from fairagent.settings import BudgetSettings, Price, Section, Settings
from fairagent.settings.faults import no_such
from fairagent.storage.threads import Memo
from fairagent.types import Topic

if TYPE_CHECKING:
    from fairagent.evaluate.plan import Plan, SystemPlan
    from fairagent.evaluate.run import Run


JsonObject = dict[str, Any]
"""Plain values for JSON."""
Systems = Mapping[str, "SystemPlan"]


@dataclass(frozen=True, slots=True)
class MeasureInfo:
    """A measure of a kind of experiment: its name, and what it is in words.

    Of a `neutral` one neither a lower nor a higher value is better. `of_groups` says whether every dimension has a
    value of it, which classes of topics have in any case.
    """

    name: str
    definition: str = ""
    lower_is_better: bool = False
    neutral: bool = False
    of_groups: bool = False


class Subject(Protocol):
    """What systems are tried on; for most kinds the collection itself."""

    @property
    def topics(self) -> Mapping[str, Topic]:
        """The topics by their ids: queries or questions."""
        ...


class Trial(Protocol):
    """Makes the outcome of one topic under one system. Threads share it."""

    def outcome(self, system: str, id: str) -> Outcome:
        """The outcome; DataError and ModelError where the topic fails."""
        ...


@dataclass(frozen=True, slots=True)
class Chosen:
    """The `topics` that count, why others of the file do not, and for each dimension one that it is `judged` by.

    `unjudged` are those of the others that are searched all the same, so that run files have them.
    """

    topics: tuple[str, ...] = ()
    excluded: Mapping[str, str] = field(default_factory=dict)
    judged: Mapping[str, str] = field(default_factory=dict)
    unjudged: tuple[str, ...] = ()


@dataclass(slots=True)
class Checking:
    """An experiment while it is checked: what is known so far, and what is wrong.

    `collection` and `subject` are None where they cannot be opened, which is a problem then. `labeled` says that what
    another command than `evaluate` makes beforehand (LaMP's utility labels) has to be there.
    """

    problems: Problems
    environ: Mapping[str, str]
    labeled: bool
    collection: Collection | None
    subject: Subject | None
    dimensions: tuple[str, ...] = ()
    systems: Systems = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Opened:
    """What a trial is made from; `memo` holds what systems share."""

    plan: Plan
    collection: Collection
    subject: Subject
    models: Models
    memo: Memo


class ExperimentKind(Section, ABC):
    """One kind of experiment as its file describes it; the fields here are the keys that every kind has.

    The methods are called in their order here. Those of the checks add to `checking.problems` and go on.
    """

    model_config = ConfigDict(serialize_by_alias=True)

    kind: str
    """Which kind of experiment it is; ranking where the file does not say."""
    name: Name = Field(examples=["my experiment"])
    """What the run and its folder are called."""
    about: str = ""
    """What it should show; printed over the tables."""
    collection: str = Field("", examples=["collection.yaml"])
    """The collection's settings file, relative to this file."""
    topics: Topics = "all"
    """`all`, the first so many, `{sample: N}` (by seed, of each class its share), a list of ids, or a half of them,
    `tune` or `test`, by a hash of their ids."""
    baseline: str = ""
    """The system that the others are tested against; empty: the first."""
    seed: int = Field(0, ge=0)
    """Everything random derives from it: by topic in the systems, by measure in the statistics."""
    settings: Values = Field(default={})
    """Settings that all systems share."""
    systems: dict[Name, Values] = Field(min_length=1, examples=[{"BM25": {"profile": "engine"}, "agent": {}}])
    """Name -> settings that beat the shared ones; with a `profile`, laid over that."""
    prices: dict[str, Price] = Field(default={})
    """Name of a language model -> its price."""
    budget: BudgetSettings = BudgetSettings()
    """What all calls of all systems together may take each time that the experiment is run."""
    cache: str = ""
    """The folder of models' cached replies; empty: that of the settings."""
    expected: dict[Name, dict[str, float | dict[str, float]]] = Field(default={})
    """Numbers to compare with: system -> measure -> value, or system -> dimension -> measure -> value."""
    published: tuple[Published, ...] = ()
    """Numbers of a paper that nothing here measures, and why."""
    thresholds: Values = Field(
        default={}, alias="assert", examples=[{"gender": {"AWRF(unknown=ignore)@20": ">= .95", "female": ">= .4"}}]
    )
    """What has to be reached, else the exit code is 8: measure -> bound, or dimension -> measure or group -> bound, for
    all systems but the baseline; or system -> these. A bound is `">= .4"`, `"> baseline"`, `"<= baseline - .01"`."""

    engines: ClassVar[tuple[str, ...]] = ()
    """Engines that make sense in this kind alone."""
    searches: ClassVar[bool] = True
    """Whether systems search the collection, so that it is needed, and their indexes are."""
    draws_rankings: ClassVar[bool] = False
    """Whether rankings of systems are drawn at random, so that these may have `sampling.alpha`."""
    debiases: ClassVar[bool] = False
    """Whether systems may choose by DebiasRAG what is answered from, or read in its context."""
    attributes: ClassVar[bool] = False
    """Whether it measures what answers rest on."""
    classes: ClassVar[bool] = False
    """Whether dimensions are classes of the topics (bias types, domains): a topic has one, "" is all together."""
    tables_are_details: ClassVar[bool] = False
    """Whether its own `tables` say more of what the means say already."""
    exposes: ClassVar[bool] = False
    """Whether outcomes have `exposures`, so that `assert` may ask for a group's share."""
    ranks: ClassVar[bool] = False
    """Whether rankings alone are judged, so that systems with the same rankings are equal."""
    own_targets: ClassVar[bool] = False
    """Whether each system is measured by the target of its own search."""
    overall: ClassVar[str] = "relevance"
    """What tables call the dimension ""."""

    @property
    @abstractmethod
    def n(self) -> int:
        """How long the rankings of systems are, unless `adapt` says otherwise."""

    @property
    def needs_collection(self) -> bool:
        """Whether there has to be a collection even if no system searches."""
        return self.searches

    # --- reading and checking

    def relative_to(self, folder: Path) -> Self:
        """With paths from anywhere; in the file they are relative to its `folder`."""
        moved: dict[str, Any] = {"collection": self.collection and str((folder / self.collection).absolute())}
        for name in type(self).model_fields:
            if isinstance(section := getattr(self, name), FileSection):
                moved[name] = section.relative_to(folder)
        return self.model_copy(update=moved)

    def on(self, collection: Collection) -> Self:
        """With the values of keys that were left out and depend on the collection."""
        return self

    def targets(self, dimensions: Sequence[str]) -> Mapping[str, str]:
        """Dimension -> the name of the target that numbers depend on, where there is one."""
        return {}

    def open(self, collection: Collection) -> Subject:
        """What systems are tried on; DataError with every fault of its files."""
        return collection

    def subject_name(self, collection: Collection) -> str:
        """What tables call that."""
        return collection.name

    def fair_in(self, checking: Checking) -> tuple[str, ...]:
        """The dimensions that systems are fair in unless their settings say otherwise."""
        return checking.collection.groups.dimensions if checking.collection else ()

    def adapt(self, settings: Settings) -> Mapping[str, Any]:
        """Settings of a system that this kind decides, and their values."""
        return {}

    def templates(self, system: SystemPlan) -> tuple[str, ...]:
        """The ids of the prompt templates that a system uses, besides those of its search."""
        return ()

    def check(self, checking: Checking) -> None:
        """Add what is wrong with this kind's keys and with the systems."""

    def choose(self, checking: Checking) -> Chosen:
        """The topics that count; what keeps them from counting is no problem, unless none does."""
        if checking.subject is None:
            return Chosen()
        return Chosen(tuple(choose_topics(self, list(checking.subject.topics), checking)))

    def keep(self, chosen: Chosen, checking: Checking, models: Models) -> Chosen:
        """`chosen`, once the systems are known to be right and models can be opened."""
        return chosen

    def rows(self, systems: Systems) -> Systems:
        """What stands in the tables: the systems, or several rows for each."""
        return systems

    def length(self, rows: Systems) -> int:
        """How many documents outcomes are about, at most."""
        return self.n

    def judged_in(self, checking: Checking) -> tuple[str, ...]:
        """The dimensions that outcomes have values in, besides ""."""
        return checking.dimensions

    @abstractmethod
    def measured(self, dimensions: Sequence[str]) -> tuple[MeasureInfo, ...]:
        """What the rows are measured by, topic by topic."""

    @property
    def measured_together(self) -> tuple[str, ...]:
        """Measures that all topics have together, and no single one."""
        return ()

    @property
    def rows_together(self) -> tuple[str, ...]:
        """Rows that are made of several systems, which `expected` may name."""
        return ()

    @property
    def other_models(self) -> tuple[str, ...]:
        """The names of models that it uses besides those of the systems."""
        return ()

    def fingerprint(self, plan: Plan, subject: Subject, environ: Mapping[str, str]) -> JsonObject:
        """What outcomes depend on, besides what all kinds have in common."""
        return {}

    def provenance(self) -> JsonObject:
        """Where the run comes from, for people, besides what all kinds have in common."""
        return {}

    def calls_before(self, plan: Plan, subject: Subject) -> Iterator[tuple[str, Calls]]:
        """The calls that have to be made before the experiment can run: what for, and at most how many."""
        yield from ()

    def worst_case(self, row: str, plan: Plan, subject: Subject) -> Iterator[Calls]:
        """The most calls of a language model that a row makes besides those of its search."""
        yield from ()

    # --- running

    @abstractmethod
    def trial(self, opened: Opened) -> Trial:
        """What makes the outcomes."""

    # --- results

    def completed(
        self, outcomes: Mapping[tuple[str, str], Outcome], topics: Sequence[str], plan: Plan
    ) -> Mapping[tuple[str, str], Outcome]:
        """The outcomes, (topic, system) -> outcome, with values that need other rows; `topics` are done in all rows."""
        return outcomes

    def scope(self, n: int) -> str:
        """What outcomes are about, in a few words."""
        return f"rankings of {n}"

    def values_together(self, run: Run) -> Mapping[tuple[str, str, str], float]:
        """System, dimension and measure -> value, of those that all topics have together."""
        return {}

    def remarks(self, run: Run) -> Sequence[str]:
        """What is to be known of its tables."""
        return ()

    def tables(self, run: Run) -> Sequence[Table]:
        """Tables of its own: for the text and the page."""
        return ()

    def files(self, run: Run) -> Mapping[str, Table]:
        """Name of a CSV file -> the table in it."""
        return {}

    def records(self, run: Run) -> JsonObject:
        """What `--json` prints besides the comparisons."""
        return {}

    def page(self, run: Run) -> PageSection | None:
        """Its section of the page; None where there is nothing to show."""
        return None


def choose_topics(
    kind: ExperimentKind, there: Sequence[str], checking: Checking, what: str = "topic of the collection"
) -> list[str]:
    """Those of the topics `there` that the file chooses, in their order; a sample by group."""
    name = checking.collection.name if checking.collection and kind.collection else ""
    topics = kind.topics
    if topics in ("tune", "test"):
        return [id for id in there if half(name, id) == topics]
    if isinstance(topics, int):
        return list(there[:topics])
    if isinstance(topics, TopicSample):
        return list(sample_of(checking.subject.topics, there, topics.sample, kind.seed)) if checking.subject else []
    if not isinstance(topics, tuple):
        return list(there)
    for id in topics:
        if id not in there:
            checking.problems.add(SettingsError, f"topics: {no_such(what, id, there)}")
    return [id for id in there if id in topics]
