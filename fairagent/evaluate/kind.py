"""What a kind of experiment is: the keys of its file, and what is done with them from the checks to the results.

A kind is a subclass of `ExperimentKind`. An experiment file names it (`kind: utility`), and its fields are the keys
that such a file may have. Kinds of other packages come through the entry points `fairagent.kinds`.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, ParamSpec, Protocol, Self, TypeVar

from pydantic import BeforeValidator, ConfigDict, Field

from fairagent.collection import Collection, load_collection
from fairagent.collection.collection import DocumentsInMemory
from fairagent.collection.table import JoinedGroups
from fairagent.errors import BackendUnavailable, FairAgentError, SettingsError
from fairagent.evaluate.outcome import Outcome
from fairagent.evaluate.tables import PageSection, Table
from fairagent.llm.models import Models
from fairagent.llm.prompts import Calls
from fairagent.settings import BudgetSettings, Price, Section, Settings, plugins
from fairagent.settings.faults import nearest, no_such
from fairagent.storage.threads import Memo
from fairagent.types import Topic
from fairagent.types.common import counted

if TYPE_CHECKING:
    from fairagent.evaluate.plan import Plan, SystemPlan
    from fairagent.evaluate.run import Results


JsonObject = dict[str, Any]
"""Plain values for JSON."""
Systems = Mapping[str, "SystemPlan"]
P = ParamSpec("P")
T = TypeVar("T")


class TopicSample(Section):
    """Topics drawn by the experiment's seed."""

    sample: int = Field(ge=1)
    """How many: of each class of questions, or group of topics, its share."""


def _topics(value: Any) -> Any:
    if isinstance(value, list | tuple) and value and all(isinstance(id, str | int) for id in value):
        return tuple(map(str, value))
    number = isinstance(value, int) and not isinstance(value, bool) and value >= 1
    if number or value in ("all", "tune", "test") or isinstance(value, Mapping | TopicSample):
        return value
    raise ValueError(
        "expected `all`, `tune` or `test`, the number of topics to take from the beginning, {sample: NUMBER}, or a "
        "list of ids"
    )


def _text(value: Any) -> Any:
    # YAML reads a number where a name is meant.
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


Name = Annotated[str, BeforeValidator(_text), Field(max_length=60, pattern=r"^[^\s](?:[^\n\r\t]*[^\s])?$")]
Values = Annotated[dict[str, Any], BeforeValidator(lambda value: {} if value is None else value)]
Topics = Annotated[str | int | tuple[str, ...] | TopicSample, BeforeValidator(_topics)]


class Published(Section):
    """Numbers of a paper that nothing here measures; they stand beside the results as they are."""

    why: str = Field(min_length=1)
    """Why they are not measured here."""
    values: dict[Name, dict[Name, float]]
    """Row of the paper's table -> column -> value."""


class FileSection(Section):
    """A section of an experiment file that names files, relative to that file, in its fields `paths`."""

    paths: ClassVar[tuple[str, ...]] = ("path",)

    def relative_to(self, folder: Path) -> Self:
        """With paths from anywhere."""
        return self.model_copy(update={name: str((folder / getattr(self, name)).absolute()) for name in self.paths})


class Problems:
    """A growing list of `errors`, with the systems that have a message (`of`); `check` raises them together."""

    def __init__(self) -> None:
        self.errors: list[FairAgentError] = []
        self.of: dict[str, list[str]] = {}

    def attempt(self, where: str, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """What `work` gives; None, and its error noted with its place (if any), where it raises one of ours."""
        return self.attempt_for("", where, work, *args, **kwargs)

    def attempt_for(self, system: str, where: str, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """The same for one system, which the place need not name."""
        try:
            return work(*args, **kwargs)
        except FairAgentError as error:
            self.add(type(error), f"{where}: {error}" if where else str(error), system)
            return None

    def add(self, type: type[FairAgentError], message: str, system: str = "") -> None:
        """Note one problem, unless it is there already: systems share faults as they share settings."""
        if system:
            self.of.setdefault(message, []).append(system)
        if message not in map(str, self.errors):
            self.errors.append(type(message))

    def check(self, file: Path | str) -> None:
        """Raise one error of the first problem's type that lists all of them; nothing where there is no problem."""
        if self.errors:
            first = f"experiment {file}: {counted(len(self.errors), 'problem')}, nothing was run"
            listed = ["- " + str(error).replace("\n", "\n  ") for error in self.errors]
            raise type(self.errors[0])("\n".join([first, *listed]))


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
    """What systems are tried on; for most kinds the collection itself. With a `name`, tables call it that."""

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


@dataclass(frozen=True, slots=True)
class KindResults:
    """What a kind of experiment makes of a run, besides the comparisons that all kinds have.

    `tables` are for the text and the page, `files` the CSV files by their names, `remarks` what is to be known of them,
    `page` its section of the page, `records` what `--json` prints. `together` has system, dimension and measure ->
    value of what all topics have together.
    """

    tables: Sequence[Table] = ()
    files: Mapping[str, Table] = field(default_factory=dict)
    remarks: Sequence[str] = ()
    page: PageSection | None = None
    records: JsonObject = field(default_factory=dict)
    together: Mapping[tuple[str, str, str], float] = field(default_factory=dict)


NO_COLLECTION = Collection("no collection", {}, {}, JoinedGroups([]), {}, (), DocumentsInMemory(()))
SEARCH = frozenset({"engine", "loop", "rerank"})
"""The sections of the settings that a search uses."""


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

    uses: ClassVar[frozenset[str]] = SEARCH
    """The sections of the settings that systems use: those of a search, `sampling` where rankings are drawn at random,
    `debias` where DebiasRAG may choose what is answered from, `attribute` where what answers rest on is measured."""
    engines: ClassVar[tuple[str, ...]] = ()
    """Engines that make sense in this kind alone."""
    classes: ClassVar[bool] = False
    """Whether dimensions are classes of the topics (bias types, domains): a topic has one, "" is all together."""
    exposes: ClassVar[bool] = False
    """Whether outcomes have `exposures`, so that `assert` may ask for a group's share."""
    ranks: ClassVar[bool] = False
    """Whether rankings alone are judged, so that systems with the same rankings are equal."""
    overall: ClassVar[str] = "relevance"
    """What tables call the dimension ""."""
    scope: ClassVar[str] = "rankings of {n}"
    """What outcomes are about, in a few words."""

    @property
    @abstractmethod
    def n(self) -> int:
        """How long the rankings of systems are, unless `adapt` says otherwise."""

    @property
    def needs_collection(self) -> bool:
        """Whether there has to be a collection even if no system searches."""
        return self.uses >= SEARCH

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

    def targets(self, dimensions: Sequence[str]) -> Mapping[str, str] | None:
        """Dimension -> the name of the target that it is judged by; None: each system is, by that of its own search."""
        return {}

    def open(self, collection: Collection) -> Subject:
        """What systems are tried on; DataError with every fault of its files."""
        return collection

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
    def other_names(self) -> tuple[str, ...]:
        """Rows made of several systems, which `expected` may name, and models besides the systems' that have prices."""
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

    @abstractmethod
    def trial(self, opened: Opened) -> Trial:
        """What makes the outcomes."""

    def completed(
        self, outcomes: Mapping[tuple[str, str], Outcome], topics: Sequence[str], plan: Plan
    ) -> Mapping[tuple[str, str], Outcome]:
        """The outcomes, (topic, system) -> outcome, with values that need other rows; `topics` are done in all rows."""
        return outcomes

    def results(self, run: Results) -> KindResults:
        """What it shows of a run besides the comparisons."""
        return KindResults()


# --- the kinds that there are, and the topics that a file chooses ---------------------------------------------------

SHIPPED = {
    "ranking": "fairagent.evaluate.ranking:RankingKind",
    "answers": "fairagent.evaluate.questions:AnswersKind",
}
"""The kinds that need no add-on -> `module:Class`, as text: nothing is imported before it is named."""
GROUP = "fairagent.kinds"
"""The entry points of add-ons, fairagent's own and those of other packages."""


def kinds() -> tuple[str, ...]:
    """The kinds that there are: ours, then those of add-ons."""
    return plugins.names(SHIPPED, GROUP)


def kind_class(name: object) -> type[ExperimentKind]:
    """The class of a kind; SettingsError where there is none, BackendUnavailable where it lacks a package."""
    if not isinstance(name, str):
        raise SettingsError(f"kind: expected the name of a kind of experiment; {nearest('', kinds())}")
    what, called = "kind of experiment", "fairagent.extend.ExperimentKind"
    try:
        loaded: type[ExperimentKind] | None = plugins.load(what, name, SHIPPED, GROUP, ExperimentKind, called)
    except ValueError as error:
        lacking = isinstance(error.__cause__, ImportError)
        raise (BackendUnavailable if lacking else SettingsError)(f"kind: {error}") from error
    if loaded is None:
        raise SettingsError(f"kind: {no_such(what, name, kinds())}")
    return loaded


def shipped_kinds() -> dict[str, type[ExperimentKind]]:
    """The kinds of fairagent itself."""
    return {name: kind_class(name) for name in plugins.ours(SHIPPED, GROUP)}


def as_kind(value: Any) -> ExperimentKind:
    """The experiment that plain values describe."""
    return value if isinstance(value, ExperimentKind) else kind_class(value["kind"]).model_validate(value)


def open_collection(kind: ExperimentKind) -> Collection:
    """The collection that an experiment names; where it needs none, an empty one. Raises what loading it raises."""
    return load_collection(Path(kind.collection)) if kind.collection else NO_COLLECTION


def choose_topics(
    kind: ExperimentKind, there: Sequence[str], checking: Checking, what: str = "topic of the collection"
) -> list[str]:
    """Those of the topics `there` that the file chooses, in their order; a sample by group."""
    topics = kind.topics
    if topics in ("tune", "test"):
        name = checking.collection.name if checking.collection and kind.collection else ""
        return [id for id in there if half(name, id) == topics]
    if isinstance(topics, int):
        return list(there[:topics])
    if isinstance(topics, TopicSample):
        of = checking.subject.topics if checking.subject else {}
        return list(sample_of(of, there, topics.sample, kind.seed)) if checking.subject else []
    if not isinstance(topics, tuple):
        return list(there)
    for id in topics:
        if id not in there:
            checking.problems.add(SettingsError, f"topics: {no_such(what, id, there)}")
    return [id for id in there if id in topics]


def half(collection: str, topic: str) -> Literal["tune", "test"]:
    """Which half a topic is in: by a hash of the collection's name and the topic's id, so for ever."""
    return "tune" if _hash(f"{collection}/{topic}")[-1] % 2 == 0 else "test"


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def sample_of(topics: Mapping[str, Topic], ids: Sequence[str], count: int, seed: int) -> tuple[str, ...]:
    """`count` of the `ids` in their order, of each group of the `topics` its share; within one, the smallest hashes."""
    ordered: dict[str, list[str]] = {}
    for id in sorted(ids, key=lambda id: _hash(f"{seed}/{id}")):
        ordered.setdefault(topics[id].group, []).append(id)
    count = min(count, len(ids))
    quotas = {name: count * len(of) // len(ids) for name, of in ordered.items()}
    left = sorted(ordered, key=lambda name: (-(count * len(ordered[name]) % len(ids)), name))
    for name in left[: count - sum(quotas.values())]:
        quotas[name] += 1
    chosen = {id for name, of in ordered.items() for id in of[: quotas[name]]}
    return tuple(id for id in ids if id in chosen)
