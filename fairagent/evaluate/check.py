"""Checking an experiment before anything runs: what is wrong, what it costs at most, and what can run here."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from fairagent.collection import Collection, load_collection
from fairagent.collection.collection import DocumentsInMemory
from fairagent.collection.known import KnownIds, compare_ids, notes_of_collection, warn_once
from fairagent.collection.table import JoinedGroups
from fairagent.collection.targets import target_choice
from fairagent.errors import DataError, FairAgentError, SettingsError
from fairagent.evaluate.kind import (
    SEARCH,
    Checking,
    ExperimentKind,
    Problems,
    Subject,
    Systems,
    place_in,
    sample_of,
)
from fairagent.evaluate.plan import (
    Plan,
    SystemPlan,
    check_machine,
    check_systems,
    overridden,
    read_systems,
    read_values,
)
from fairagent.evaluate.thresholds import Threshold, read_thresholds
from fairagent.llm.models import Models
from fairagent.measures.parse import label_of
from fairagent.retrieve.manifest import indexed_documents
from fairagent.search.pipeline import most_calls
from fairagent.search.run import unused_filter
from fairagent.settings import Settings, load_settings, read_yaml
from fairagent.settings.faults import no_such

NOTHING: Mapping[str, Any] = MappingProxyType({})
Expected = dict[str, dict[str, dict[str, float]]]
"""System -> dimension ("" for measures of relevance alone) -> measure -> value."""


@dataclass(frozen=True, slots=True, eq=False)
class CheckedExperiment:
    """An experiment that can run, with what systems are tried on; `excluded` says why topics do not count.

    `unknown` says which documents of judgments, groups and runs the collection does not have.
    """

    plan: Plan
    collection: Collection
    subject: Subject
    excluded: Mapping[str, str]
    unknown: tuple[str, ...] = ()


NO_COLLECTION = Collection("no collection", {}, {}, JoinedGroups([]), {}, (), DocumentsInMemory(()))


def open_collection(kind: ExperimentKind) -> Collection:
    """The collection that an experiment names; where it needs none, an empty one. Raises what loading it raises."""
    return load_collection(Path(kind.collection)) if kind.collection else NO_COLLECTION


def check_experiment(
    file: Path,
    limit: int | None = None,
    environ: Mapping[str, str] | None = None,
    labeled: bool = True,
    given: Mapping[str, Any] = NOTHING,
) -> CheckedExperiment:
    """The experiment in `file`, checked as a whole.

    `limit` takes so many of its topics that count, drawn by its seed: of each group of topics or class of questions
    its share (`sampled`). Unless it is to be `labeled`, the utility labels that it needs may still be missing. What the
    file sets beats the environment, and what is `given` the file. One error, of the first problem's type, lists every
    problem.
    """
    return check_experiment_values({**read_yaml(file), **given}, file, file.parent, limit, environ, labeled)


def check_experiment_values(
    values: Mapping[str, Any],
    file: Path | str,
    folder: Path,
    limit: int | None = None,
    environ: Mapping[str, str] | None = None,
    labeled: bool = True,
) -> CheckedExperiment:
    """As `check_experiment`, of a file with these `values`; `file` is its name in errors, paths are from `folder`."""
    problems = Problems()
    _, checked = examine(values, file, folder, problems, limit, environ, labeled)
    problems.check(file)
    assert checked is not None
    for note in checked.unknown:
        warn_once(note)
    return checked


def examine(
    values: Mapping[str, Any],
    file: Path | str,
    folder: Path,
    problems: Problems,
    limit: int | None,
    environ: Mapping[str, str] | None,
    labeled: bool,
) -> tuple[ExperimentKind, CheckedExperiment | None]:
    """The kind that the values describe, and the experiment unless too little is right; adds problems."""
    environ = os.environ if environ is None else environ
    kind = read_values(values, file, problems).relative_to(folder)
    missing = not kind.collection and kind.needs_collection
    collection = None if missing else problems.attempt("", open_collection, kind)
    kind = (collection and problems.attempt("target", kind.on, collection)) or kind
    # Questions have files of their own, which can be checked without the collection.
    opening = collection or (None if kind.needs_collection else NO_COLLECTION)
    subject = problems.attempt("", kind.open, opening) if opening else None
    # Budget, prices and cache of all systems together; also what is set to nothing: `cache: ''` is no cache.
    common_keys = {key: getattr(kind, key) for key in kind.model_fields_set & {"budget", "prices", "cache"}}
    common = problems.attempt("", load_settings, None, common_keys, environ) or Settings()
    checking = Checking(problems, environ, labeled, collection, subject)
    checking.dimensions = kind.fair_in(checking)
    checking.systems = read_systems(kind, folder, checking)
    searching = kind.uses >= SEARCH and any(system.searches for system in checking.systems.values())
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
    unknown = () if collection is None else tuple(_unknown_ids(collection, checking))
    if kind.ranks:
        for name, system in checking.systems.items():
            for note in unused_filter(system.settings):
                warn_once(f"{name}: {note}")
    rows = kind.rows(checking.systems)
    dimensions = kind.judged_in(checking)
    measured = kind.measured(dimensions)
    measures = tuple(one.name for one in measured)
    baseline = kind.baseline or next(iter(rows), "")
    # A system that could not be read is a problem already; its missing row is none.
    known = {**kind.systems, **rows} if len(checking.systems) < len(kind.systems) else rows
    # The names with which one part of the file refers to another have to be there.
    if known and baseline not in known:
        problems.add(SettingsError, f"baseline: {no_such('system', baseline, known)}")
    expectable = [*known, *kind.other_names]
    for name in (one for one in kind.expected if one not in expectable):
        problems.add(SettingsError, f"expected: {no_such('system', name, expectable)}")
    priced = {*kind.other_names, *(system.settings.model.name for system in rows.values())}
    for name in sorted(set(kind.prices) - priced):
        problems.add(SettingsError, f"prices: no system uses the model {name!r}")
    # Without a subject the dimensions are not known.
    judged = dimensions if subject is not None else None
    expected = _expected(kind, judged, (*measures, *kind.measured_together), problems)
    thresholds: tuple[Threshold, ...] = ()
    if collection is not None:
        groups = collection.groups
        thresholds = read_thresholds(kind, groups, dimensions, measured, tuple(known), baseline, problems)
    if subject is None or baseline not in rows:
        return kind, None
    # Topics without judgments are searched by all but those that aim at the relevant documents' shares; a limit is one
    # of all topics.
    unjudged: dict[str, tuple[str, ...]] = {}
    for name, system in rows.items() if chosen.unjudged and not limit else ():
        assert collection is not None  # which has judgments
        aimed = system.settings.dimensions or collection.groups.dimensions
        aims = [target_choice(system.settings.target, one, collection) for one in aimed]
        if not any(getattr(aim, "of_judgments", False) for aim in aims):
            unjudged[name] = chosen.unjudged
    plan = Plan(
        experiment=kind,
        topics=sample_of(subject.topics, chosen.topics, limit, kind.seed) if limit else chosen.topics,
        dimensions=dimensions,
        measures=measures,
        n=max(system.settings.n for system in rows.values()),
        systems={baseline: rows[baseline], **rows},
        without_loops=_without_loops(rows) if kind.ranks else {},
        prices=common.prices,
        budget=common.budget,
        cache=common.cache and str(Path(common.cache).absolute()),
        expected=expected,
        thresholds=thresholds,
        unjudged=unjudged,
    )
    return kind, CheckedExperiment(plan, collection or NO_COLLECTION, subject, chosen.excluded, unknown)


def _without_loops(systems: Systems) -> Systems:
    """What runs beside `systems`: those with a loop without it, but for what is one of them or asks a model itself."""
    beside: dict[str, SystemPlan] = {}
    for name, system in systems.items():
        plain = system.without_loop()
        if plain and not plain.asks and not plain.name_among({**systems, **beside}):
            plain_name = f"{name}, no loop"
            while plain_name in systems:
                plain_name += ", again"
            beside[plain_name] = plain
    return beside


def _unknown_ids(collection: Collection, checking: Checking) -> Iterator[str]:
    """Notes on ids of judgments, groups and runs that are no document's; adds a problem where none of them is one's."""
    of_index, problems, there = dict[str, KnownIds | None](), checking.problems, set[str]()
    for name, system in checking.systems.items():
        # Where a run cannot be read, that is a problem already.
        with suppress(DataError):
            named = system.settings.engine.named_documents(collection.topics)
            if system.index not in of_index:
                of_index[system.index] = indexed_documents(collection, Path(system.index))
            known = of_index[system.index]
            if known is None:
                continue
            notes = [problems.attempt_for(name, "", compare_ids, what, ids, known) or "" for what, ids in named.items()]
            if known.where not in there and known.whole:
                there.add(known.where)
                notes += problems.attempt("", notes_of_collection, collection, known) or []
            yield from filter(None, notes)


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
                    problems.add(SettingsError, f"expected.{system}: {no_such('measure', name, names)}")
                else:
                    expected.setdefault(system, {}).setdefault(dimension, {})[names[name]] = value
    return expected


# --- cost and readiness ---------------------------------------------------------------------------------------------

# Parts have a worst case (`Part.worst_case`); kinds of experiments add their own. Prompts are rendered and counted as
# one token for every four characters.


@dataclass(frozen=True, slots=True)
class Estimate:
    """At most so many calls, tokens and US dollars (None: no price); retries come on top."""

    system: str
    model: str
    topics: int
    calls: int
    input_tokens: int
    output_tokens: int
    dollars: float | None


def estimate(checked: CheckedExperiment) -> list[Estimate]:
    """One line a system, those that use no model taking nothing; before them, the calls that come beforehand."""
    plan, kind = checked.plan, checked.plan.experiment
    calls = [(what, [one], plan.topics) for what, one in kind.calls_before(plan, checked.subject)]
    for name, system in plan.systems.items():
        of_kind = kind.worst_case(name, plan, checked.subject) if system.asks else ()
        topics = (*plan.topics, *plan.unjudged.get(name, ()))
        queries = [checked.subject.topics[id].query for id in topics]
        searching = most_calls(checked.collection, system.settings, queries) if system.searching_with else []
        calls.append((name, [*searching, *of_kind], topics))
    rows = []
    for name, of_row, topics in calls:
        prices = [(one, plan.prices.get(one.model.name)) for one in of_row]
        priced = [price.dollars(one.input_tokens, one.output_tokens) for one, price in prices if price]
        rows.append(
            Estimate(
                name,
                of_row[0].model.name if of_row else "",
                len(topics),
                sum(one.calls for one in of_row),
                sum(one.input_tokens for one in of_row),
                sum(one.output_tokens for one in of_row),
                float(sum(priced)) if len(priced) == len(of_row) else None,
            )
        )
    return rows


@dataclass(frozen=True, slots=True)
class Readiness:
    """What an experiment lacks: `systems` has places in `lacks` of what stops each; `costs`: None without topics.

    `overridden` says by system what its profile sets in the place of the shared settings.
    """

    name: str
    about: str
    topics: int
    lacks: tuple[str, ...]
    systems: Mapping[str, tuple[int, ...]]
    costs: tuple[Estimate, ...] | None
    exit_code: int
    overridden: Mapping[str, tuple[str, ...]]

    @property
    def ready(self) -> tuple[str, ...]:
        """The systems that can run."""
        return tuple(name for name, lacking in self.systems.items() if not lacking)


def readiness(
    file: Path, limit: int | None = None, environ: Mapping[str, str] | None = None, given: Mapping[str, Any] = NOTHING
) -> Readiness:
    """The readiness of the experiment in `file`, with the keys `given`; nothing is built or fetched."""
    problems = Problems()
    kind, checked = examine({**read_yaml(file), **given}, file, file.parent, problems, limit, environ, labeled=True)
    of_system = problems.by_system(kind.systems)
    of_all = [error for error in problems.errors if not any(error in errors for errors in of_system.values())]
    messages = tuple(dict.fromkeys(_message(error, of_system) for error in problems.errors))
    return Readiness(
        kind.name,
        kind.about.strip(),
        len(checked.plan.topics) if checked else 0,
        messages,
        {
            name: tuple(sorted({messages.index(_message(error, of_system)) for error in (*of_all, *errors)}))
            for name, errors in of_system.items()
        },
        tuple(estimate(checked)) if checked and checked.plan.topics else None,
        problems.errors[0].exit_code if problems.errors else 0,
        overridden(kind, os.environ if environ is None else environ),
    )


def _message(error: FairAgentError, names: Iterable[str]) -> str:
    """What is lacking, without the system that lacks it: several may lack the same."""
    place = place_in(str(error), names)
    return place[1] if place else str(error)
