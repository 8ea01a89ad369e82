"""Both kinds of Fair RAG: rankings are drawn at each alpha, answered from and measured; curves, tables and their page.

On LaMP each question has items of its own, and labels say which of them help a generator. On a collection its documents
are the items, and those that were judged relevant the useful ones. Medians take curves of several systems and runs
together: the paper's Table 1 has a row a retriever, of which it has run four generators; how is not stated.
"""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from pathlib import Path
from statistics import median
from typing import ClassVar, Literal

import numpy as np

from fairagent.answer.filtering import LONGEST_TITLE
from fairagent.collection import Collection
from fairagent.errors import FairAgentError, SettingsError, UsageError
from fairagent.evaluate.comparison import paired_t
from fairagent.evaluate.findings import cloud, query_group_files, query_group_tables
from fairagent.evaluate.fingerprint import file_hash, of_model
from fairagent.evaluate.judging import JudgedKind
from fairagent.evaluate.kind import (
    SEARCH,
    Checking,
    Chosen,
    ExperimentKind,
    JsonObject,
    KindResults,
    MeasureInfo,
    Opened,
    Subject,
    Systems,
)
from fairagent.evaluate.outcome import Outcome
from fairagent.evaluate.plan import Plan, SystemPlan
from fairagent.evaluate.run import Results
from fairagent.evaluate.tables import Column, LinePlot, Note, PagePart, PageSection, PlotLine, PlotPoint, Table
from fairagent.llm.models import Models
from fairagent.llm.prompts import LETTER, Calls, Case, Prompts
from fairagent.llm.request import estimate_tokens
from fairagent.measures import normalized_expected_utility
from fairagent.measures.expected_exposure import (
    EDGES,
    DisparityInterval,
    area_under_curve,
    disparity_intervals,
    fitted_line,
)
from fairagent.papers.fair_rag.lamp import FEWEST, TOKENS, Labeling, Lamp, LampTask, load_lamp, parse_task
from fairagent.papers.fair_rag.trial import (
    HIGHEST,
    NORMALIZED,
    CollectionDrawing,
    Drawing,
    Draws,
    FairRagTrial,
    LampFiles,
    LampTrial,
    generator,
)
from fairagent.retrieve.encoders import EncoderPart, open_encoder
from fairagent.settings.faults import no_such
from fairagent.storage.files import file_name
from fairagent.storage.threads import Memo
from fairagent.types import FloatArray

FILE = "fair_rag.csv"
MEASURED = (
    MeasureInfo("nDCG", "the expected binary nDCG of the k items that are drawn (discount log2-plus1)"),
    MeasureInfo(
        "EE-R", "the relevance of the items' expected exposure, between its bounds: expected recall or precision at k"
    ),
    MeasureInfo(
        "EE-D", "its disparity, between its bounds: 0 where all items may expect the same; lower is fairer", True
    ),
    MeasureInfo("EE-L", "its squared distance from the target, between its bounds; lower is better", True),
    MeasureInfo("EU", "expected utility: what the answer to a drawn ranking is worth, on average"),
    MeasureInfo(NORMALIZED, "EU divided by the highest utility that any draw of the topic had with the same generator"),
    MeasureInfo("EAR", "the expected share of the context that an answer rests on"),
    MeasureInfo("EAE-D", "the disparity of what answers rest on, between its bounds; lower is fairer", True),
)
"""What every row is measured by, as means over its draws; those between bounds are the normalized ones."""
OF_GROUPS = tuple(
    MeasureInfo(name, definition, True, of_groups=True)
    for name, definition in (
        ("gap re-ranked", "1 - AWRF of the expected exposure in the k items that are drawn; lower is fairer"),
        ("gap retrieved", "1 - AWRF of the k items that the user's own query finds, all places alike; lower is fairer"),
        ("gap cited", "1 - AWRF of what the answers rest on; lower is fairer"),
    )
)
"""What a row is measured by in every dimension of a collection, its end result first."""
AXES = {
    "EE-D": "disparity (EE-D)",
    "EE-R": "ranking quality (EE-R)",
    NORMALIZED: "utility (normalized EU)",
    "EAE-D": "attributed disparity (EAE-D)",
}
CURVES = (("EE-D", "EE-R"), ("EE-R", NORMALIZED), ("EE-D", NORMALIZED), ("EE-D", "EAE-D"))
"""What is drawn against what: disparity, ranking quality, utility and attributed disparity."""
SLOPE, AREA = "slope", "AUC"
MEASURES = (SLOPE, AREA, *(f"difference [{low:g}, {high:g})" for low, high in pairwise(EDGES)))
"""What a curve comes to; a difference is that of normalized EU, in an interval of EE-D, from the own order's."""
HOW_TO_READ = (
    "A mark is one alpha, as a mean over the topics; along a line alpha rises from uniform draws to almost the "
    "engine's order, and the hollow mark is that order itself. To the left is fairer. Where attributed disparity lies "
    "above the dotted diagonal, answers rest on fewer items than are shown."
)
OF_STAGES = (
    "How far the groups' exposure is from its target (1 − AWRF, all k places alike): in what the user's own query "
    "finds, in the expected exposure after re-ranking and drawing, and in what the answers rest on. A change below 0 "
    "closes the gap."
)


# --- what the rows come to


@dataclass(frozen=True, slots=True)
class RowMeans:
    """One row's means over the topics: alpha (None: its own order) and measure -> mean."""

    name: str
    alpha: float | None
    means: dict[str, float]


@dataclass(frozen=True, slots=True)
class Curve:
    """One run of the system `of` ("": an oracle): its rows by rising alpha, its own order, what they say together.

    `slope` is that of EE-R on EE-D, `area` the area under that curve, both over the rows that are drawn (None where
    there are not two different ones); `steps` are paired t-tests of EE-D between neighbors in alpha: (from, to, p).
    """

    system: str
    of: str
    drawn: tuple[RowMeans, ...]
    own: RowMeans | None
    slope: float | None
    area: float | None
    intervals: tuple[DisparityInterval, ...]
    steps: tuple[tuple[float, float, float | None], ...]

    @property
    def measures(self) -> dict[str, float | None]:
        """Each of MEASURES that there is -> its value."""
        of_intervals = {f"difference {interval.name}": interval.difference for interval in self.intervals}
        return {SLOPE: self.slope, AREA: self.area, **of_intervals}


def curves(run: Results) -> tuple[Curve, ...]:
    """One curve for each run of each system that rankings are drawn from, and one for the oracle of each generator."""
    rows: dict[tuple[str, bool, int], list[RowMeans]] = {}
    for name in run.systems:
        draws = Draws.model_validate(run.rows[name])
        means = {row.measure: row.mean for row in run.comparisons if row.system == name and not row.dimension}
        rows.setdefault((draws.system, draws.oracle, draws.run), []).append(RowMeans(name, draws.alpha, means))

    def values(row: RowMeans, measure: str) -> FloatArray:
        """The values of the topics that all rows have finished, in their order."""
        of_row = (one for one in run.outcomes if one.system == row.name and one.topic not in run.excluded)
        return np.array([one.values[""][measure] for one in of_row if measure in one.values.get("", {})])

    made = []
    for (system, oracle, number), of_run in rows.items():
        drawn = sorted((row for row in of_run if row.alpha is not None and row.means), key=lambda row: row.alpha or 0.0)
        # A system has one own order, which is that of all of its runs.
        own = next((row for row in rows.get((system, oracle, 0), ()) if row.alpha is None and row.means), None)
        if not drawn and own is None:
            continue
        disparity, relevance = (np.array([row.means[name] for row in drawn]) for name in ("EE-D", "EE-R"))
        line = fitted_line(disparity, relevance) if drawn else None
        steps = []
        for before, after in pairwise(drawn):
            one, two = values(before, "EE-D"), values(after, "EE-D")
            # Of a run that is not finished the rows may have gone differently far.
            p = paired_t(two - one) if len(one) == len(two) else None
            steps.append((before.alpha or 0.0, after.alpha or 0.0, p))
        intervals: tuple[DisparityInterval, ...] = ()
        if own and drawn:
            at, worth = (np.concatenate([values(row, name) for row in drawn]) for name in ("EE-D", NORMALIZED))
            if len(at) == len(worth):
                intervals = disparity_intervals(at, worth, values(own, NORMALIZED))
        made.append(
            Curve(
                system=of_run[0].name if oracle else f"{system}, run {number + 1}" if number else system,
                of="" if oracle else system,
                drawn=tuple(drawn),
                own=own,
                slope=line.slope if line else None,
                area=area_under_curve(disparity, relevance) if line else None,
                intervals=intervals,
                steps=tuple(steps),
            )
        )
    return tuple(made)


STAGES = ("gap retrieved", "gap re-ranked", "gap cited")
Stages = Mapping[tuple[str, str], tuple[float, float, float]]


def stages(run: Results) -> Stages:
    """(row, dimension that is judged) -> its mean gap in what is retrieved, after re-ranking, and in what is cited."""
    there = [(name, of) for of in run.dimensions for name in run.systems if (name, of, STAGES[0]) in run.compared]
    found, shown, cited = ([run.compared[*place, stage].mean for place in there] for stage in STAGES)
    return dict(zip(there, zip(found, shown, cited, strict=True), strict=True))


Medians = Mapping[str, tuple[int, Mapping[str, float]]]
"""Name -> of how many curves they are, and measure -> the median of those that have one; normalized EU is of own
orders."""


def medians(requested: Mapping[str, Sequence[str]], of_run: Sequence[Curve]) -> Medians:
    """Those requested, name -> systems, over all runs of these systems; none where no curve is there."""
    middle = {}
    for name, systems in requested.items():
        chosen = [curve for curve in of_run if curve.of in systems]
        own = {curve.of: curve.own.means[NORMALIZED] for curve in chosen if curve.own}
        values: dict[str, list[float]] = {NORMALIZED: list(own.values())}
        for measure in MEASURES:
            values[measure] = [value for curve in chosen if (value := curve.measures.get(measure)) is not None]
        if chosen:
            middle[name] = len(chosen), {measure: median(each) for measure, each in values.items() if each}
    return middle


class DrawnKind(ExperimentKind, ABC):
    """A kind whose systems stand in their own order and drawn at each alpha."""

    uses: ClassVar[frozenset[str]] = SEARCH | {"sampling", "attribute"}

    fair_rag: Drawing = Drawing()
    """What rankings are drawn and how they are measured."""

    @property
    def n(self) -> int:
        return self.fair_rag.k

    def check(self, checking: Checking) -> None:
        section, problems = self.fair_rag, checking.problems
        if len(set(section.alphas)) < len(section.alphas):
            problems.add(SettingsError, "fair_rag.alphas: a value stands there twice")
        rows = self.rows(checking.systems)
        for name, systems in section.medians.items():
            if name in rows:
                problems.add(SettingsError, f"fair_rag.medians: {name!r} is the name of a system's row; take another")
            for system in systems:
                if system not in self.systems:
                    message = f"fair_rag.medians.{name}: {no_such('system', system, self.systems)}"
                    problems.add(SettingsError, message)

    def rows(self, systems: Systems) -> Systems:
        """The rows by their names, system by system; then the oracle, once for each generator."""
        section = self.fair_rag
        draws: dict[str, Draws] = {}
        for name in systems:
            if section.deterministic:
                draws[name] = Draws(system=name, alpha=None)
            for run, alpha in product(range(section.runs), section.alphas):
                again = f", run {run + 1}" if run else ""
                draws[f"{name} α={alpha:g}{again}"] = Draws(system=name, alpha=alpha, run=run)
        if section.oracle is not None:
            first: dict[str, str] = {}
            for name, system in systems.items():
                first.setdefault(generator(system), name)
            for number, name in enumerate(first.values()):
                oracle = f"oracle for {name}" if number else "oracle"
                row = Draws(system=name, alpha=section.oracle, oracle=True)
                draws[f"{oracle} α={section.oracle:g}"] = row
        return {row: systems[one.system].model_copy(update={"row": one.model_dump()}) for row, one in draws.items()}

    def measured(self, dimensions: Sequence[str]) -> tuple[MeasureInfo, ...]:
        return MEASURED

    @property
    def measured_together(self) -> tuple[str, ...]:
        return MEASURES

    @property
    def other_names(self) -> tuple[str, ...]:
        return tuple(self.fair_rag.medians)

    def fingerprint(self, plan: Plan, subject: Subject, environ: Mapping[str, str]) -> JsonObject:
        """What drawn rankings depend on; which rows there are is no part of it."""
        rows = {"alphas", "deterministic", "oracle", "highest", "runs", "medians", "queries"}
        drawn = self.fair_rag.model_dump(mode="json", exclude=rows)
        return {**super().fingerprint(plan, subject, environ), "fair_rag": drawn}

    def answering(self, row: str, plan: Plan, items: int) -> tuple[Case, int]:
        """What prompts of a row are made from, and how many answers it asks for at most, with so many `items`."""
        system, k = plan.systems[row], self.fair_rag.k
        drawn = 1
        if system.row["alpha"] is not None:
            drawn = min(self.fair_rag.samples, math.perm(max(items, k), k))
        return Case(system.settings, Prompts(system.settings.prompts), ()), len(plan.topics) * drawn

    def completed(
        self, outcomes: Mapping[tuple[str, str], Outcome], topics: Sequence[str], plan: Plan
    ) -> Mapping[tuple[str, str], Outcome]:
        """The outcomes with their normalized EU: each topic's, divided by the best that any rival row had for it."""
        draws = {name: Draws.model_validate(system.row) for name, system in plan.systems.items()}
        generators = {name: generator(system) for name, system in plan.systems.items()}

        def rivals(name: str, other: str) -> bool:
            """Whether the best utility of `other` counts for `name`, too."""
            if generators[name] != generators[other]:
                return False
            same = draws[other].system == draws[name].system and draws[other].alpha is not None
            return self.fair_rag.highest == "all" or other == name or draws[other].oracle or same

        completed = dict(outcomes)
        for name in draws:
            against = [other for other in draws if rivals(name, other)]
            for topic in topics:
                outcome = outcomes[topic, name]
                highest = max(outcomes[topic, rival].values[""][HIGHEST] for rival in against)
                normalized = normalized_expected_utility(outcome.values[""]["EU"], highest)
                values = {**outcome.values, "": {**outcome.values[""], NORMALIZED: normalized}}
                completed[topic, name] = replace(outcome, values=values)
        return completed

    # --- results

    def results(self, run: Results) -> KindResults:
        """The curves, the medians, the intervals of disparity, the stages of each dimension, the groups of queries."""
        of_run, of_stages = curves(run), stages(run)
        of_medians = medians(self.fair_rag.medians, of_run)
        together = {(one.system, "", name): value for one in of_run for name, value in one.measures.items()}
        for row, (_, middle) in of_medians.items():
            together |= {(row, "", name): value for name, value in middle.items()}
        tables = [*self._tables(run, of_run, of_medians, of_stages), *query_group_tables(run)]
        lines: list[tuple[str, str, str, float | None]] = []
        for curve in of_run:
            name = curve.system
            lines.append(("slope of EE-R on EE-D", name, "", curve.slope))
            lines.append(("area under EE-R over EE-D", name, "", curve.area))
            lines += [("paired t-test of EE-D", name, f"alpha {low:g} to {high:g}", p) for low, high, p in curve.steps]
            for interval in curve.intervals:
                where = f"EE-D {interval.low:g} to {interval.high:g}"
                for what in ("count", "mean", "difference", "p"):
                    lines.append((f"normalized EU: {what}", name, where, getattr(interval, what)))
        for place, (retrieved, reranked, cited) in of_stages.items():
            lines.append(("gap retrieved", *place, retrieved))
            lines.append(("opened by re-ranking", *place, reranked - retrieved))
            lines.append(("opened by answering", *place, cited - reranked))
        files = {FILE: Table.of(("what", "of", "where", "value"), lines), **query_group_files(run)}
        page = self._page(run, of_run, tables) if of_run else None
        values = {key: value for key, value in together.items() if value is not None}
        return KindResults(tables, files, page=page, together=values)

    def _tables(self, run: Results, of_run: Sequence[Curve], of_medians: Medians, of_stages: Stages) -> Iterator[Table]:
        def expected(name: str) -> Mapping[str, float]:
            return (run.expected or {}).get(name, {}).get("", {})

        shown = [name for name in (SLOPE, AREA) if any(name in expected(curve.system) for curve in of_run)]
        lines: list[list[object]] = []
        for curve in of_run:
            tests = (f"{one:g}→{two:g}: {'-' if p is None else f'{p:.4f}'}" for one, two, p in curve.steps)
            paper = map(expected(curve.system).get, shown)
            lines.append([curve.system, curve.slope, curve.area, *paper, ", ".join(tests) or "-"])
        heads = ["system", SLOPE, AREA, *(f"expected {name}" for name in shown), "EE-D rises with alpha (paired t: p)"]
        yield Table.of(heads, lines, "disparity (EE-D) and ranking quality (EE-R) over alpha")
        if of_medians:
            shown = [
                name for name in (NORMALIZED, *MEASURES) if any(name in middle for _, middle in of_medians.values())
            ]
            compared = [name for name in shown if any(name in expected(row) for row in of_medians)]
            lines = [
                [row, str(count), *map(middle.get, shown), *map(expected(row).get, compared)]
                for row, (count, middle) in of_medians.items()
            ]
            heads = ["median of", "curves", *shown, *(f"expected {name}" for name in compared)]
            yield Table.of(heads, lines, "medians over systems and runs")
        for curve in of_run:
            if curve.intervals:
                papers = [expected(curve.system).get(f"difference {one.name}") for one in curve.intervals]
                some = any(value is not None for value in papers)
                lines = [
                    [one.name, str(one.count), one.mean, one.difference, one.p, *([paper] if some else [])]
                    for one, paper in zip(curve.intervals, papers, strict=True)
                ]
                heads = ["EE-D", "draws x topics", "mean", "difference", "t-test: p"]
                title = f"{curve.system}: normalized EU by disparity, compared with its own order"
                yield Table.of([*heads, *(["expected difference"] if some else [])], lines, title)
        change = Column("", "+.4f")
        for dimension in dict.fromkeys(dimension for _, dimension in of_stages):
            lines = [
                [row, retrieved, reranked, reranked - retrieved, cited, cited - reranked]
                for (row, of), (retrieved, reranked, cited) in of_stages.items()
                if of == dimension
            ]
            columns: list[str | Column] = ["row", "retrieved", "re-ranked", change, "cited", change]
            yield Table.of(columns, lines, f"{dimension}: the exposure gap, stage by stage", systems=True)

    def _page(self, run: Results, of_run: Sequence[Curve], tables: Sequence[Table]) -> PageSection:
        """The four curves, the queries that are shown, the tables, and how to read them."""
        colors = {curve.system: number for number, curve in enumerate(of_run)}
        plots = []
        for x, y in CURVES:
            # Of answers that nobody has attributed there is no EAE-D.
            if not all(y in row.means for curve in of_run for row in curve.drawn):
                continue
            lines = []
            for curve in of_run:
                drawn = [PlotPoint(f"α={row.alpha:g}", row.means[x], row.means[y]) for row in curve.drawn]
                own = [PlotPoint("own order", curve.own.means[x], curve.own.means[y])] if curve.own else []
                lines.append(PlotLine(curve.system, colors[curve.system], tuple(drawn), tuple(own)))
            caption = f"{AXES[y]} against {AXES[x]}"
            plots.append(LinePlot(caption, (AXES[x], AXES[y]), tuple(lines), diagonal=y == "EAE-D"))
        x, y = "EE-D", NORMALIZED
        shown = list(dict.fromkeys(one.topic for one in run.answered))[: self.fair_rag.queries]
        for curve in of_run if shown else ():
            names = {row.name: f"α={row.alpha:g}" for row in curve.drawn}
            points = [
                PlotPoint(f"{one.topic} {names[one.system]}", one.values[""][x], one.values[""][y])
                for one in run.answered
                if one.system in names and one.topic in shown and y in one.values.get("", {})
            ]
            if points:
                of_queries = (cloud(curve.system, colors[curve.system], points),)
                caption = f"{curve.system}: {AXES[y]} against {AXES[x]}, query by query"
                plots.append(LinePlot(caption, (AXES[x], AXES[y]), of_queries))
        curve_table, *others = tables
        intervals = [replace(table, folded=True) for table in others if table.columns[0].name == "EE-D"]
        gaps = [table for table in others if table.columns[0].name != "EE-D"]
        of_stages = [Note(OF_STAGES)] if gaps else []
        parts: list[PagePart] = [Note(HOW_TO_READ), *plots, curve_table, *intervals, *of_stages, *gaps]
        title = "Fairness, quality and utility of drawn rankings"
        return PageSection("Curves", title, tuple(parts), tuple(colors.items()))


# --- on LaMP


class LampKind(DrawnKind):
    """Rankings are drawn from the items of LaMP's questions, and answers are compared with the right ones."""

    kind: Literal["lamp"] = "lamp"
    lamp: LampFiles
    """LaMP's files, and the labels of their items."""

    engines: ClassVar[tuple[str, ...]] = ("okapi",)
    uses: ClassVar[frozenset[str]] = frozenset({"sampling", "attribute"})

    @property
    def _task(self) -> LampTask:
        return parse_task(self.lamp.task)

    def open(self, collection: Collection) -> Lamp:
        return load_lamp(self.lamp.task, self.lamp.questions, self.lamp.outputs)

    def templates(self, system: SystemPlan) -> tuple[str, ...]:
        return (self._task.prompt, *system.settings.attribute.templates)

    def check(self, checking: Checking) -> None:
        super().check(checking)
        problems = checking.problems
        problems.attempt("lamp.task", lambda: (self._task.label_utility, self._task.utility))
        if self.collection:
            problems.add(
                SettingsError, "collection: does not go with `kind: lamp`, whose questions have their own items"
            )
        for name, system in checking.systems.items():
            engine = system.settings.engine
            if not getattr(engine, "scores_items", False):
                message = f"LaMP's items are scored by okapi, dense, splade, not by {engine.kind!r}"
                problems.add(SettingsError, f"systems.{name}.engine: {message}")
            if getattr(system.settings.attribute, "reads_citations", False):
                message = "LaMP's answers cite nothing; set attribute to nli, judge or none"
                problems.add(UsageError, f"systems.{name}: {message}")
            if checking.labeled:
                # The model that scores the items has to be on this machine.
                if named := getattr(engine, "text_encoder", ""):
                    problems.attempt(f"systems.{name}.engine", open_encoder, named)
                elif isinstance(engine, EncoderPart):
                    problems.attempt(f"systems.{name}.engine", engine.open_encoder, Memo())

    def keep(self, chosen: Chosen, checking: Checking, models: Models) -> Chosen:
        if checking.subject is None or not checking.labeled or checking.problems.errors:
            return chosen
        counted = set(chosen.topics)
        for one in self.generators(checking.systems, checking.subject, checking.environ).values():
            try:
                counted &= set(one.read().counted)
            except FairAgentError as error:
                missing = f"{error}\n`fairagent labels FILE` makes those that are missing"
                checking.problems.add(type(error), missing)
        few = {id: f"fewer than {FEWEST} useful items" for id in chosen.topics if id not in counted}
        return Chosen(tuple(id for id in chosen.topics if id in counted), few)

    def generators(
        self, systems: Systems, subject: Subject, environ: Mapping[str, str] | None = None
    ) -> dict[str, Labeling]:
        """What tells each generator of the experiment from another -> its labels, in the order of the systems."""
        assert isinstance(subject, Lamp)  # `open` made it
        generators: dict[str, Labeling] = {}
        for system in systems.values():
            if (key := generator(system)) not in generators:
                model, prompts = system.settings.model, Prompts(system.settings.prompts)
                same = sum(other.model.name == model.name for other in generators.values())
                name = f"{file_name(model.name)}{f'_{same + 1}' if same else ''}.jsonl"
                path = Path(self.lamp.labels) / name
                generators[key] = Labeling(subject, prompts, of_model(model, environ), model, path)
        return generators

    def fingerprint(self, plan: Plan, subject: Subject, environ: Mapping[str, str]) -> JsonObject:
        assert isinstance(subject, Lamp)
        labels = {path.name: file_hash(path) for path in sorted(Path(self.lamp.labels).glob("*.jsonl"))}
        lamp = {"task": self.lamp.task, "files": subject.sha256, "labels": labels}
        return {**super().fingerprint(plan, subject, environ), "lamp": lamp}

    def calls_before(self, plan: Plan, subject: Subject) -> Iterator[tuple[str, Calls]]:
        for one in self.generators(plan.systems, subject).values():
            if (calls := one.estimate()).calls:
                yield f"labels for {one.model.name}", calls

    def worst_case(self, row: str, plan: Plan, subject: Subject) -> Iterator[Calls]:
        assert isinstance(subject, Lamp)
        items = max((len(question.items) for question in subject.questions), default=1)
        case, calls = self.answering(row, plan, items)
        yield from (case.counted(id, calls, calls * TOKENS) for id in self.templates(plan.systems[row]))

    def trial(self, opened: Opened) -> LampTrial:
        assert isinstance(opened.subject, Lamp)
        useful = {}
        for key, one in self.generators(opened.plan.systems, opened.subject).items():
            labels = one.read()
            useful[key] = {id: labels.useful(id) for id in labels.gains}
        return LampTrial(opened, self.fair_rag, opened.subject, useful)


# --- on a collection


class FairRagKind(DrawnKind, JudgedKind):
    """Rankings are drawn from a collection's documents, and answers are extracts of them or a model's."""

    kind: Literal["fair-rag"] = "fair-rag"
    fair_rag: CollectionDrawing = CollectionDrawing()
    """What rankings are drawn and how they are measured."""

    def templates(self, system: SystemPlan) -> tuple[str, ...]:
        settings = system.settings
        return (*settings.filter.templates, *settings.generate.templates, *settings.attribute.templates)

    def check(self, checking: Checking) -> None:
        super().check(checking)
        section, problems = self.fair_rag, checking.problems
        if section.pool < section.k:
            problems.add(SettingsError, f"fair_rag.pool: {section.pool} candidates are fewer than k = {section.k}")
        for name, system in checking.systems.items():
            if system.settings.attribute.idle(system.settings):
                message = f"systems.{name}: attribute is none, and EAR and EAE-D are about what answers rest on"
                problems.add(UsageError, message)

    def measured(self, dimensions: Sequence[str]) -> tuple[MeasureInfo, ...]:
        return (*super().measured(dimensions), *(OF_GROUPS if dimensions else ()))

    def worst_case(self, row: str, plan: Plan, subject: Subject) -> Iterator[Calls]:
        case, answers = self.answering(row, plan, self.fair_rag.pool)
        settings, k = plan.systems[row].settings, self.fair_rag.k
        read = settings.context.tokens + k * estimate_tokens(LETTER * LONGEST_TITLE)
        for id in self.templates(plan.systems[row]):
            # A filter looks at each document alone; everything else reads the whole context.
            calls = answers * (k if id in settings.filter.templates else 1)
            yield case.counted(id, calls, calls * read)

    def trial(self, opened: Opened) -> FairRagTrial:
        return FairRagTrial(opened, self.fair_rag)
