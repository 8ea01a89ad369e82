"""Checking an experiment before anything runs: file, systems, collection and indexes, all in one report."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fairagent.collection import Collection
from fairagent.collection.faults import listed
from fairagent.errors import SettingsError
from fairagent.evaluate.answers.design import QuestionsDesign
from fairagent.evaluate.answers.questions import Question
from fairagent.evaluate.design import Design
from fairagent.evaluate.experiment_file import ExperimentFile
from fairagent.evaluate.fair_rag.design import FairRagDesign, LampDesign
from fairagent.evaluate.labels import measure_label
from fairagent.evaluate.plan import Plan, SystemPlan
from fairagent.evaluate.problems import Problems
from fairagent.evaluate.systems import check_systems, read_systems
from fairagent.evaluate.utility.design import UtilityDesign
from fairagent.llm.models import Models
from fairagent.settings import Settings, load_settings, read_yaml, validate

LEAST = {"name": "-", "collection": "-", "systems": {"-": {}}}
"""The smallest file that is right."""


@dataclass(frozen=True, slots=True, eq=False)
class Checked:
    """An experiment that can run, with the collection loaded; `excluded` says why topics do not count.

    `questions` by their ids, where questions are answered.
    """

    plan: Plan
    collection: Collection
    excluded: Mapping[str, str]
    questions: Mapping[str, Question]

    @property
    def queries(self) -> list[str]:
        """What is searched for or asked, topic by topic."""
        topics = self.questions or self.collection.topics
        return [topics[id].query for id in self.plan.topics]


def check_experiment(
    file: Path, limit: int | None = None, environ: Mapping[str, str] = os.environ, labeled: bool = True
) -> Checked:
    """The experiment in `file`, checked as a whole; `limit` takes the first so many of its topics that count.

    Unless it is to be `labeled`, the utility labels that it needs may still be missing. What the file sets beats the
    environment. One error, of the first problem's kind, lists every problem.
    """
    problems = Problems()
    described = _read(file, problems)
    design = _design(described, file.parent, problems, labeled)
    collection = design.collection()
    # Those that the systems are fair in; those that are judged may be others.
    dimensions = design.dimensions(collection) if collection else described.dimensions
    common = _common(described, problems, environ)
    named = read_systems(described, file.parent, dimensions, design.n, problems, environ)
    systems = design.prepared(named)
    chosen = design.choose(collection, dimensions, systems)
    if collection:
        # Without a cache: to check makes no folder.
        models = Models("", common.budget, common.prices, environ)
        lamp = bool(described.fair_rag and described.fair_rag.lamp)
        systems = check_systems(systems, collection, chosen.judged, problems, models, lamp)
        chosen = design.opened(chosen, systems, models, environ)
        models.close()
    rows = design.rows(systems)
    # A system that could not be read has been reported; that a row of its name is missing would say it again.
    names = {**described.systems, **rows} if len(systems) < len(described.systems) else rows
    baseline = described.baseline or next(iter(rows), "")
    _check_names(described, names, baseline, [*rows.values()], design.other_models, problems)
    measures = design.measures(chosen.dimensions)
    expected = _expected(described, chosen.dimensions, (*measures, *design.of_all), problems)
    problems.check(file)
    assert collection
    plan = Plan(
        name=described.name,
        about=described.about,
        collection=str(design.path or ""),
        topics=chosen.topics[:limit],
        dimensions=chosen.dimensions,
        per_group=described.per_group,
        measures=measures,
        seed=described.seed,
        systems={baseline: rows[baseline], **rows},
        prices=common.prices,
        budget=common.budget,
        cache=common.cache and str(Path(common.cache).absolute()),
        expected=expected,
        **design.parts(),
    )
    return Checked(plan, collection, chosen.excluded, chosen.questions)


def _design(described: ExperimentFile, folder: Path, problems: Problems, labeled: bool) -> Design:
    """The kind of experiment that the file describes."""
    if described.questions:
        return QuestionsDesign(described, folder, problems)
    if described.fair_rag and described.fair_rag.lamp:
        return LampDesign(described, folder, problems, labeled)
    if described.fair_rag:
        return FairRagDesign(described, folder, problems)
    if described.utility:
        return UtilityDesign(described, folder, problems)
    return Design(described, folder, problems)


def _read(file: Path, problems: Problems) -> ExperimentFile:
    """The file's values; of a faulty one those keys that are right by themselves, so that they are checked as well."""
    raw = read_yaml(file)
    if described := problems.attempt("", validate, ExperimentFile, raw, str(file)):
        return described
    kept: dict[str, object] = {"name": "", "collection": "", "systems": {}}
    for key, value in raw.items():
        try:
            kept[key] = getattr(ExperimentFile.model_validate({**LEAST, key: value}), key)
        except ValidationError:
            continue
    return ExperimentFile.model_construct(**kept)  # type: ignore[arg-type]


def _common(described: ExperimentFile, problems: Problems, environ: Mapping[str, str]) -> Settings:
    """Settings of which budget, prices and cache hold for all systems together."""
    # Also what is set to nothing: `cache: ''` keeps no replies.
    keys = described.model_fields_set & {"budget", "prices", "cache"}
    own: dict[str, Any] = {key: getattr(described, key) for key in keys}
    return problems.attempt("", load_settings, None, own, environ) or Settings()


def _check_names(
    described: ExperimentFile,
    names: Mapping[str, object],
    baseline: str,
    systems: Sequence[SystemPlan],
    other_models: Sequence[str],
    problems: Problems,
) -> None:
    """That the names with which one part of the file refers to another are there."""
    if names and baseline not in names:
        problems.add(SettingsError, f"baseline: no system {baseline!r}; there are: {listed(names)}")
    for name in described.expected:
        if name not in names:
            problems.add(SettingsError, f"expected: no system {name!r}; there are: {listed(names)}")
    models = {*other_models, *(system.settings.model.name for system in systems)}
    for name in sorted(set(described.prices) - models):
        problems.add(SettingsError, f"prices: no system uses the model {name!r}")


def _expected(
    described: ExperimentFile, dimensions: Sequence[str], measures: Sequence[str], problems: Problems
) -> dict[str, dict[str, dict[str, float]]]:
    """The expected numbers by system, dimension ("" for relevance alone) and the measures' full definitions."""
    names = {name: measure for measure in measures for name in (measure_label(measure), measure)}
    expected: dict[str, dict[str, dict[str, float]]] = {}
    for system, values in described.expected.items():
        of_relevance = {name: value for name, value in values.items() if isinstance(value, float)}
        of_groups = {name: value for name, value in values.items() if isinstance(value, dict)}
        for dimension, of_measure in {"": of_relevance, **of_groups}.items():
            if dimension and dimension not in dimensions:
                problems.add(SettingsError, f"expected.{system}: no dimension {dimension!r} is judged")
            for name, value in of_measure.items():
                if name not in names:
                    problems.add(SettingsError, f"expected.{system}: no measure {name!r}; there are: {listed(names)}")
                else:
                    expected.setdefault(system, {}).setdefault(dimension, {})[names[name]] = value
    return expected
