"""The systems of an experiment: their settings, checked together, and the pipelines that are built of them."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fairagent.collection import Collection
from fairagent.collection.exposure import ExposureMeter
from fairagent.collection.records import listed
from fairagent.errors import BackendUnavailable, SettingsError
from fairagent.evaluate.fields import Problems
from fairagent.evaluate.kind import Checking, Chosen, ExperimentKind, Opened
from fairagent.evaluate.reading import SystemPlan, shipped_kinds
from fairagent.llm.models import Models
from fairagent.llm.prompts import source_relative_to
from fairagent.retrieve.site import Site
from fairagent.search.agent import FairAgent
from fairagent.search.pipeline import build, index_folder, parts_of, resolved
from fairagent.settings import BudgetSettings, Part, Settings, lay, load_settings
from fairagent.settings.parts import SLOTS
from fairagent.storage.files import file_name
from fairagent.storage.threads import Memo
from fairagent.types import Ranking

OF_ALL: dict[str, Any] = {"budget": BudgetSettings(), "prices": {}, "cache": ""}
"""Settings that are one for all systems, as a system has them."""
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
    """The systems whose settings are right; `index` is still empty.

    `folder` is the file's: what settings name is relative to it.
    """
    problems = checking.problems

    def settings_of(*layers: dict[str, Any]) -> Settings:
        return load_settings(None, lay({"dimensions": checking.dimensions}, *layers, {"n": kind.n}), checking.environ)

    shared = _own(kind.settings, folder, "settings", problems)
    if problems.attempt("", settings_of, shared) is None:
        shared = {}
    systems: dict[str, SystemPlan] = {}
    files: dict[str, str] = {}
    for name, values in kind.systems.items():
        where = f"systems.{name}"
        own = _own(values, folder, where, problems)
        if settings := problems.attempt(where, settings_of, shared, own):
            _check_goes_with(kind, settings, where, problems)
            parts = {slot: part for slot in SLOTS if isinstance(part := getattr(settings, slot), Part)}
            moved = {slot: part.relative_to(folder) for slot, part in parts.items()}
            decided = {**OF_ALL, **moved, **kind.adapt(settings)}
            systems[name] = SystemPlan(settings=settings.model_copy(update=decided), index="")
        other = files.setdefault(file_name(name).casefold(), name)
        if other != name:
            problems.add(SettingsError, f"{where}: its run file would be that of {other!r}; change one of the names")
    return {
        name: system.model_copy(update={"asks": (*system.searching_with, *kind.templates(system))})
        for name, system in systems.items()
    }


def _check_goes_with(kind: ExperimentKind, settings: Settings, where: str, problems: Problems) -> None:
    """Add what makes no sense in this kind of experiment."""
    engine = settings.engine.kind
    if engine not in kind.engines and (
        having := [name for name, one in shipped_kinds().items() if engine in one.engines]
    ):
        problems.add(SettingsError, f"{where}.engine: {engine!r} ranks nothing; it is there for `{listed(having)}`")
    if not kind.debiases and not settings.debias.idle(settings):
        having = [name for name, one in shipped_kinds().items() if one.debiases]
        message = f"{where}.debias cannot be set: it chooses what questions are answered from ({listed(having)})"
        problems.add(SettingsError, message)


def _own(values: Mapping[str, Any], folder: Path, where: str, problems: Problems) -> dict[str, Any]:
    """The settings that are a system's to make; adds the others as problems."""
    if isinstance(prompts := values.get("prompts"), str):
        values = {**values, "prompts": source_relative_to(prompts, folder)}
    for key in values:
        if key in NOT_OF_A_SYSTEM:
            problems.add(SettingsError, f"{where}.{key} cannot be set: {NOT_OF_A_SYSTEM[key]}")
    return {key: value for key, value in values.items() if key not in NOT_OF_A_SYSTEM}


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
        if kind.searches:
            site = resolved(site, preparing=True)
            system, settings = system.model_copy(update={"settings": site.settings}), site.settings
        # Everything that depends on the dimensions, each on a topic that counts for it, so that there is a target.
        for dimension in settings.dimensions:
            alone, topic = settings.model_copy(update={"dimensions": (dimension,)}), chosen.judged.get(dimension, "")
            problems.attempt(where, ExposureMeter.make, site.collection, topic, alone, Ranking((), np.zeros(0)))
        for slot in _checked(kind):
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
        for slot in _checked(kind):
            lacks.attempt("", getattr(system.settings, slot).check, site)
        if system.asks:
            lacks.attempt("", _check_model, site)
        for error in lacks.errors:
            if isinstance(error, BackendUnavailable):
                checking.problems.add(type(error), f"systems.{name}: {error}")


def _checked(kind: ExperimentKind) -> Iterator[str]:
    """The slots whose parts have to work with what is on this machine."""
    if kind.searches:
        yield from ("engine", "rerank")
    if kind.debiases:
        yield "debias"
    if kind.attributes:
        yield "attribute"


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
        site = site_of(system, collection, models, memo=memo)
        for part in parts_of(system.settings):
            yield part, site


def build_systems(opened: Opened, names: Container[str] | None = None) -> dict[str, System]:
    """The systems that search (only those of these `names`), which may train some of them."""
    built = {}
    for name, system in opened.plan.systems.items():
        if system.searches and (names is None or name in names):
            seed = opened.plan.experiment.seed
            site = site_of(system, opened.collection, opened.models, seed, opened.memo)
            built[name] = System(build(site), site)
    return built
