"""Reading an experiment: its kind, what is wrong with its keys, and its plan, which is all that a worker needs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, SerializeAsAny, ValidationError

from fairagent.errors import BackendUnavailable, SettingsError
from fairagent.evaluate.fields import Problems
from fairagent.evaluate.kind import ExperimentKind
from fairagent.evaluate.thresholds import Threshold
from fairagent.search.pipeline import searching_parts
from fairagent.settings import BudgetSettings, Part, Price, Section, Settings, plugins, validate
from fairagent.settings.section import keys_of, nearest

SHIPPED = {"ranking": "fairagent.evaluate.ranking.kind:RankingKind"}
"""The kind that needs no add-on -> `module:Class`, as text: nothing is imported before it is named."""
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
        loaded: type[ExperimentKind] | None = plugins.load(
            what, name, SHIPPED, GROUP, ExperimentKind, "fairagent.extend.ExperimentKind"
        )
    except ValueError as error:
        lacking = isinstance(error.__cause__, ImportError)
        raise (BackendUnavailable if lacking else SettingsError)(f"kind: {error}") from error
    if loaded is None:
        raise SettingsError(f"kind: no {what} {name!r}; {nearest(name, kinds())}")
    return loaded


def shipped_kinds() -> dict[str, type[ExperimentKind]]:
    """The kinds of fairagent itself."""
    return {name: kind_class(name) for name in plugins.ours(SHIPPED, GROUP)}


def as_kind(value: Any) -> ExperimentKind:
    """The experiment that plain values describe."""
    return value if isinstance(value, ExperimentKind) else kind_class(value["kind"]).model_validate(value)


def read_values(values: Mapping[str, Any], file: Path | str, problems: Problems) -> ExperimentKind:
    """The experiment of which a file has these keys; of a faulty one what is right by itself, so that this is checked.

    `file` is what errors call it. Raises SettingsError, with the problems so far, where too little is right to go on.
    """
    raw = {"kind": DEFAULT, **values}
    cls = problems.attempt("", kind_class, raw["kind"])
    if cls is None:
        raise problems.error(file)
    known, own = keys_of(cls), dict[str, Any]()
    for key, value in raw.items():
        having = [] if key in known else [name for name, other in shipped_kinds().items() if key in keys_of(other)]
        if having:
            others = " and ".join(part for part in (", ".join(having[:-1]), having[-1]) if part)
            hint = f" (write `kind: {having[0]}`)" if len(having) == 1 else ""
            problems.add(SettingsError, f"{key}: no key of kind {raw['kind']!r}; it is one of kind {others}{hint}")
        else:
            own[key] = value
    if described := problems.attempt("", validate, cls, own, str(file)):
        return described
    faulty: set[object] = set()
    try:
        cls.model_validate(own)
    except ValidationError as error:
        faulty = {fault["loc"][0] for fault in error.errors() if fault["loc"]}
    missing = {key: value for key, value in LEAST.items() if key not in own or key in faulty}
    try:
        right = cls.model_validate({key: value for key, value in own.items() if key not in faulty} | missing)
    except ValidationError:
        raise problems.error(file) from None
    # In their places nothing is checked.
    return right.model_copy(update={key: {} if isinstance(value, dict) else "" for key, value in missing.items()})


class SystemPlan(Section):
    """One row of the tables: its system's settings, and its index's folder.

    `asks` are the ids of the prompt templates that it uses, `row` what its kind of experiment says of it alone.
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
        """The parts that a search uses."""
        return searching_parts(self.settings)

    @property
    def searching_with(self) -> tuple[str, ...]:
        """The ids of the templates that a search uses."""
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
