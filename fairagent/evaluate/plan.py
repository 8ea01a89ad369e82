"""Reading an experiment: its kind, what is wrong with its keys, its systems, and the plan that workers need."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, Field, SerializeAsAny, ValidationError

from fairagent.collection import Collection
from fairagent.collection.exposure import ExposureMeter
from fairagent.collection.records import listed
from fairagent.collection.targets import open_choice, read_target, target_choice
from fairagent.errors import BackendUnavailable, SettingsError, UsageError
from fairagent.evaluate.kind import SEARCH, Checking, Chosen, ExperimentKind, Opened, Problems
from fairagent.evaluate.thresholds import Threshold
from fairagent.llm.models import Models
from fairagent.llm.prompts import source_relative_to
from fairagent.retrieve.site import Site
from fairagent.search.agent import FairAgent
from fairagent.search.live import index_folder
from fairagent.search.pipeline import build, parts_of, resolved, searching_parts
from fairagent.settings import (
    BudgetSettings,
    Part,
    Price,
    Section,
    Settings,
    Without,
    lay,
    load_settings,
    plugins,
    validate,
)
from fairagent.settings.faults import keys_of, nearest, no_such
from fairagent.settings.parts import SLOTS
from fairagent.storage.files import file_name
from fairagent.storage.threads import Memo
from fairagent.types import Ranking

SHIPPED = {
    "ranking": "fairagent.evaluate.ranking:RankingKind",
    "answers": "fairagent.evaluate.questions:AnswersKind",
}
"""The kinds that need no add-on -> `module:Class`, as text: nothing is imported before it is named."""
GROUP = "fairagent.kinds"
"""The entry points of add-ons, fairagent's own and those of other packages."""
DEFAULT = "ranking"
LEAST = {"name": "-", "systems": {"-": {}}}
"""What every file has to have."""


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


def read_values(values: Mapping[str, Any], file: Path | str, problems: Problems) -> ExperimentKind:
    """The experiment of which `file` has these keys; of a faulty one what is right by itself, to be checked as well."""
    raw = {"kind": DEFAULT, **values}
    cls = problems.attempt("", kind_class, raw["kind"])
    if cls is None:
        raise problems.error(file)
    known, given = keys_of(cls), dict[str, Any]()
    for key, value in raw.items():
        having = [] if key in known else [name for name, other in shipped_kinds().items() if key in keys_of(other)]
        if having:
            others = " and ".join(part for part in (", ".join(having[:-1]), having[-1]) if part)
            hint = f" (write `kind: {having[0]}`)" if len(having) == 1 else ""
            problems.add(SettingsError, f"{key}: no key of kind {raw['kind']!r}; it is one of kind {others}{hint}")
        else:
            given[key] = value
    if described := problems.attempt("", validate, cls, given, str(file)):
        return described
    faulty: set[object] = set()
    try:
        cls.model_validate(given)
    except ValidationError as error:
        faulty = {fault["loc"][0] for fault in error.errors() if fault["loc"]}
    missing = {key: value for key, value in LEAST.items() if key not in given or key in faulty}
    try:
        right = cls.model_validate({key: value for key, value in given.items() if key not in faulty} | missing)
    except ValidationError:
        raise problems.error(file) from None
    # In their places nothing is checked.
    return right.model_copy(update={key: {} if isinstance(value, dict) else "" for key, value in missing.items()})


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
        """Whether it has a search engine."""
        return self.settings.engine.searches

    @property
    def searching(self) -> tuple[Part, ...]:
        """The parts that a search uses."""
        return searching_parts(self.settings)

    @property
    def searching_with(self) -> tuple[str, ...]:
        """The ids of the templates that a search uses."""
        return tuple(id for part in self.searching for id in part.asks_with(self.settings))

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
        """All that run."""
        return {**self.systems, **self.without_loops}

    @property
    def jobs(self) -> list[tuple[str, str]]:
        """Each system with each of its topics, in the order in which they are done."""
        systems = list(self.all_systems)
        judged = [(system, topic) for topic in self.topics for system in systems]
        return judged + [(system, topic) for system, topics in self.unjudged.items() for topic in topics]


# --- systems ---------------------------------------------------------------------------------------------------------

OF_ALL: dict[str, Any] = {"budget": BudgetSettings(), "prices": {}, "cache": ""}
"""Settings that are one for all systems, as a system has them."""
CHECKED = ("engine", "loop", "rerank", "debias", "attribute")
"""The slots whose parts have to work with what is on this machine, if systems use them."""
NOT_OF_A_SYSTEM = {
    "n": "it is the largest cut-off of the measures, or `context: {documents: ...}` where questions are answered",
    "collection": "all systems search the same",
    **dict.fromkeys(OF_ALL, "it is one for all systems and stands at the top of the file"),
}
"""Settings that an experiment decides, and why."""


@dataclass(frozen=True, slots=True)
class System:
    """What answers topics."""

    agent: FairAgent
    site: Site

    @property
    def sees_groups(self) -> bool:
        """Whether its rankings depend on the documents' groups."""
        return self.site.settings.sees_groups


def read_systems(kind: ExperimentKind, folder: Path, checking: Checking) -> dict[str, SystemPlan]:
    """The systems whose settings are right, with paths that are relative to `folder`; `index` is still empty."""
    problems = checking.problems

    def read(where: str, *layers: Mapping[str, Any]) -> Settings | None:
        """The settings of these layers; adds what is wrong, and what is not a system's to set."""
        values: dict[str, Any] = {"dimensions": checking.dimensions}
        for layer in layers:
            if isinstance(prompts := layer.get("prompts"), str):
                layer = {**layer, "prompts": source_relative_to(prompts, folder)}
            values = lay(values, {key: value for key, value in layer.items() if key not in NOT_OF_A_SYSTEM})
        for key in (one for one in layers[-1] if one in NOT_OF_A_SYSTEM):
            problems.add(SettingsError, f"{where or 'settings'}.{key} cannot be set: {NOT_OF_A_SYSTEM[key]}")
        return problems.attempt(where, load_settings, None, lay(values, {"n": kind.n}), checking.environ)

    shared = kind.settings if read("", kind.settings) else {}
    systems: dict[str, SystemPlan] = {}
    files: dict[str, str] = {}
    for name, values in kind.systems.items():
        where = f"systems.{name}"
        if settings := read(where, shared, values):
            _check_goes_with(kind, settings, where, problems)
            parts = {slot: part for slot in SLOTS if isinstance(part := getattr(settings, slot), Part)}
            moved = {slot: part.relative_to(folder) for slot, part in parts.items()}
            settings = settings.model_copy(update={**OF_ALL, **moved, **kind.adapt(settings)})
            system = SystemPlan(settings=settings, index="")
            asks = (*system.searching_with, *kind.templates(system))
            systems[name] = system.model_copy(update={"asks": asks})
        other = files.setdefault(file_name(name).casefold(), name)
        if other != name:
            problems.add(SettingsError, f"{where}: its run file would be that of {other!r}; change one of the names")
    return systems


def _check_goes_with(kind: ExperimentKind, settings: Settings, where: str, problems: Problems) -> None:
    """Add what makes no sense in this kind of experiment."""
    engine, others = settings.engine.kind, shipped_kinds()
    having = [name for name, one in others.items() if engine in one.engines]
    if having and engine not in kind.engines:
        problems.add(SettingsError, f"{where}.engine: {engine!r} ranks nothing; it is there for `{listed(having)}`")
    if settings.sampling.alpha is not None:
        random = [part for part in (settings.rerank, *settings.rerank.inner) if part.at_random]
        if "sampling" not in kind.uses:
            having = [name for name, one in others.items() if "sampling" in one.uses]
            message = f"{where}.sampling.alpha cannot be set: nothing is drawn here; it is there for {listed(having)}"
            problems.add(SettingsError, message)
        elif random:
            one_draw = f"sampling.alpha cannot draw from rerank: {random[0]}, which is one draw itself"
            problems.add(SettingsError, f"{where}: {one_draw}; leave out one of them")
    if "debias" not in kind.uses and not settings.debias.idle(settings):
        having = [name for name, one in others.items() if "debias" in one.uses]
        message = f"{where}.debias cannot be set: it chooses what questions are answered from ({listed(having)})"
        problems.add(SettingsError, message)


def overridden(kind: ExperimentKind, environ: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """System -> what its profile sets in the place of the shared `settings`; nothing of systems that cannot be read.

    Its own keys stand above both, and are left out.
    """
    by_system = {}
    for name, values in kind.systems.items():
        plain = {key: value for key, value in values.items() if key != "profile"}
        try:
            before, now = (load_settings(None, lay(kind.settings, one), environ) for one in (plain, values))
        except SettingsError:
            continue
        lines = []
        for key, value in kind.settings.items():
            shared, theirs = getattr(before, key), getattr(now, key)
            pairs = [(key, shared, theirs)]
            if isinstance(value, Mapping) and isinstance(shared, Section) and type(shared) is type(theirs):
                pairs = [
                    (f"{key}.{one}", getattr(shared, one), getattr(theirs, one))
                    for one in value
                    if hasattr(shared, one)
                ]
            lines += [f"{place}: {new}, not {old}" for place, old, new in pairs if old != new]
        by_system[name] = tuple(lines)
    return {name: lines for name, lines in by_system.items() if lines}


def check_systems(kind: ExperimentKind, checking: Checking, chosen: Chosen, models: Models) -> dict[str, SystemPlan]:
    """The systems with their indexes' folders; adds what does not fit the collection, its index or this machine."""
    assert checking.collection is not None
    placed: dict[str, SystemPlan] = {}
    analyzers: dict[str, tuple[str, str]] = {}
    for name, system in checking.systems.items():
        where, settings, problems = f"systems.{name}", system.settings, checking.problems
        index = index_folder(checking.collection, settings)
        system = system.model_copy(update={"index": str(index.absolute())})
        site = site_of(system, checking.collection, models)
        if kind.uses >= SEARCH:
            site = resolved(site, preparing=True)
            system, settings = system.model_copy(update={"settings": site.settings}), site.settings
        kinds = {one: target_choice(settings.target, one, site.collection) for one in settings.dimensions}
        if lacking := [dimension for dimension, target in kinds.items() if target is None]:
            problems.add(UsageError, open_choice(lacking, site.collection), name)
        if settings.sees_groups or kind.targets(settings.dimensions) is None:
            steers = {dimension: read_target(target).name for dimension, target in kinds.items() if target is not None}
            system = system.model_copy(update={"steers": steers})
        # Everything that depends on the dimensions, each on a topic that counts for it, so that there is a target.
        for dimension in (one for one in kinds if one not in lacking):
            alone, topic = settings.model_copy(update={"dimensions": (dimension,)}), chosen.judged.get(dimension, "")
            problems.attempt(where, ExposureMeter.make, site.collection, topic, alone, Ranking((), np.zeros(0)))
        for slot in (slot for slot in CHECKED if slot in kind.uses):
            # What is wrong with an index is listed once, whichever systems search it.
            place = "" if slot == "engine" else f"{where}.{slot}"
            problems.attempt_for(name, place, getattr(settings, slot).check, site)
        if system.asks:
            problems.attempt(where, _check_model, site)
        other, analyzer = analyzers.setdefault(system.index, (name, settings.analyzer))
        if analyzer != settings.analyzer:
            problems.add(
                SettingsError,
                f"{where}: its analyzer is {settings.analyzer!r}, that of {other!r} {analyzer!r}: "
                "give one of them an index of its own (index: FOLDER)",
            )
        placed[name] = system
    return placed


def check_machine(kind: ExperimentKind, checking: Checking, instead: Collection, models: Models) -> None:
    """Add what systems lack on this machine (models, packages, keys) where an empty collection stands for theirs."""
    for name, system in checking.systems.items():
        site, lacks = site_of(system, instead, models), Problems()
        for slot in (slot for slot in CHECKED if slot in kind.uses):
            lacks.attempt("", getattr(system.settings, slot).check, site)
        if system.asks:
            lacks.attempt("", _check_model, site)
        for error in lacks.errors:
            if isinstance(error, BackendUnavailable):
                checking.problems.add(type(error), f"systems.{name}: {error}")


def _check_model(site: Site) -> None:
    assert site.prompts
    site.models.open(site.settings.model)


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
