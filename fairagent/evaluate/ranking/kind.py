"""Systems rank documents, and the rankings are judged by relevance and by the exposure that they give groups.

Also of run files, compared on a collection.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from fairagent.collection import Collection
from fairagent.collection.config import CollectionFile
from fairagent.collection.records import listed
from fairagent.errors import BackendUnavailable, DataError, UsageError
from fairagent.evaluate import query_groups
from fairagent.evaluate.check import CheckedExperiment, check_experiment_values
from fairagent.evaluate.judging import SYSTEMS, Judge, JudgedKind
from fairagent.evaluate.kind import (
    SEARCH,
    Checking,
    Chosen,
    JsonObject,
    KindResults,
    MeasureInfo,
    Name,
    Opened,
    Subject,
    Values,
)
from fairagent.evaluate.outcome import Outcome
from fairagent.evaluate.plan import Plan, System, build_systems
from fairagent.evaluate.ranking import recall, sampling, unawareness
from fairagent.evaluate.ranking.recall import WHOLE, AgainstBaseline, read
from fairagent.evaluate.run import Run
from fairagent.evaluate.tables import Note, PageSection, Table
from fairagent.measures import Measure, Product, parse_measure
from fairagent.retrieve.base import as_query, searched
from fairagent.retrieve.run_file import check_scored
from fairagent.retrieve.stochastic import draw, topic_rng
from fairagent.settings import read_yaml, validate
from fairagent.storage.readers import unpacked_name
from fairagent.types import Draw, Exposure, FloatArray, Ranking, SearchResult, Topic
from fairagent.types.common import counted

OF_GROUPS = ("AWRF(unknown=ignore)@20", "unlabeled@20", "unlabeled(of=type)@20")
STANDARD = ("nDCG@20", OF_GROUPS[0], f"nDCG@20*{OF_GROUPS[0]}", *OF_GROUPS[1:])
UNJUDGED = ("changed@20", "kept@20", *OF_GROUPS)
"""The measures of a file that names none, where nothing is judged."""
LENGTH = 20
"""How long rankings are where no measure says it."""


@dataclass(frozen=True, slots=True)
class RankingTrial:
    """Lets systems rank documents, and judges the rankings; run files are `depth` documents deep.

    Of a system with `sampling.alpha` there are `draws` rankings a topic, drawn by `seed`: values and exposures are
    means over them, and everything else is that of the first.
    """

    judge: Judge
    systems: Mapping[str, System]
    depth: int
    draws: int
    seed: int

    def outcome(self, system: str, id: str) -> Outcome:
        """See `Trial.outcome`."""
        used, judge, topic = self.systems[system], self.judge, self.judge.collection.topics[id]
        result, drawn = self._searched(used, topic)
        trace, length = result.trace, len(result.ranking)
        engine, query = used.agent.retriever, as_query(topic)
        own = searched(engine, query, self.depth) if length < self.depth else trace.steps[0].ranking
        ranking = deepened(result.ranking, own, self.depth)
        of_draws = [judge.values(id, deepened(one, own, self.depth)) for one in drawn]
        retrieved = recall.first_retrieved(result.retrieved, own.ids, self.depth)
        relevant = [document for document, grade in judge.collection.qrels.get(id, {}).items() if grade > 0]
        of_groups = relevant and any(measure.of_groups for measure in judge.measures.values())
        return Outcome.of(
            topic,
            system,
            sampling.means(of_draws) if drawn else judge.values(id, ranking),
            trace.usage,
            search=result,
            hits=judge.hits(id, result.hits, result.ranking.scores),
            tail=tuple(zip(ranking.ids[length:], ranking.scores[length:].tolist(), strict=True)),
            exposures=mean_exposures([judge.exposures(id, one) for one in drawn or [result.ranking]]),
            recall=tuple(
                recall.group_recall(judge.collection.groups, dimension, id, relevant, retrieved)
                for dimension, topics in judge.counted.items()
                if of_groups and id in topics
            ),
            entered=len(set(retrieved) - set(own.ids)),
            oracle=trace.oracle and used.sees_groups,
            # What a search takes, and not its judgment.
            seconds=trace.seconds,
            record=sampling.spread(of_draws) if drawn else None,
        )

    def _searched(self, used: System, topic: Topic) -> tuple[SearchResult, list[Ranking]]:
        """What is served for a topic, and all rankings that are drawn for it: none unless its settings draw."""
        agent, settings = used.agent, used.site.settings.sampling
        if settings.alpha is None:
            return agent.search(topic), []
        run = agent.find(topic, settings.pool)
        seed = settings.seed if "seed" in settings.model_fields_set else self.seed
        samples = draw(run.pool, settings.alpha, agent.settings.n, topic_rng(seed, topic.id), self.draws)
        drawn = [samples.ranking(number) for number in range(self.draws)]
        return run.result(drawn[0], Draw(settings.alpha, len(run.pool), seed, 0)), drawn


def deepened(ranking: Ranking, more: Ranking, depth: int) -> Ranking:
    """`ranking`, and below it, to `depth`, what else is in the engine's list for the user's own words, in its order."""
    if depth <= len(ranking):
        return ranking
    shown = set(ranking.ids)
    rest = [place for place, id in enumerate(more.ids) if id not in shown][: depth - len(ranking)]
    # The scores of a re-ranker are on another scale: what stands below is worth no more.
    lowest = ranking.scores[-1] if len(ranking) else np.inf
    scores = np.concatenate([ranking.scores, np.minimum(more.scores[rest], lowest)])
    return Ranking((*ranking.ids, *(more.ids[place] for place in rest)), scores)


def mean_exposures(of_draws: Sequence[Sequence[Exposure]]) -> Sequence[Exposure]:
    """The exposures of several rankings of one topic, one a dimension: shares and what is unknown are means."""
    means = []
    for several in zip(*of_draws, strict=True):
        missing = [one.missing for one in several if one.missing is not None]
        means.append(
            replace(
                several[0],
                shares=np.mean([one.shares for one in several], axis=0),
                unknown=float(np.mean([one.unknown for one in several])),
                missing=float(np.mean(missing)) if len(missing) == len(several) else None,
            )
        )
    return means


class RankingKind(JudgedKind):
    """Systems rank a collection's documents, and the rankings are judged."""

    kind: Literal["ranking"] = "ranking"
    systems: dict[Name, Values] = Field(min_length=1, examples=[SYSTEMS])
    """Name -> settings that beat the shared ones; with a `profile`, laid over that."""
    measures: tuple[str, ...] = Field(STANDARD, min_length=1)
    """What rankings are judged by: ours (nDCG, AWRF, gap, unlabeled, products of two), those of ir-measures (AP, RR,
    P@5, R@100 ...), and `changed@20` and `kept@20`, which compare with the baseline's ranking. Left out for a
    collection without judgments: changed, kept, AWRF, gap and unlabeled."""
    run_depth: int = Field(1000, ge=1)
    """How many documents run files hold, for measures that look deep. Exposure is measured, and systems are fair, in
    the first n: the largest cut-off of the measures that look at groups. Below stands what else the system's engine
    finds for the user's own words. Recall by group is that of so many documents retrieved."""

    draws: int = Field(100, ge=1)
    """How many rankings of a system with `sampling.alpha` are drawn for each topic. Its values are means over them,
    with the standard deviation in a table of its own; run files and pages have the first. The experiment's seed draws,
    unless `sampling.seed` is set."""

    confusion: dict[str, tuple[tuple[float, ...], ...]] = Field(default={})
    """Of a classifier that predicted a dimension's labels: dimension -> matrix, a row a label, in the labels' order;
    its columns are the mean probabilities of validation documents of each group. It adjusts the estimate of AWRF. Left
    out: what the collection's `errors` say."""

    needs_judgments: ClassVar[bool] = False
    ranks: ClassVar[bool] = True
    uses: ClassVar[frozenset[str]] = SEARCH | {"sampling"}

    @cached_property
    def parsed(self) -> tuple[Measure | AgainstBaseline, ...]:
        """The measures that can be read."""
        return tuple(measure for text in self.measures if not isinstance(measure := _read(text), Exception))

    @property
    def needs_groups(self) -> bool:
        """Whether a measure looks at groups."""
        return any(isinstance(one, Measure) and one.of_groups for one in self.parsed)

    @property
    def n(self) -> int:
        """The largest cut-off of the measures that look at groups; without any, of all that have one."""
        of_groups = [one.n for one in self.parsed if isinstance(one, Measure) and one.of_groups and one.n]
        return max(of_groups or [one.n for one in self.parsed if one.n], default=LENGTH)

    @property
    def overall(self) -> str:  # type: ignore[override]
        """What tables call that which no dimension has."""
        return "relevance" if any(map(_of_relevance, self.parsed)) else "ranking"

    def on(self, collection: Collection) -> Self:
        """With the measures that need no judgments, where there are none and the file names no measures."""
        kind = super().on(collection)
        matrices = {
            name: tuple(map(tuple, errors.matrix(collection.groups.labels(name)).tolist()))
            for name, errors in collection.label_errors.items()
            if name not in kind.confusion
        }
        if matrices:
            kind = kind.model_copy(update={"confusion": {**kind.confusion, **matrices}})
        if "measures" not in self.model_fields_set and self.unjudged(collection):
            return kind.model_copy(update={"measures": UNJUDGED})
        return kind

    def check(self, checking: Checking) -> None:
        """Add unknown measures, and those that need judgments where there are none."""
        for error in map(_read, self.measures):
            if isinstance(error, Exception):
                checking.problems.add(type(error), f"measures: {error}")
        if checking.collection and self.unjudged(checking.collection):
            for one in filter(_of_relevance, self.parsed):
                checking.problems.add(UsageError, f"measures: {one} needs judgments, and the collection has none")
        if checking.collection:
            groups, check = checking.collection.groups, unawareness.check_confusion
            for dimension, matrix in self.confusion.items():
                checking.problems.attempt(f"confusion.{dimension}", check, matrix, dimension, groups)
        baseline = checking.systems.get(self.baseline or next(iter(checking.systems), ""))
        engine = baseline.settings.engine if baseline else None
        drawing = [name for name, system in checking.systems.items() if system.settings.sampling.alpha is not None]
        for one in self.parsed:
            if isinstance(one, AgainstBaseline) and one.of_scores and engine:
                checking.problems.attempt("measures", engine.expect_scores, str(one))
            if isinstance(one, AgainstBaseline) and drawing:
                message = f"measures: {one} compares two rankings, and sampling.alpha draws many of {listed(drawing)}"
                checking.problems.add(UsageError, message)

    def choose(self, checking: Checking) -> Chosen:
        """The topics with relevant documents; the others are searched for the run files alone."""
        chosen = super().choose(checking)
        return replace(chosen, unjudged=tuple(chosen.excluded))

    def measured(self, dimensions: Sequence[str]) -> tuple[MeasureInfo, ...]:
        """The measures of the file, which define themselves."""
        return tuple(
            MeasureInfo(str(one), one.about, one.lower_is_better, one.neutral, one.of_groups)
            if isinstance(one, Measure)
            else one.measured
            for one in self.parsed
        )

    def fingerprint(self, plan: Plan, subject: Subject, environ: Mapping[str, str]) -> JsonObject:
        """Also how deep runs are."""
        return {**super().fingerprint(plan, subject, environ), "run_depth": self.run_depth, "draws": self.draws}

    def trial(self, opened: Opened) -> RankingTrial:
        """Every system as an agent."""
        measures = [str(one) for one in self.parsed if isinstance(one, Measure)]
        judge = Judge.of(opened.plan, opened.collection, measures)
        return RankingTrial(judge, build_systems(opened), self.run_depth, self.draws, opened.plan.experiment.seed)

    def completed(
        self, outcomes: Mapping[tuple[str, str], Outcome], topics: Sequence[str], plan: Plan
    ) -> Mapping[tuple[str, str], Outcome]:
        """With what each system changes of the baseline's ranking."""
        against = [one for one in self.parsed if isinstance(one, AgainstBaseline)]
        if not against:
            return outcomes
        completed = dict(outcomes)
        for topic in topics:
            baseline = outcomes[topic, plan.baseline].scored
            for system in plan.systems:
                outcome = outcomes[topic, system]
                values = {str(one): one.value(outcome.scored, baseline) for one in against}
                overall = {**outcome.values.get("", {}), **values}
                completed[topic, system] = replace(outcome, values={**outcome.values, "": overall})
        return completed

    # --- what came out -------------------------------------------------------------------------------------------

    def _unaware(self) -> tuple[float, dict[str, FloatArray]]:
        measures = [one for one in self.parsed if isinstance(one, Measure)]
        return unawareness.base_of(measures), {name: np.array(rows) for name, rows in self.confusion.items()}

    def remarks(self, run: Run) -> tuple[str, ...]:
        """Which ids are no document's, which rankings are empty, which measures look at what no system ranks."""
        below = [str(one) for one in self.parsed if isinstance(one, Measure) and (one.n is None or one.n > run.n)]
        empty: dict[str, list[str]] = {}
        for outcome in run.answered:
            if not outcome.hits:
                empty.setdefault(outcome.system, []).append(outcome.topic)
        source = run.provenance.get("collection")
        unknown = source.get("unknown", ()) if isinstance(source, Mapping) else ()
        return (
            *unknown,
            *(
                f"{system} has an empty ranking for {counted(len(ids), 'topic')}, which count with the lowest values: "
                f"{listed(ids)}"
                for system, ids in empty.items()
            ),
            *(
                [f"below rank {run.n} stands the engine's own list, whatever the system: {listed(below)} look there"]
                if below
                else []
            ),
        )

    def tables(self, run: Run) -> list[Table]:
        """Draws and their spread, AWRF under missing labels, recall by group, and results by group of the query."""
        return [
            *sampling.tables(run),
            *unawareness.tables(run, *self._unaware()),
            *recall.tables(run),
            *query_groups.query_group_tables(run),
        ]

    def files(self, run: Run) -> Mapping[str, Table]:
        """The same in full."""
        return {
            **sampling.files(run),
            **unawareness.files(run, *self._unaware()),
            **recall.files(run),
            **query_groups.query_group_files(run),
        }

    def results(self, run: Run) -> KindResults:
        """These tables; the page has the groups' recall, too, and before all which rankings are empty."""
        remarks, tables = self.remarks(run), self.tables(run)
        parts: list[Note | Table] = [*map(Note, remarks), *tables, *recall.group_tables(run)]
        page = PageSection("Labels and topics", "What the means do not show", tuple(parts)) if parts else None
        records = {"recall": [asdict(row) for row in recall.mean_recalls(run)]}
        return KindResults(tables, self.files(run), remarks, page, records)


def _of_relevance(measure: Measure | AgainstBaseline) -> bool:
    return isinstance(measure, Measure) and measure.of_relevance


def _read(text: str) -> Measure | AgainstBaseline | UsageError | BackendUnavailable:
    """The measure of a text, or what is wrong with it."""
    try:
        measure = read(text) or parse_measure(text)
    except (UsageError, BackendUnavailable) as error:
        return error
    if isinstance(measure, Product) and measure.left.n != measure.right.n:
        return UsageError(f"{text!r}: the factors of a product have the same cut-off here")
    return measure


SUFFIXES = (".txt", ".tsv", ".csv", ".run", ".trec", ".res")
"""Ends of files' names that are no part of a run's name."""


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
    """An experiment that compares `runs` on a collection, checked as one of a file is.

    By `measures`, or by the standard ones at `n` (20), which cuts the runs; on a collection without judgments, by those
    that need none. `target` is that of an experiment.
    """
    if n is not None and measures:
        raise UsageError("measures have their own cut-offs, e.g. nDCG@10: leave out n")
    named: dict[str, Path] = {}
    for run in runs:
        if (other := named.setdefault(run_name(run), run)) != run:
            raise UsageError(f"two runs are called {run_name(run)!r}, {other} and {run}: rename one of the files")
    systems = {
        name: {"profile": "engine", "engine": {"kind": "run-file", "path": str(run.absolute())}}
        for name, run in named.items()
    }
    values = {
        "name": "runs",
        "collection": str(collection.absolute()),
        "measures": list(measures) or _standard(collection, named.get(baseline, runs[0]), n or LENGTH),
        "dimensions": list(dimensions),
        "baseline": baseline,
        "target": target,
        "run_depth": n or WHOLE,
        "systems": systems,
    }
    return check_experiment_values(values, f"of {counted(len(runs), 'run')}", Path.cwd(), environ=environ)


def _standard(collection: Path, baseline: Path, n: int) -> list[str]:
    """The standard measures at cut-off `n`; without judgments those that need none, nor scores that are not there."""
    file = validate(CollectionFile, read_yaml(collection), str(collection))
    measures: tuple[str, ...] = STANDARD
    if not file.track and not file.qrels:
        measures = UNJUDGED
        try:
            check_scored(baseline, "")
        except DataError:
            measures = tuple(measure for measure in measures if not measure.startswith("kept"))
    return [measure.replace(f"@{LENGTH}", f"@{n}") for measure in measures]


def run_name(path: Path) -> str:
    """What a run file's run is called.

    >>> run_name(Path("runs/bm25.txt.gz")), run_name(Path("UDInfo.run2"))
    ('bm25', 'UDInfo.run2')
    """
    name = unpacked_name(path)
    return Path(name).stem if Path(name).suffix in SUFFIXES else name
