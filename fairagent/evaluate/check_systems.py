"""Checking the systems of an experiment: kinds, options and settings, then what the collection says to them."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fairagent.assemble import index_folder
from fairagent.collection import Collection
from fairagent.errors import SettingsError
from fairagent.evaluate.engines import check_dense, check_lucene, check_splade
from fairagent.evaluate.experiment_file import ExperimentFile
from fairagent.files import file_name
from fairagent.evaluate.options import Options
from fairagent.evaluate.plan import SystemPlan
from fairagent.evaluate.problems import Problems
from fairagent.evaluate.systems import KINDS
from fairagent.evaluate.topics import JudgedTopics
from fairagent.exposure import ExposureMeter
from fairagent.llm.models import Models
from fairagent.prompts import source_beside
from fairagent.settings import BudgetSettings, Settings, load_settings, merge, validate
from fairagent.types import Ranking

OF_ALL: dict[str, Any] = {"budget": BudgetSettings(), "prices": {}, "cache": ""}
"""What stands in a system's settings in the place of those that are one for all systems."""
FILES = ("library", "lexicon")
"""Files of `debiasing`, which are looked for beside the experiment's."""
NOT_OF_A_SYSTEM = {
    "n": "it is the largest cut-off of the measures, or `context: {documents: ...}` where questions are answered",
    "collection": "all systems search the same",
    **dict.fromkeys(OF_ALL, "it is one for all systems and stands at the top of the file"),
}
"""Settings that an experiment decides, and why."""


def read_systems(
    described: ExperimentFile,
    folder: Path,
    dimensions: tuple[str, ...],
    n: int,
    problems: Problems,
    environ: Mapping[str, str],
) -> dict[str, SystemPlan]:
    """The systems whose kind, options and settings are right; `index` is still empty.

    `folder` is the file's: folders of prompt templates are looked for beside it.
    """
    shared = _own(described.settings, folder, "settings", problems)
    if problems.attempt("", _settings, [shared], dimensions, n, environ) is None:
        shared = {}
    systems: dict[str, SystemPlan] = {}
    files: dict[str, str] = {}
    for name, values in described.systems.items():
        where = f"systems.{name}"
        given = {key: value for key, value in values.items() if key not in ("system", "options")}
        own = _own(given, folder, where, problems)
        kind = str(values.get("system", "agent"))
        settings = problems.attempt(where, _settings, [shared, own], dimensions, n, environ)
        options = _options(kind, values.get("options"), where, problems)
        if options and (only := KINDS[kind].only) and not getattr(described, only):
            there = "to answer `questions`" if only == "questions" else f"for `{only}`"
            problems.add(SettingsError, f"{where}.system: {kind!r} ranks nothing; it is there {there}")
        if settings and settings.debiasing.kind != "none" and not described.questions:
            chooses = "it chooses what `questions` are answered from"
            problems.add(SettingsError, f"{where}.debiasing cannot be set: {chooses}")
        if settings and options:
            options = options.beside(folder)
            # Each query from the same weights: an outcome depends on no other.
            debiasing = settings.debiasing.model_copy(update={"streaming": False})
            update, task = {**OF_ALL, "debiasing": debiasing}, None
            if described.questions:
                # It finds what is answered from, and no more.
                update["n"], task = settings.context.documents if KINDS[kind].build else 1, described.questions.task
            chosen = settings.model_copy(update=update)
            local = bool(described.questions and described.questions.local)
            systems[name] = SystemPlan(
                kind=kind, options=options.model_dump(), settings=chosen, index="", task=task, local=local
            )
        other = files.setdefault(file_name(name).casefold(), name)
        if other != name:
            problems.add(SettingsError, f"{where}: its run file would be that of {other!r}; change one of the names")
    return systems


def _own(values: Mapping[str, Any], folder: Path, where: str, problems: Problems) -> dict[str, Any]:
    """The settings that are a system's to make; adds the others as problems."""
    if isinstance(prompts := values.get("prompts"), str):
        values = {**values, "prompts": source_beside(prompts, folder)}
    if isinstance(debiasing := values.get("debiasing"), dict):
        files = {key: str((folder / str(debiasing[key])).absolute()) for key in FILES if debiasing.get(key)}
        values = {**values, "debiasing": {**debiasing, **files}}
    for key in values:
        if key in NOT_OF_A_SYSTEM:
            problems.add(SettingsError, f"{where}.{key} cannot be set: {NOT_OF_A_SYSTEM[key]}")
    return {key: value for key, value in values.items() if key not in NOT_OF_A_SYSTEM}


def _settings(
    layers: list[dict[str, Any]], dimensions: tuple[str, ...], n: int, environ: Mapping[str, str]
) -> Settings:
    return load_settings(None, merge({"dimensions": dimensions}, *layers, {"n": n}, levels=2), environ)


def _options(kind: str, given: Any, where: str, problems: Problems) -> Options | None:
    if kind not in KINDS:
        near = difflib.get_close_matches(kind, KINDS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(KINDS)}"
        problems.add(SettingsError, f"{where}.system: no kind {kind!r}; {hint}")
        return None
    if not isinstance(given, dict | None):
        problems.add(SettingsError, f"{where}.options: expected `key: value` lines, found {type(given).__name__}")
        return None
    return problems.attempt("", validate, KINDS[kind].options, given or {}, f"{where}.options")


def check_systems(
    systems: Mapping[str, SystemPlan],
    collection: Collection,
    judged: Mapping[str, JudgedTopics],
    problems: Problems,
    models: Models,
) -> dict[str, SystemPlan]:
    """The systems with their indexes' folders; adds what does not fit the collection, its index or this machine."""
    placed: dict[str, SystemPlan] = {}
    analyzers: dict[str, tuple[str, str]] = {}
    for name, system in systems.items():
        where, settings = f"systems.{name}", system.settings
        folder = str(index_folder(collection, settings).absolute())
        options = KINDS[system.kind].options(**system.options)
        _check_groups(where, settings, options, collection, judged, problems)
        if KINDS[system.kind].indexed:
            problems.attempt("", check_lucene, collection, folder, settings)
        if options.needs_embeddings:
            problems.attempt("", check_dense, collection, folder, options.model)
        if options.needs_splade:
            problems.attempt("", check_splade, collection, folder, options.model)
        if system.asks_model:
            problems.attempt(where, _check_model, settings, models)
        other, analyzer = analyzers.setdefault(folder, (name, settings.retrieval.analyzer))
        if analyzer != settings.retrieval.analyzer:
            problems.add(
                SettingsError,
                f"{where}: its analyzer is {settings.retrieval.analyzer!r}, that of {other!r} {analyzer!r}: "
                "give one of them an index of its own (index: FOLDER)",
            )
        placed[name] = system.model_copy(update={"index": folder})
    return placed


def _check_groups(
    where: str,
    settings: Settings,
    options: Options,
    collection: Collection,
    judged: Mapping[str, JudgedTopics],
    problems: Problems,
) -> None:
    """Try everything that depends on the dimensions: each on a topic that counts for it, so that there is a target."""
    nothing = Ranking((), np.zeros(0))
    for dimension in settings.dimensions:
        topic = next(iter(judged[dimension].counted if dimension in judged else ()), "")
        alone = settings.model_copy(update={"dimensions": (dimension,)})
        problems.attempt(where, ExposureMeter.make, collection, topic, alone, nothing)
    problems.attempt(f"{where}.options", options.check, collection, settings)


def _check_model(settings: Settings, models: Models) -> None:
    from fairagent.prompts import Prompts

    Prompts(settings.prompts)
    models.open(settings.model)
