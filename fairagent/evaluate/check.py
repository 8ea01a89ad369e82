"""Checking an experiment before anything runs: file, systems, collection and indexes, all in one report."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairagent.collection import Collection, load_collection
from fairagent.collection.documents import DocumentsInMemory
from fairagent.collection.groups import JoinedGroups
from fairagent.collection.records import listed
from fairagent.errors import SettingsError
from fairagent.evaluate.fields import Problems, sample_of
from fairagent.evaluate.kind import Checking, ExperimentKind, Subject, Systems
from fairagent.evaluate.reading import Plan, read_values
from fairagent.evaluate.systems import check_machine, check_systems, read_systems
from fairagent.evaluate.thresholds import Threshold, ThresholdNames, read_thresholds
from fairagent.llm.models import Models
from fairagent.measures.parse import label_of
from fairagent.settings import Settings, load_settings, read_yaml

Expected = dict[str, dict[str, dict[str, float]]]
"""System -> dimension ("" for measures of relevance alone) -> measure -> value."""


@dataclass(frozen=True, slots=True, eq=False)
class CheckedExperiment:
    """An experiment that can run, with what systems are tried on; `excluded` says why topics do not count."""

    plan: Plan
    collection: Collection
    subject: Subject
    excluded: Mapping[str, str]

    @property
    def queries(self) -> list[str]:
        """The queries or questions, topic by topic."""
        return [self.subject.topics[id].query for id in self.plan.topics]


NO_COLLECTION = Collection("no collection", {}, {}, JoinedGroups([]), {}, (), DocumentsInMemory(()))


def open_collection(kind: ExperimentKind) -> Collection:
    """The collection that an experiment names; where it needs none, an empty one. Raises what loading it raises."""
    return load_collection(Path(kind.collection)) if kind.collection else NO_COLLECTION


def check_experiment(
    file: Path, limit: int | None = None, environ: Mapping[str, str] = os.environ, labeled: bool = True
) -> CheckedExperiment:
    """The experiment in `file`, checked as a whole.

    `limit` takes so many of its topics that count, drawn by its seed: of each group of topics or class of questions
    its share (`sampled`). Unless it is to be `labeled`, the utility labels that it needs may still be missing. What the
    file sets beats the environment. One error, of the first problem's type, lists every problem.
    """
    return check_values(read_yaml(file), file, file.parent, limit, environ, labeled)


def check_values(
    values: Mapping[str, Any],
    file: Path | str,
    folder: Path,
    limit: int | None = None,
    environ: Mapping[str, str] = os.environ,
    labeled: bool = True,
) -> CheckedExperiment:
    """As `check_experiment`, of a file with these `values`; `file` is its name in errors, paths are from `folder`."""
    problems = Problems()
    _, checked = examine(values, file, folder, problems, limit, environ, labeled)
    problems.check(file)
    assert checked is not None
    return checked


def examine(
    values: Mapping[str, Any],
    file: Path | str,
    folder: Path,
    problems: Problems,
    limit: int | None,
    environ: Mapping[str, str],
    labeled: bool,
) -> tuple[ExperimentKind, CheckedExperiment | None]:
    """The kind that the values describe, and as `check_values` the experiment; adds what is wrong to `problems`.

    With problems it is good for an estimate and no more; None where its topics or its baseline are missing.
    """
    kind = read_values(values, file, problems).relative_to(folder)
    missing = not kind.collection and kind.needs_collection
    collection = None if missing else problems.attempt("", open_collection, kind)
    kind = kind.on(collection) if collection else kind
    # Questions have files of their own, which can be checked without the collection.
    opening = collection or (None if kind.needs_collection else NO_COLLECTION)
    subject = problems.attempt("", kind.open, opening) if opening else None
    # Budget, prices and cache of all systems together; also what is set to nothing: `cache: ''` is no cache.
    own = {key: getattr(kind, key) for key in kind.model_fields_set & {"budget", "prices", "cache"}}
    common = problems.attempt("", load_settings, None, own, environ) or Settings()
    checking = Checking(problems, environ, labeled, collection, subject)
    checking.dimensions = kind.fair_in(checking)
    checking.systems = read_systems(kind, folder, checking)
    searching = kind.searches and any(system.searches for system in checking.systems.values())
    if missing or (searching and not kind.collection):
        problems.add(SettingsError, "collection: is missing: name the collection's settings file")
    kind.check(checking)
    chosen = kind.choose(checking)
    # Without a cache: to check makes no folder.
    models = Models("", common.budget, common.prices, environ)
    if collection is None:
        check_machine(kind, checking, NO_COLLECTION, models)
    else:
        checking.systems = check_systems(kind, checking, chosen, models)
        chosen = kind.keep(chosen, checking, models)
    models.close()
    rows = kind.rows(checking.systems)
    dimensions = kind.judged_in(checking)
    measured = kind.measured(dimensions)
    measures = tuple(one.name for one in measured)
    baseline = kind.baseline or next(iter(rows), "")
    # A system that could not be read is a problem already; its missing row is none.
    known = {**kind.systems, **rows} if len(checking.systems) < len(kind.systems) else rows
    _check_names(kind, rows, known, baseline, problems)
    # Without a subject the dimensions are not known.
    judged = dimensions if subject is not None else None
    expected = _expected(kind, judged, (*measures, *kind.measured_together), problems)
    thresholds: tuple[Threshold, ...] = ()
    if collection is not None:
        names = ThresholdNames(kind, collection.groups, dimensions, measured)
        thresholds = read_thresholds(kind.thresholds, tuple(known), baseline, names, problems)
    if subject is None or baseline not in rows:
        return kind, None
    plan = Plan(
        experiment=kind,
        topics=sample_of(subject.topics, chosen.topics, limit, kind.seed) if limit else chosen.topics,
        dimensions=dimensions,
        measures=measures,
        n=kind.length(rows),
        systems={baseline: rows[baseline], **rows},
        prices=common.prices,
        budget=common.budget,
        cache=common.cache and str(Path(common.cache).absolute()),
        expected=expected,
        thresholds=thresholds,
    )
    return kind, CheckedExperiment(plan, collection or NO_COLLECTION, subject, chosen.excluded)


def _check_names(
    kind: ExperimentKind, rows: Systems, names: Mapping[str, object], baseline: str, problems: Problems
) -> None:
    """That the names with which one part of the file refers to another are there."""
    if names and baseline not in names:
        problems.add(SettingsError, f"baseline: no system {baseline!r}; there are: {listed(names)}")
    there = [*names, *kind.rows_together]
    for name in kind.expected:
        if name not in there:
            problems.add(SettingsError, f"expected: no system {name!r}; there are: {listed(there)}")
    models = {*kind.other_models, *(system.settings.model.name for system in rows.values())}
    for name in sorted(set(kind.prices) - models):
        problems.add(SettingsError, f"prices: no system uses the model {name!r}")


def _expected(
    kind: ExperimentKind, dimensions: Sequence[str] | None, measures: Sequence[str], problems: Problems
) -> Expected:
    """The expected numbers by the measures' full definitions; where `dimensions` is None, any dimension is right."""
    names = {name: measure for measure in measures for name in (label_of(measure), measure)}
    expected: Expected = {}
    for system, values in kind.expected.items():
        of_relevance = {name: value for name, value in values.items() if isinstance(value, float)}
        of_groups = {name: value for name, value in values.items() if isinstance(value, dict)}
        for dimension, of_measure in {"": of_relevance, **of_groups}.items():
            if dimension and dimensions is not None and dimension not in dimensions:
                problems.add(SettingsError, f"expected.{system}: no dimension {dimension!r} is judged")
            for name, value in of_measure.items():
                if name not in names:
                    problems.add(SettingsError, f"expected.{system}: no measure {name!r}; there are: {listed(names)}")
                else:
                    expected.setdefault(system, {}).setdefault(dimension, {})[names[name]] = value
    return expected
