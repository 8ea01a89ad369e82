"""Reading an experiment: which kind it is of, and what is wrong with its keys."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fairagent import plugins
from fairagent.errors import BackendUnavailable, SettingsError
from fairagent.evaluate.engine.kind import ExperimentKind
from fairagent.evaluate.engine.problems import Problems
from fairagent.settings import read_yaml, validate
from fairagent.settings.section import keys_of, nearest

PACKAGE = "fairagent.evaluate.kinds"
"""Where the shipped kinds are; named as text, so that nothing here depends on any of them."""
GROUP = "fairagent.kinds"
"""The entry points of other packages."""
DEFAULT = "ranking"
LEAST = {"name": "-", "systems": {"-": {}}}
"""What every file has to have."""


@cache
def shipped() -> dict[str, str]:
    """Name of a shipped kind -> `module:Class`."""
    folders = pkgutil.iter_modules(import_module(PACKAGE).__path__)
    tables: list[dict[str, str]] = [import_module(f"{PACKAGE}.{folder.name}").KINDS for folder in folders]
    return {name: place for table in tables for name, place in table.items()}


def kinds() -> tuple[str, ...]:
    """The kinds that there are: the shipped ones, then those of other packages."""
    return plugins.names(shipped(), GROUP)


def kind_class(name: object) -> type[ExperimentKind]:
    """The class of a kind; SettingsError where there is none, BackendUnavailable where it lacks a package."""
    if not isinstance(name, str):
        raise SettingsError(f"kind: expected the name of a kind of experiment; there are: {', '.join(kinds())}")
    what = "kind of experiment"
    try:
        found = plugins.load(what, name, shipped(), GROUP, ExperimentKind, "fairagent.extend.ExperimentKind")
    except ValueError as error:
        lacking = isinstance(error.__cause__, ImportError)
        raise (BackendUnavailable if lacking else SettingsError)(f"kind: {error}") from error
    if found is None:
        raise SettingsError(f"kind: no {what} {name!r}; {nearest(name, kinds())}")
    loaded: type[ExperimentKind] = found
    return loaded


def shipped_with(has: Callable[[type[ExperimentKind]], bool]) -> list[str]:
    """The shipped kinds of which something is true."""
    return [name for name in shipped() if has(kind_class(name))]


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
