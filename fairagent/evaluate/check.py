"""Reading and checking an experiment before anything runs: what is wrong, what it costs at most, what can run here."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from pydantic import ValidationError

from fairagent.collection import Collection
from fairagent.collection.config import CollectionFile
from fairagent.collection.exposure import ExposureMeter
from fairagent.collection.known import KnownIds, compare_ids, notes_of_collection, warn_once
from fairagent.collection.records import listed
from fairagent.collection.targets import open_choice, read_target, target_choice
from fairagent.errors import BackendUnavailable, DataError, SettingsError, UsageError
from fairagent.evaluate.kind import (
    NO_COLLECTION,
    SEARCH,
    Checking,
    Chosen,
    ExperimentKind,
    Problems,
    Subject,
    kind_class,
    open_collection,
    sample_of,
    shipped_kinds,
)
from fairagent.evaluate.plan import Plan, SystemPlan, site_of
from fairagent.evaluate.ranking import LENGTH, STANDARD, UNJUDGED, WHOLE
from fairagent.evaluate.thresholds import Threshold, read_thresholds
from fairagent.llm.models import Models
from fairagent.llm.prompts import source_relative_to
from fairagent.measures.parse import label_of
from fairagent.retrieve.manifest import indexed_documents
from fairagent.retrieve.run_file import check_scored
from fairagent.search.live import index_folder
from fairagent.search.pipeline import most_calls, resolved
from fairagent.search.run import unused_filter
from fairagent.settings import BudgetSettings, Part, Section, Settings, lay, load_settings, read_yaml, validate
from fairagent.settings.faults import keys_of, no_such
from fairagent.settings.parts import SLOTS
from fairagent.storage.files import file_name
from fairagent.storage.readers import unpacked_name
from fairagent.types import Ranking
from fairagent.types.common import counted

NOTHING: Mapping[str, Any] = MappingProxyType({})
LEAST = {"name": "-", "systems": {"-": {}}}
"""What every file has to have."""
OF_ALL: dict[str, Any] = {"budget": BudgetSettings(), "prices": {}, "cache": ""}
"""Settings that are one for all systems, as a system has them."""
CHECKED = ("engine", "loop", "rerank", "debias", "attribute")
"""The slots whose parts have to work with what is on this machine, if systems use them."""
NOT_OF_A_SYSTEM = {
    "n": "it is the largest cut-off of the measures, or `context: {documents: ...}` where questions are answered",
    "collection": "all systems search the same",
    **dict.fromkeys(OF_ALL, "it is one for all systems and stands at the top of the file"),
}
"""Settings that an experiment decides, and why."""
SUFFIXES = (".txt", ".tsv", ".csv", ".run", ".trec", ".res")
"""Ends of files' names that are no part of a run's name."""


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


def check_experiment(
    file: Path,
    limit: int | None = None,
    environ: Mapping[str, str] | None = None,
    labeled: bool = True,
    given: Mapping[str, Any] = NOTHING,
    values: Mapping[str, Any] | None = None,
) -> CheckedExperiment:
    """The experiment in `file`, or of a file there with these `values`, checked as a whole.

    `limit` takes so many of its topics that count, drawn by its seed: of each group of topics or class of questions
    its share (`sample_of`). Unless it is to be `labeled`, the utility labels that it needs may still be missing. What
    the file sets beats the environment, and what is `given` the file. One error, of the first problem's type, lists
    every problem.
    """
    problems, values = Problems(), read_yaml(file) if values is None else values
    _, checked = examine({**values, **given}, file, problems, limit, environ, labeled)
    problems.check(file)
    assert checked is not None
    for note in checked.unknown:
        warn_once(note)
    return checked


def check_runs(
    runs: Sequence[Path],
    collection: Path,
    dimensions: Sequence[str] = (),
    measures: Sequence[str] = (),
    n: int | None = None,
    baseline: str = "",
    target: Any = None,
    environ: Mapping[str, str] | None = None,
) -> CheckedExperiment:
    """An experiment that compares run files on a collection, checked as one of a file is.

    By `measures`, or by the standard ones at `n` (20), which cuts the runs; on a collection without judgments, by those
    that need none. `target` is that of an experiment.
    """
    if n is not None and measures:
        raise UsageError("measures have their own cut-offs, e.g. nDCG@10: leave out n")
    named: dict[str, Path] = {}
    for run in runs:
        # runs/bm25.txt.gz is bm25, and UDInfo.run2 is itself.
        name = unpacked_name(run)
        name = Path(name).stem if Path(name).suffix in SUFFIXES else name
        if (other := named.setdefault(name, run)) != run:
            raise UsageError(f"two runs are called {name!r}, {other} and {run}: rename one of the files")
    if not measures:
        file = validate(CollectionFile, read_yaml(collection), str(collection))
        measures = STANDARD if file.track or file.qrels else UNJUDGED
        if measures is UNJUDGED:
            try:
                check_scored(named.get(baseline, runs[0]), "")
            except DataError:
                measures = [measure for measure in measures if not measure.startswith("kept")]
        measures = [measure.replace(f"@{LENGTH}", f"@{n or LENGTH}") for measure in measures]
    values = {
        "name": "runs",
        "collection": str(collection.absolute()),
        "measures": list(measures),
        "dimensions": list(dimensions),
        "baseline": baseline,
        "target": target,
        "run_depth": n or WHOLE,
        "systems": {
            name: {"profile": "engine", "engine": {"kind": "run-file", "path": str(run.absolute())}}
            for name, run in named.items()
        },
    }
    return check_experiment(Path(f"of {counted(len(runs), 'run')}"), environ=environ, values=values)


def examine(
    values: Mapping[str, Any],
    file: Path,
    problems: Problems,
    limit: int | None,
    environ: Mapping[str, str] | None,
    labeled: bool = True,
) -> tuple[ExperimentKind, CheckedExperiment | None]:
    """The kind that the values of `file` describe, and the experiment unless too little is right; adds problems."""
    environ = os.environ if environ is None else environ
    kind = read_values(values, file, problems).relative_to(file.parent)
    missing = not kind.collection and kind.needs_collection
    collection = None if missing else problems.attempt("", open_collection, kind)
    kind = (collection and problems.attempt("target", kind.on, collection)) or kind
    # Questions have files of their own, which can be checked without the collection.
    opening = collection or (None if kind.needs_collection else NO_COLLECTION)
    subject = problems.attempt("", kind.open, opening) if opening else None
    # Budget, prices and cache of all systems together; also what is set to nothing: `cache: ''` is no cache.
    common_keys = {key: getattr(kind, key) for key in kind.model_fields_set & OF_ALL.keys()}
    common = problems.attempt("", load_settings, None, common_keys, environ) or Settings()
    checking = Checking(problems, environ, labeled, collection, subject)
    checking.dimensions = kind.fair_in(checking)
    checking.systems = read_systems(kind, file.parent, checking)
    searching = kind.uses >= SEARCH and any(system.searches for system in checking.systems.values())
    if missing or (searching and not kind.collection):
        problems.add(SettingsError, "collection: is missing: name the collection's settings file")
    kind.check(checking)
    chosen = kind.choose(checking)
    # Without a cache: to check makes no folder.
    models = Models("", common.budget, common.prices, environ)
    checking.systems = check_systems(kind, checking, chosen, models)
    if collection is not None:
        chosen = kind.keep(chosen, checking, models)
    models.close()
    unknown = () if collection is None else tuple(_unknown_ids(collection, checking))
    for name, system in checking.systems.items() if kind.ranks else ():
        for note in unused_filter(system.settings):
            warn_once(f"{name}: {note}")
    rows = kind.rows(checking.systems)
    dimensions = kind.judged_in(checking)
    measured = kind.measured(dimensions)
    measures = tuple(one.name for one in measured)
    baseline = kind.baseline or next(iter(rows), "")
    # The names with which one part of the file refers to another have to be there; a system that could not be read is a
    # problem already, its missing row is none.
    known = {**kind.systems, **rows} if len(checking.systems) < len(kind.systems) else rows
    if known and baseline not in known:
        problems.add(SettingsError, f"baseline: {no_such('system', baseline, known)}")
    expectable = [*known, *kind.other_names]
    for name in (one for one in kind.expected if one not in expectable):
        problems.add(SettingsError, f"expected: {no_such('system', name, expectable)}")
    priced = {*kind.other_names, *(system.settings.model.name for system in rows.values())}
    for name in sorted(set(kind.prices) - priced):
        problems.add(SettingsError, f"prices: no system uses the model {name!r}")
    # The expected numbers by the measures' full definitions; without a subject the dimensions are not known.
    names = {name: one for one in (*measures, *kind.measured_together) for name in (label_of(one), one)}
    expected: dict[str, dict[str, dict[str, float]]] = {}
    for named, numbers in kind.expected.items():
        of_relevance = {name: value for name, value in numbers.items() if isinstance(value, float)}
        of_groups = {name: value for name, value in numbers.items() if isinstance(value, dict)}
        for dimension, of_measure in {"": of_relevance, **of_groups}.items():
            if dimension and subject is not None and dimension not in dimensions:
                problems.add(SettingsError, f"expected.{named}: no dimension {dimension!r} is judged")
            for name, value in of_measure.items():
                if name in names:
                    expected.setdefault(named, {}).setdefault(dimension, {})[names[name]] = value
                else:
                    problems.add(SettingsError, f"expected.{named}: {no_such('measure', name, names)}")
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
    # What loops add is told beside the same systems without one, but for what is a row or asks a model itself.
    without_loops: dict[str, SystemPlan] = {}
    for name, system in rows.items() if kind.ranks else ():
        plain = system.without_loop()
        if plain and not plain.asks and not plain.name_among({**rows, **without_loops}):
            plain_name = f"{name}, no loop"
            while plain_name in rows:
                plain_name += ", again"
            without_loops[plain_name] = plain
    plan = Plan(
        experiment=kind,
        topics=sample_of(subject.topics, chosen.topics, limit, kind.seed) if limit else chosen.topics,
        dimensions=dimensions,
        measures=measures,
        n=max(system.settings.n for system in rows.values()),
        systems={baseline: rows[baseline], **rows},
        without_loops=without_loops,
        prices=common.prices,
        budget=common.budget,
        cache=common.cache and str(Path(common.cache).absolute()),
        expected=expected,
        thresholds=thresholds,
        unjudged=unjudged,
    )
    return kind, CheckedExperiment(plan, collection or NO_COLLECTION, subject, chosen.excluded, unknown)


def read_values(values: Mapping[str, Any], file: Path | str, problems: Problems) -> ExperimentKind:
    """The experiment of which `file` has these keys; of a faulty one what is right by itself, to be checked as well."""
    raw = {"kind": "ranking", **values}
    cls = problems.attempt("", kind_class, raw["kind"])
    if cls is None:
        problems.check(file)
    assert cls is not None
    given = dict[str, Any]()
    for key, value in raw.items():
        others = {} if key in keys_of(cls) else shipped_kinds()
        if having := [name for name, one in others.items() if key in keys_of(one)]:
            hint = f" (write `kind: {having[0]}`)" if len(having) == 1 else ""
            named = " and ".join(filter(None, (", ".join(having[:-1]), having[-1])))
            message = f"{key}: no key of kind {raw['kind']!r}; it is one of kind {named}{hint}"
            problems.add(SettingsError, message)
        else:
            given[key] = value
    if described := problems.attempt("", validate, cls, given, str(file)):
        return described
    faulty: set[object] = set()
    try:
        cls.model_validate(given)
    except ValidationError as error:
        faulty = {fault["loc"][0] for fault in error.errors() if fault["loc"]}
    missing = {key: value for key, value in LEAST.items() if key not in given or key in faulty}
    try:
        right = cls.model_validate({key: value for key, value in given.items() if key not in faulty} | missing)
    except ValidationError:
        problems.check(file)
        raise
    # In their places nothing is checked.
    return right.model_copy(update={key: {} if isinstance(value, dict) else "" for key, value in missing.items()})


# --- systems ---------------------------------------------------------------------------------------------------------


def read_systems(kind: ExperimentKind, folder: Path, checking: Checking) -> dict[str, SystemPlan]:
    """The systems whose settings are right, with paths that are relative to `folder`; `index` is still empty."""
    problems = checking.problems

    def read(where: str, *layers: Mapping[str, Any]) -> Settings | None:
        """The settings of these layers; adds what is wrong, and what is not a system's to set."""
        values: dict[str, Any] = {"dimensions": checking.dimensions}
        for layer in layers:
            if isinstance(prompts := layer.get("prompts"), str):
                layer = {**layer, "prompts": source_relative_to(prompts, folder)}
            values = lay(values, {key: value for key, value in layer.items() if key not in NOT_OF_A_SYSTEM})
        for key in (one for one in layers[-1] if one in NOT_OF_A_SYSTEM):
            problems.add(SettingsError, f"{where or 'settings'}.{key} cannot be set: {NOT_OF_A_SYSTEM[key]}")
        return problems.attempt(where, load_settings, None, lay(values, {"n": kind.n}), checking.environ)

    shared = kind.settings if read("", kind.settings) else {}
    systems, files, shipped = dict[str, SystemPlan](), dict[str, str](), shipped_kinds()
    for name, values in kind.systems.items():
        where = f"systems.{name}"
        if settings := read(where, shared, values):
            # What makes no sense in this kind of experiment.
            draws = settings.sampling.alpha is not None
            having = [name for name, one in shipped.items() if settings.engine.kind in one.engines]
            if having and settings.engine.kind not in kind.engines:
                message = f"{settings.engine.kind!r} ranks nothing; it is there for `{listed(having)}`"
                problems.add(SettingsError, f"{where}.engine: {message}")
            for section, key, is_set, why in (
                ("sampling", "sampling.alpha", draws, "nothing is drawn here"),
                ("debias", "debias", not settings.debias.idle(settings), "it chooses what questions are answered from"),
            ):
                if is_set and section not in kind.uses:
                    having = [name for name, one in shipped.items() if section in one.uses]
                    message = f"{where}.{key} cannot be set: {why}; it is there for {listed(having)}"
                    problems.add(SettingsError, message)
            random = [part for part in (settings.rerank, *settings.rerank.inner) if part.at_random]
            if draws and random and "sampling" in kind.uses:
                message = f"{where}: sampling.alpha cannot draw from rerank: {random[0]}, which is one draw itself"
                problems.add(SettingsError, f"{message}; leave out one of them")
            parts = {slot: part for slot in SLOTS if isinstance(part := getattr(settings, slot), Part)}
            moved = {slot: part.relative_to(folder) for slot, part in parts.items()}
            settings = settings.model_copy(update={**OF_ALL, **moved, **kind.adapt(settings)})
            system = SystemPlan(settings=settings, index="")
            asks = (*system.searching_with, *kind.templates(system))
            systems[name] = system.model_copy(update={"asks": asks})
        other = files.setdefault(file_name(name).casefold(), name)
        if other != name:
            problems.add(SettingsError, f"{where}: its run file would be that of {other!r}; change one of the names")
    return systems


def check_systems(kind: ExperimentKind, checking: Checking, chosen: Chosen, models: Models) -> dict[str, SystemPlan]:
    """The systems with their indexes' folders; adds what does not fit the collection, its index or this machine.

    Without a collection, an empty one stands for it: what is missing on this machine (models, packages, keys) is added.
    """
    problems, placed, analyzers = checking.problems, dict[str, SystemPlan](), dict[str, tuple[str, str]]()
    for name, system in checking.systems.items():
        where, settings = f"systems.{name}", system.settings
        if checking.collection is None:
            site, lacks = site_of(system, NO_COLLECTION, models), Problems()
            _check_parts(kind, system, site, lacks)
            for error in lacks.errors:
                if isinstance(error, BackendUnavailable):
                    problems.add(type(error), f"{where}: {error}")
            placed[name] = system
            continue
        system = system.model_copy(update={"index": str(index_folder(checking.collection, settings).absolute())})
        site = site_of(system, checking.collection, models)
        if kind.uses >= SEARCH:
            site = resolved(site, preparing=True)
            system, settings = system.model_copy(update={"settings": site.settings}), site.settings
        kinds = {one: target_choice(settings.target, one, site.collection) for one in settings.dimensions}
        if lacking := [dimension for dimension, target in kinds.items() if target is None]:
            problems.add(UsageError, open_choice(lacking, site.collection), name)
        if settings.sees_groups or kind.targets(settings.dimensions) is None:
            steers = {dimension: read_target(target).name for dimension, target in kinds.items() if target is not None}
            system = system.model_copy(update={"steers": steers})
        # Everything that depends on the dimensions, each on a topic that counts for it, so that there is a target.
        for dimension in (one for one in kinds if one not in lacking):
            alone, topic = settings.model_copy(update={"dimensions": (dimension,)}), chosen.judged.get(dimension, "")
            problems.attempt(where, ExposureMeter.make, site.collection, topic, alone, Ranking((), np.zeros(0)))
        _check_parts(kind, system, site, problems, name)
        other, analyzer = analyzers.setdefault(system.index, (name, settings.analyzer))
        if analyzer != settings.analyzer:
            ours = f"{where}: its analyzer is {settings.analyzer!r}, that of {other!r} {analyzer!r}"
            problems.add(SettingsError, f"{ours}: give one of them an index of its own (index: FOLDER)")
        placed[name] = system
    return placed


def _check_parts(kind: ExperimentKind, system: SystemPlan, site: Any, problems: Problems, name: str = "") -> None:
    """Add what parts and the model of a system lack; with its place where it has a `name`."""
    where = f"systems.{name}" if name else ""
    for slot in (slot for slot in CHECKED if slot in kind.uses):
        # What is wrong with an index is listed once, whichever systems search it.
        place = f"{where}.{slot}" if name and slot != "engine" else ""
        problems.attempt_for(name, place, getattr(site.settings, slot).check, site)
    if system.asks:
        problems.attempt(where, lambda: site.prompts and site.models.open(site.settings.model))


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


# --- cost and readiness ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Estimate:
    """At most so many calls, tokens and US dollars (None: no price); retries come on top.

    Parts have a worst case (`Part.worst_case`), and kinds of experiments add their own. Prompts are rendered and
    counted as one token for every four characters.
    """

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
        return tuple(name for name, lacking in self.systems.items() if not lacking)


def readiness(
    file: Path, limit: int | None = None, environ: Mapping[str, str] | None = None, given: Mapping[str, Any] = NOTHING
) -> Readiness:
    """The readiness of the experiment in `file`, with the keys `given`; nothing is built or fetched."""
    problems = Problems()
    kind, checked = examine({**read_yaml(file), **given}, file, problems, limit, environ)
    # What is lacking without the system that lacks it: several may lack the same. What is no system's stops all.
    lacks: list[str] = []
    of_system: dict[str, set[int]] = {name: set() for name in kind.systems}
    for error in problems.errors:
        place, message = "", str(error)
        # A name may begin with another and a dot.
        for name in sorted(kind.systems, key=len, reverse=True):
            if not place and str(error).startswith((f"systems.{name}: ", f"systems.{name}.")):
                place, message = name, str(error)[len(f"systems.{name}.") :].lstrip()
        if message not in lacks:
            lacks.append(message)
        owners = {place, *problems.of.get(str(error), ())} & of_system.keys()
        for name in owners or of_system:
            of_system[name].add(lacks.index(message))
    return Readiness(
        kind.name,
        kind.about.strip(),
        len(checked.plan.topics) if checked else 0,
        tuple(lacks),
        {name: tuple(sorted(places)) for name, places in of_system.items()},
        tuple(estimate(checked)) if checked and checked.plan.topics else None,
        problems.errors[0].exit_code if problems.errors else 0,
        _overridden(kind, os.environ if environ is None else environ),
    )


def _overridden(kind: ExperimentKind, environ: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """System -> what its profile sets in the place of the shared `settings`; its own keys stand above both."""
    by_system: dict[str, tuple[str, ...]] = {}
    for name, values in kind.systems.items():
        plain = {key: value for key, value in values.items() if key != "profile"}
        with suppress(SettingsError):
            before, now = (load_settings(None, lay(kind.settings, one), environ) for one in (plain, values))
            lines = []
            for key, value in kind.settings.items():
                shared, theirs = getattr(before, key), getattr(now, key)
                pairs = [(key, shared, theirs)]
                if isinstance(value, Mapping) and isinstance(shared, Section) and type(shared) is type(theirs):
                    there = [one for one in value if hasattr(shared, one)]
                    pairs = [(f"{key}.{one}", getattr(shared, one), getattr(theirs, one)) for one in there]
                lines += [f"{place}: {new}, not {old}" for place, old, new in pairs if old != new]
            if lines:
                by_system[name] = tuple(lines)
    return by_system
