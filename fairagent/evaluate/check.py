"""Checking an experiment before anything runs: file, systems, collection and indexes, all in one report."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fairagent.collection import Collection, load_collection
from fairagent.collection.faults import listed
from fairagent.errors import DataError, SettingsError, UsageError
from fairagent.evaluate.answers.check import check_debiasing, check_questions, measured
from fairagent.evaluate.answers.questions import Question, kinds
from fairagent.evaluate.check_systems import check_systems, read_systems
from fairagent.evaluate.experiment_file import ExperimentFile, Questions
from fairagent.evaluate.fair_rag.check import check_fair_rag, check_rows
from fairagent.evaluate.fair_rag.lamp import absolute, generators, kept_by_all, lamp_collection, read_labels, read_lamp
from fairagent.evaluate.fair_rag.rows import rows, with_prompts
from fairagent.evaluate.fair_rag.section import MEASURES, OF_GROUPS
from fairagent.evaluate.labels import measure_label
from fairagent.evaluate.plan import Plan, QuestionsPlan, SystemPlan, cutoff
from fairagent.evaluate.problems import Problems
from fairagent.evaluate.stereotypes.section import OF_ALL
from fairagent.evaluate.topics import JudgedTopics, judged_topics
from fairagent.evaluate.utility.check import check_section, counted_topics
from fairagent.evaluate.utility.rows import rows as utility_rows
from fairagent.llm.models import Models
from fairagent.measures import Measure, Product, parse_measure
from fairagent.settings import Settings, load_settings, read_yaml, validate

LEAST = {"name": "-", "collection": "-", "systems": {"-": {}}}
"""The smallest file that is right."""

WITHOUT_RELEVANT = "no relevant document"


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

    Unless it is to be `labeled`, the utility labels that it needs may still be missing. What the file sets beats the environment. One error, of the first problem's kind, lists every problem.
    """
    problems = Problems()
    described = _read(file, problems)
    asked, drawn, used = described.questions, described.fair_rag, described.utility
    others = asked or drawn or used
    tried = [problems.attempt("measures", _measure, text) for text in described.measures] if not others else []
    measures = [measure for measure in tried if measure is not None]
    n = drawn.k if drawn else max(used.ks) if used else max(map(cutoff, measures), default=1)
    lamp = None
    if drawn and drawn.lamp:
        files = absolute(drawn.lamp, file.parent)
        drawn = drawn.model_copy(update={"lamp": files})
        lamp = problems.attempt("fair_rag.lamp", read_lamp, files)
    path = (file.parent / described.collection).absolute() if described.collection else None
    collection = lamp_collection(lamp) if lamp else _collection(path, problems)
    # Those that are judged, and those that the systems are fair in.
    dimensions = _dimensions(described, collection, problems) if collection and not (used or lamp) else described.dimensions
    common = _common(described, problems, environ)
    systems = read_systems(described, file.parent, dimensions, n, problems, environ)
    judged: dict[str, JudgedTopics] = {}
    topics: list[str] = []
    excluded: dict[str, str] = {}
    questions: Mapping[str, Question] = {}
    if drawn:
        check_fair_rag(described, drawn, problems)
        check_rows(systems, drawn, problems)
        systems = with_prompts(systems, drawn)
    if used:
        systems = utility_rows(systems, used.model_copy(update={"orders": ("rank",)}))
        check_section(described, used, systems, problems)
    if asked:
        questions = check_questions(described, asked, file.parent, problems)
        topics, dimensions = _chosen(described, list(questions), problems), kinds(questions.values())
        check_debiasing(systems, [questions[id] for id in topics], problems)
    if collection:
        if used:
            chosen = _chosen(described, list(collection.topics), problems)
            topics, excluded = counted_topics(collection, chosen, used, systems, problems)
        elif lamp:
            topics = _chosen(described, list(collection.topics), problems)
        elif not asked:
            judged = {name: judged_topics(collection, name, described.per_group) for name in dimensions}
            topics, excluded = _topics(described, collection, judged, problems)
        # Without a cache: to check makes no folder.
        models = Models("", common.budget, common.prices, environ)
        systems = check_systems(systems, collection, judged, problems, models)
        if lamp and drawn and drawn.lamp and labeled and not problems.found:
            labels_of = read_labels(generators(systems, lamp, drawn.lamp, environ), problems)
            topics, excluded = kept_by_all(topics, labels_of)
        if asked and asked.judge:
            problems.attempt("questions.judge", models.open, asked.judge)
        models.close()
    names: Mapping[str, object] = described.systems
    if drawn:
        names = systems = rows(systems, drawn)
    if used:
        names = systems = utility_rows(systems, used)
    baseline = described.baseline or next(iter(names), "")
    _check_names(described, names, baseline, systems, problems)
    labels = list(measured(asked.task)) if asked else [*MEASURES, *(OF_GROUPS if dimensions else ())] if drawn else list(map(str, measures))
    labels = list(used.measures) if used else labels
    of_all = OF_ALL.get(asked.task, ()) if asked else ()
    expected = _expected(described, dimensions, [*labels, *of_all], problems)
    problems.check(file)
    assert collection
    plan = Plan(
        name=described.name,
        about=described.about,
        collection=str(path or ""),
        topics=tuple(topics[:limit]),
        dimensions=dimensions,
        per_group=described.per_group,
        measures=tuple(labels),
        seed=described.seed,
        systems={baseline: systems[baseline], **systems},
        prices=common.prices,
        budget=common.budget,
        cache=common.cache and str(Path(common.cache).absolute()),
        expected=expected,
        questions=asked and _questions(asked, file.parent),
        fair_rag=drawn,
        utility=used,
    )
    return Checked(plan, collection, excluded, questions)


def _collection(path: Path | None, problems: Problems) -> Collection | None:
    """The collection that the file names."""
    if path is None:
        problems.add(SettingsError, "collection: is missing: name the collection's settings file")
        return None
    return problems.attempt("", load_collection, path)


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


def _measure(text: str) -> Measure:
    measure = parse_measure(text)
    if isinstance(measure, Product) and cutoff(measure.left) != cutoff(measure.right):
        raise UsageError(f"{text!r}: the factors of a product have the same cut-off here")
    return measure


def _dimensions(described: ExperimentFile, collection: Collection, problems: Problems) -> tuple[str, ...]:
    """The dimensions that are judged, but for those that the collection does not have."""
    there = collection.groups.dimensions
    if not there:
        problems.add(UsageError, f"collection {collection.name!r} has no groups, so there is nothing to be fair to")
    for dimension in described.dimensions:
        problems.attempt("dimensions", collection.groups.labels, dimension)
    return tuple(name for name in described.dimensions if name in there) or there


def _topics(
    described: ExperimentFile, collection: Collection, judged: Mapping[str, JudgedTopics], problems: Problems
) -> tuple[list[str], dict[str, str]]:
    """The ids of the topics that count for anything, in the collection's order, and why the others do not."""
    chosen = _chosen(described, list(collection.topics), problems)
    without_relevant = set(judged_topics(collection, None).without_relevant)
    of_any = {id for topics in judged.values() for id in topics.counted}
    excluded: dict[str, str] = {}
    for id in chosen:
        if id in without_relevant:
            excluded[id] = WITHOUT_RELEVANT
        elif described.per_group and id not in of_any:
            excluded[id] = f"in no dimension {described.per_group} relevant documents of every group"
    counted = [id for id in chosen if id not in excluded]
    if not counted:
        problems.add(DataError, f"none of {len(chosen)} topics has relevant documents to judge by")
    for dimension, topics in judged.items():
        if counted and not set(counted) & set(topics.counted):
            problems.add(DataError, f"{dimension!r} cannot be judged: no topic has a relevant document with a label")
    return counted, excluded


def _chosen(described: ExperimentFile, ids: Sequence[str], problems: Problems) -> list[str]:
    """Those of the topics that the file chooses, in their order."""
    if isinstance(described.topics, int):
        return list(ids[: described.topics])
    if not isinstance(described.topics, tuple):
        return list(ids)
    for id in described.topics:
        if id not in ids:
            near = difflib.get_close_matches(id, ids, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {len(ids)}"
            there = "there is no question" if described.questions else "the collection has no topic"
            problems.add(SettingsError, f"topics: {there} {id!r}; {hint}")
    return [id for id in ids if id in described.topics]


def _check_names(
    described: ExperimentFile,
    names: Mapping[str, object],
    baseline: str,
    systems: Mapping[str, SystemPlan],
    problems: Problems,
) -> None:
    """That the names with which one part of the file refers to another are there."""
    if names and baseline not in names:
        problems.add(SettingsError, f"baseline: no system {baseline!r}; there are: {listed(names)}")
    for name in described.expected:
        if name not in names:
            problems.add(SettingsError, f"expected: no system {name!r}; there are: {listed(names)}")
    models = {system.settings.model.name for system in systems.values()}
    if described.questions and described.questions.judge:
        models.add(described.questions.judge.name)
    for name in sorted(set(described.prices) - models):
        problems.add(SettingsError, f"prices: no system uses the model {name!r}")


def _questions(asked: Questions, folder: Path) -> QuestionsPlan:
    return QuestionsPlan(task=asked.task, path=str((folder / asked.path).absolute()), judge=asked.judge, local=asked.local)


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
