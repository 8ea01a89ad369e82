"""Reading an experiment: which kind it is of, and what is wrong with its keys.

A checked experiment as plain values: all that a worker needs to know, on this machine or another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, SerializeAsAny, ValidationError

from fairagent.errors import BackendUnavailable, SettingsError
from fairagent.evaluate.fields import Problems
from fairagent.evaluate.kind import ExperimentKind
from fairagent.evaluate.thresholds import Threshold
from fairagent.search.pipeline import searching_parts
from fairagent.settings import BudgetSettings, Part, Price, Section, Settings, plugins, read_yaml, validate
from fairagent.settings.section import keys_of, nearest

SHIPPED = {"ranking": "fairagent.evaluate.ranking.kind:RankingKind"}
"""The kind of this room -> `module:Class`, as text: nothing is imported before it is named."""
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
        raise SettingsError(f"kind: expected the name of a kind of experiment; there are: {', '.join(kinds())}")
    what = "kind of experiment"
    try:
        found = plugins.load(what, name, SHIPPED, GROUP, ExperimentKind, "fairagent.extend.ExperimentKind")
    except ValueError as error:
        lacking = isinstance(error.__cause__, ImportError)
        raise (BackendUnavailable if lacking else SettingsError)(f"kind: {error}") from error
    if found is None:
        raise SettingsError(f"kind: no {what} {name!r}; {nearest(name, kinds())}")
    loaded: type[ExperimentKind] = found
    return loaded


def shipped_with(has: Callable[[type[ExperimentKind]], bool]) -> list[str]:
    """The shipped kinds of which something is true."""
    return [name for name in plugins.ours(SHIPPED, GROUP) if has(kind_class(name))]


def as_kind(value: Any) -> ExperimentKind:
    """The experiment that plain values describe; what is wrong with them is raised."""
    return value if isinstance(value, ExperimentKind) else kind_class(value["kind"]).model_validate(value)


def read_experiment(file: Path, problems: Problems) -> ExperimentKind:
    """The experiment in `file`; of a faulty one what is right by itself, so that this is checked as well.

    Raises SettingsError, with the problems so far, where too little of the file is right to go on.
    """
    return read_values(read_yaml(file), file, problems)


def read_values(values: Mapping[str, Any], file: Path | str, problems: Problems) -> ExperimentKind:
    """The experiment of which a file would have these keys, as `read_experiment`; `file` is what errors call it."""
    raw = {"kind": DEFAULT, **values}
    cls = problems.attempt("", kind_class, raw["kind"])
    if cls is None:
        raise problems.error(file)
    known = keys_of(cls)
    foreign = {key: hint for key in raw if key not in known and (hint := _owners(str(key), raw["kind"]))}
    for hint in foreign.values():
        problems.add(SettingsError, hint)
    own = {key: value for key, value in raw.items() if key not in foreign}
    if described := problems.attempt("", validate, cls, own, str(file)):
        return described
    try:
        faulty = _faulty(cls, own)
        missing = {key: value for key, value in LEAST.items() if key not in own or key in faulty}
        kept = {key: value for key, value in own.items() if key not in faulty} | missing
        # In their places nothing is checked.
        nothing = {key: {} if isinstance(value, dict) else "" for key, value in missing.items()}
        return cls.model_validate(kept).model_copy(update=nothing)
    except ValidationError:
        raise problems.error(file) from None


def _faulty(cls: type[ExperimentKind], values: Mapping[str, Any]) -> set[object]:
    """The keys of which something is wrong."""
    try:
        cls.model_validate(values)
    except ValidationError as error:
        return {fault["loc"][0] for fault in error.errors() if fault["loc"]}
    return set()


def _owners(key: str, kind: str) -> str:
    """What is wrong with a key of other kinds; "" where no shipped kind has it."""
    having = shipped_with(lambda other: key in keys_of(other))
    if not having:
        return ""
    others = " and ".join(part for part in (", ".join(having[:-1]), having[-1]) if part)
    said = f"{key}: no key of kind {kind!r}; it is one of kind {others}"
    return said if len(having) > 1 else f"{said} (write `kind: {having[0]}`)"


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
        return self.settings.engine.searches

    @property
    def searching(self) -> tuple[Part, ...]:
        """The parts that a search asks."""
        return searching_parts(self.settings)

    @property
    def searching_with(self) -> tuple[str, ...]:
        """The ids of the templates that a search asks with."""
        return tuple(id for part in self.searching for id in part.asks_with(self.settings))


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
