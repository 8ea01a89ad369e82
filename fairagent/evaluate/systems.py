"""The systems of an experiment: settings laid over a profile, checked together, and built as anyone's pipeline is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fairagent.agent import FairAgent
from fairagent.collection import Collection
from fairagent.errors import SettingsError
from fairagent.evaluate.experiment_file import ExperimentFile
from fairagent.evaluate.plan import NO_RETRIEVAL, SystemPlan
from fairagent.evaluate.problems import Problems
from fairagent.evaluate.topics import JudgedTopics
from fairagent.exposure import ExposureMeter
from fairagent.files import file_name
from fairagent.llm.models import Models
from fairagent.memo import Memo
from fairagent.pipeline import build, index_folder, parts_of, settled
from fairagent.prompts import source_beside
from fairagent.settings import BudgetSettings, Part, Settings, lay, load_settings
from fairagent.settings.parts import SLOTS
from fairagent.site import Site
from fairagent.types import Ranking

OF_ALL: dict[str, Any] = {"budget": BudgetSettings(), "prices": {}, "cache": ""}
"""What stands in a system's settings in the place of those that are one for all systems."""
NOT_OF_A_SYSTEM = {
    "n": "it is the largest cut-off of the measures, or `context: {documents: ...}` where questions are answered",
    "collection": "all systems search the same",
    **dict.fromkeys(OF_ALL, "it is one for all systems and stands at the top of the file"),
}
"""Settings that an experiment decides, and why."""
ONLY = {NO_RETRIEVAL: "questions", "oracle": "utility", "adversarial": "utility", "okapi": "fair_rag"}
"""Engines that make sense in one kind of experiment alone, and the section that makes it one."""


@dataclass(frozen=True, slots=True)
class System:
    """What answers topics. `sees_groups` says whether its rankings depend on the documents' groups."""

    agent: FairAgent
    site: Site

    @property
    def sees_groups(self) -> bool:
        """Whether its rankings depend on groups."""
        return self.site.settings.sees_groups


def read_systems(
    described: ExperimentFile,
    folder: Path,
    dimensions: tuple[str, ...],
    n: int,
    problems: Problems,
    environ: Mapping[str, str],
) -> dict[str, SystemPlan]:
    """The systems whose settings are right; `index` is still empty.

    `folder` is the file's: files and folders that settings name are looked for beside it.
    """
    shared = _own(described.settings, folder, "settings", problems)
    if problems.attempt("", _settings, [shared], dimensions, n, environ) is None:
        shared = {}
    systems: dict[str, SystemPlan] = {}
    files: dict[str, str] = {}
    for name, values in described.systems.items():
        where = f"systems.{name}"
        own = _own(values, folder, where, problems)
        settings = problems.attempt(where, _settings, [shared, own], dimensions, n, environ)
        if settings:
            engine = settings.engine.kind
            if engine in ONLY and not getattr(described, ONLY[engine]):
                there = "to answer `questions`" if ONLY[engine] == "questions" else f"for `{ONLY[engine]}`"
                problems.add(SettingsError, f"{where}.engine: {engine!r} ranks nothing; it is there {there}")
            if settings.debias.kind != "none" and not described.questions:
                chooses = "it chooses what `questions` are answered from"
                problems.add(SettingsError, f"{where}.debias cannot be set: {chooses}")
            update, task = {**OF_ALL, **_beside(settings, folder)}, None
            if described.questions:
                # It finds what is answered from, and no more.
                update["n"] = settings.context.documents if engine != NO_RETRIEVAL else 1
                task = described.questions.task
            local = bool(described.questions and described.questions.local)
            systems[name] = SystemPlan(settings=settings.model_copy(update=update), index="", task=task, local=local)
        other = files.setdefault(file_name(name).casefold(), name)
        if other != name:
            problems.add(SettingsError, f"{where}: its run file would be that of {other!r}; change one of the names")
    return systems


def _own(values: Mapping[str, Any], folder: Path, where: str, problems: Problems) -> dict[str, Any]:
    """The settings that are a system's to make; adds the others as problems."""
    if isinstance(prompts := values.get("prompts"), str):
        values = {**values, "prompts": source_beside(prompts, folder)}
    for key in values:
        if key in NOT_OF_A_SYSTEM:
            problems.add(SettingsError, f"{where}.{key} cannot be set: {NOT_OF_A_SYSTEM[key]}")
    return {key: value for key, value in values.items() if key not in NOT_OF_A_SYSTEM}


def _settings(
    layers: list[dict[str, Any]], dimensions: tuple[str, ...], n: int, environ: Mapping[str, str]
) -> Settings:
    return load_settings(None, lay({"dimensions": dimensions}, *layers, {"n": n}), environ)


def _beside(settings: Settings, folder: Path) -> dict[str, Part]:
    """The parts with paths from anywhere."""
    parts = {slot: getattr(settings, slot) for slot in SLOTS}
    return {slot: part.beside(folder) for slot, part in parts.items() if isinstance(part, Part)}


def check_systems(
    systems: Mapping[str, SystemPlan],
    collection: Collection,
    judged: Mapping[str, JudgedTopics],
    problems: Problems,
    models: Models,
    lamp: bool = False,
) -> dict[str, SystemPlan]:
    """The systems with their indexes' folders; adds what does not fit the collection, its index or this machine.

    With `lamp`, engines score the items of questions, and no index is asked for.
    """
    placed: dict[str, SystemPlan] = {}
    analyzers: dict[str, tuple[str, str]] = {}
    for name, system in systems.items():
        where, settings = f"systems.{name}", system.settings
        system = system.model_copy(update={"index": str(index_folder(collection, settings).absolute())})
        site = site_of(system, collection, models)
        if not lamp:
            site = settled(site, preparing=True)
            system, settings = system.model_copy(update={"settings": site.settings}), site.settings
        _check_dimensions(where, site, judged, problems)
        if not lamp:
            for slot in ("engine", "rerank"):
                # What is wrong with an index is wrong for all systems.
                place = "" if slot == "engine" else f"{where}.{slot}"
                problems.attempt(place, getattr(settings, slot).check, site)
        if system.asks_model:
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


def _check_dimensions(where: str, site: Site, judged: Mapping[str, JudgedTopics], problems: Problems) -> None:
    """Try everything that depends on the dimensions: each on a topic that counts for it, so that there is a target."""
    nothing = Ranking((), np.zeros(0))
    for dimension in site.settings.dimensions:
        topic = next(iter(judged[dimension].counted if dimension in judged else ()), "")
        alone = site.settings.model_copy(update={"dimensions": (dimension,)})
        problems.attempt(where, ExposureMeter.make, site.collection, topic, alone, nothing)


def _check_model(site: Site) -> None:
    assert site.prompts
    site.models.open(site.settings.model)


def site_of(
    system: SystemPlan, collection: Collection, models: Models, seed: int = 0, memo: Memo | None = None
) -> Site:
    """What a system is built from; systems that share a `memo` share what they open."""
    # Each query from the same state: an outcome depends on no other.
    return Site(collection, system.settings, Path(system.index), models, seed, memo or Memo(), steady=True)


def prepared(systems: Mapping[str, SystemPlan], collection: Collection) -> Iterator[tuple[Part, Site]]:
    """Every part that may need an index, with the site that it is needed at; all of them share one memo."""
    memo, models = Memo(), Models()
    for system in systems.values():
        site = site_of(system, collection, models, memo=memo)
        for part in parts_of(system.settings):
            yield part, site


def build_systems(
    systems: Mapping[str, SystemPlan], collection: Collection, models: Models, seed: int, memo: Memo
) -> dict[str, System]:
    """The systems that search, which may train some of them."""
    built = {}
    for name, system in systems.items():
        if system.searches and (system.shown is None or system.shown.of == name):
            site = site_of(system, collection, models, seed, memo)
            agent = build(site)
            built[name] = System(agent, site)
    return built
