"""What both kinds of Fair RAG have in common: rows drawn at each alpha, their measures, curves, tables and page.

Medians take curves of several systems and runs together: the paper's Table 1 has a row a retriever, of which it has run
four generators; how it aggregates them is not stated.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from statistics import median
from typing import ClassVar, Literal

import numpy as np

from fairagent.errors import SettingsError
from fairagent.evaluate.comparison import paired_t
from fairagent.evaluate.findings import cloud
from fairagent.evaluate.kind import (
    SEARCH,
    Checking,
    ExperimentKind,
    JsonObject,
    KindResults,
    MeasureInfo,
    Subject,
    Systems,
)
from fairagent.evaluate.outcome import Outcome
from fairagent.evaluate.plan import Plan, SystemPlan
from fairagent.evaluate.run import Results
from fairagent.evaluate.tables import Column, LinePlot, Note, PagePart, PageSection, PlotLine, PlotPoint, Table
from fairagent.measures import normalized_expected_utility
from fairagent.measures.expected_exposure import (
    EDGES,
    DisparityInterval,
    area_under_curve,
    disparity_intervals,
    fitted_line,
)
from fairagent.papers.fair_rag.draws import HIGHEST, NORMALIZED, Drawing, Draws
from fairagent.settings.faults import no_such
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
STAGES = ("gap retrieved", "gap re-ranked", "gap cited")
CURVES = (("EE-D", "EE-R"), ("EE-R", NORMALIZED), ("EE-D", NORMALIZED), ("EE-D", "EAE-D"))
"""What is drawn against what: disparity, ranking quality, utility and attributed disparity."""
AXES = {
    "EE-D": "disparity (EE-D)",
    "EE-R": "ranking quality (EE-R)",
    NORMALIZED: "utility (normalized EU)",
    "EAE-D": "attributed disparity (EAE-D)",
}
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
        first = rows.get((system, oracle, 0), ())
        own = next((row for row in first if row.alpha is None and row.means), None)
        if not drawn and own is None:
            continue
        disparity = np.array([row.means["EE-D"] for row in drawn])
        relevance = np.array([row.means["EE-R"] for row in drawn])
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
        called = of_run[0].name if oracle else f"{system}, run {number + 1}" if number else system
        slope, area = (line.slope, area_under_curve(disparity, relevance)) if line else (None, None)
        made.append(Curve(called, "" if oracle else system, tuple(drawn), own, slope, area, intervals, tuple(steps)))
    return tuple(made)


@dataclass(frozen=True, slots=True)
class Stages:
    """One row's mean gap in one dimension where documents are retrieved, after re-ranking, and in what is cited."""

    row: str
    dimension: str
    retrieved: float
    reranked: float
    cited: float


def stages(run: Results) -> tuple[Stages, ...]:
    """Every row's gap, stage by stage, in each dimension that is judged."""
    means = {(row.system, row.dimension, row.measure): row.mean for row in run.comparisons}
    return tuple(
        Stages(name, dimension, *(means[name, dimension, stage] for stage in STAGES))
        for dimension in run.dimensions
        for name in run.systems
        if (name, dimension, STAGES[0]) in means
    )


@dataclass(frozen=True, slots=True)
class Median:
    """The median of `curves` curves: measure -> value, over those that have one; normalized EU is of own orders."""

    name: str
    curves: int
    values: dict[str, float]


def medians(requested: Mapping[str, Sequence[str]], of_run: Sequence[Curve]) -> Iterator[Median]:
    """Those requested, name -> systems, over all runs of these systems; none where no curve is there."""
    for name, systems in requested.items():
        chosen = [curve for curve in of_run if curve.of in systems]
        own = {curve.of: curve.own.means[NORMALIZED] for curve in chosen if curve.own}
        values: dict[str, list[float]] = {NORMALIZED: list(own.values())}
        for measure in MEASURES:
            values[measure] = [value for curve in chosen if (value := curve.measures.get(measure)) is not None]
        if chosen:
            yield Median(name, len(chosen), {measure: median(each) for measure, each in values.items() if each})


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
        for alpha in section.alphas:
            if alpha < 0 or alpha == float("inf"):
                problems.add(SettingsError, f"fair_rag.alphas: {alpha:g} is no finite number of 0 or more")
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
                draws[row_name(name, None)] = Draws(system=name, alpha=None)
            for run, alpha in product(range(section.runs), section.alphas):
                draws[row_name(name, alpha, run)] = Draws(system=name, alpha=alpha, run=run)
        if section.oracle is not None:
            first: dict[str, str] = {}
            for name, system in systems.items():
                first.setdefault(generator(system), name)
            for number, name in enumerate(first.values()):
                oracle = row_name("oracle" if not number else f"oracle for {name}", section.oracle)
                draws[oracle] = Draws(system=name, alpha=section.oracle, oracle=True)
        return {row: systems[one.system].model_copy(update={"row": one.model_dump()}) for row, one in draws.items()}

    def measured(self, dimensions: Sequence[str]) -> tuple[MeasureInfo, ...]:
        return MEASURED

    @property
    def measured_together(self) -> tuple[str, ...]:
        return MEASURES

    @property
    def other_names(self) -> tuple[str, ...]:
        """The medians."""
        return tuple(self.fair_rag.medians)

    def values_together(self, run: Results) -> Mapping[tuple[str, str, str], float]:
        """Those of every curve, in the place of the system's own order, and the medians."""
        of_run = curves(run)
        values = {(one.system, "", name): value for one in of_run for name, value in one.measures.items()}
        for row in medians(self.fair_rag.medians, of_run):
            values |= {(row.name, "", name): value for name, value in row.values.items()}
        return {key: value for key, value in values.items() if value is not None}

    def fingerprint(self, plan: Plan, subject: Subject, environ: Mapping[str, str]) -> JsonObject:
        """What drawn rankings depend on; which rows there are is no part of it."""
        rows = {"alphas", "deterministic", "oracle", "highest", "runs", "medians", "queries"}
        drawn = self.fair_rag.model_dump(mode="json", exclude=rows)
        return {**super().fingerprint(plan, subject, environ), "fair_rag": drawn}

    def completed(
        self, outcomes: Mapping[tuple[str, str], Outcome], topics: Sequence[str], plan: Plan
    ) -> Mapping[tuple[str, str], Outcome]:
        """The outcomes with their normalized EU: each topic's, divided by the best that any rival row had for it."""
        against = {name: tuple(rivals(name, plan.systems, self.fair_rag.highest)) for name in plan.systems}
        completed = dict(outcomes)
        for topic, name in product(topics, plan.systems):
            outcome = outcomes[topic, name]
            highest = max(outcomes[topic, rival].values[""][HIGHEST] for rival in against[name])
            normalized = normalized_expected_utility(outcome.values[""]["EU"], highest)
            values = {**outcome.values, "": {**outcome.values[""], NORMALIZED: normalized}}
            completed[topic, name] = replace(outcome, values=values)
        return completed

    # --- results

    def results(self, run: Results) -> KindResults:
        """The curves over alpha."""
        return KindResults(self.tables(run), self.files(run), page=self.page(run), together=self.values_together(run))

    def tables(self, run: Results) -> list[Table]:
        """The curves, the medians, the intervals of disparity, the stages of each dimension."""
        of_run, tables = curves(run), []
        papers = [_expected(run, curve.system) for curve in of_run]
        shown = [name for name in (SLOPE, AREA) if any(name in paper for paper in papers)]
        lines: list[list[object]] = []
        for curve, paper in zip(of_run, papers, strict=True):
            tests = (f"{one:g}→{two:g}: {'-' if p is None else f'{p:.4f}'}" for one, two, p in curve.steps)
            lines.append([curve.system, curve.slope, curve.area, *map(paper.get, shown), ", ".join(tests) or "-"])
        heads = ["system", SLOPE, AREA, *(f"expected {name}" for name in shown)]
        title = "disparity (EE-D) and ranking quality (EE-R) over alpha"
        tables.append(Table.of([*heads, "EE-D rises with alpha (paired t: p)"], lines, title))
        if rows := list(medians(self.fair_rag.medians, of_run)):
            papers = [_expected(run, row.name) for row in rows]
            shown = [name for name in (NORMALIZED, *MEASURES) if any(name in row.values for row in rows)]
            expected = [name for name in shown if any(name in paper for paper in papers)]
            lines = [
                [row.name, str(row.curves), *map(row.values.get, shown), *map(paper.get, expected)]
                for row, paper in zip(rows, papers, strict=True)
            ]
            heads = ["median of", "curves", *shown, *(f"expected {name}" for name in expected)]
            tables.append(Table.of(heads, lines, "medians over systems and runs"))
        for curve in of_run:
            if curve.intervals:
                paper = _expected(run, curve.system)
                differences = [paper.get(f"difference {one.name}") for one in curve.intervals]
                compared = any(value is not None for value in differences)
                lines = [
                    [one.name, str(one.count), one.mean, one.difference, one.p, *([value] if compared else [])]
                    for one, value in zip(curve.intervals, differences, strict=True)
                ]
                heads = ["EE-D", "draws x topics", "mean", "difference", "t-test: p"]
                title = f"{curve.system}: normalized EU by disparity, compared with its own order"
                tables.append(Table.of([*heads, *(["expected difference"] if compared else [])], lines, title))
        of_stages = stages(run)
        change = Column("", "+.4f")
        for dimension in dict.fromkeys(one.dimension for one in of_stages):
            lines = [
                [
                    *(one.row, one.retrieved, one.reranked, one.reranked - one.retrieved),
                    *(one.cited, one.cited - one.reranked),
                ]
                for one in of_stages
                if one.dimension == dimension
            ]
            columns: list[str | Column] = ["row", "retrieved", "re-ranked", change, "cited", change]
            tables.append(Table.of(columns, lines, f"{dimension}: the exposure gap, stage by stage", systems=True))
        return tables

    def files(self, run: Results) -> Mapping[str, Table]:
        """One line for each number of the analysis: what, of which system or row, where, value."""
        lines: list[tuple[str, str, str, float | None]] = []
        for curve in curves(run):
            name = curve.system
            lines.append(("slope of EE-R on EE-D", name, "", curve.slope))
            lines.append(("area under EE-R over EE-D", name, "", curve.area))
            for before, after, p in curve.steps:
                lines.append(("paired t-test of EE-D", name, f"alpha {before:g} to {after:g}", p))
            for interval in curve.intervals:
                where = f"EE-D {interval.low:g} to {interval.high:g}"
                for what in ("count", "mean", "difference", "p"):
                    lines.append((f"normalized EU: {what}", name, where, getattr(interval, what)))
        for row in stages(run):
            lines.append(("gap retrieved", row.row, row.dimension, row.retrieved))
            lines.append(("opened by re-ranking", row.row, row.dimension, row.reranked - row.retrieved))
            lines.append(("opened by answering", row.row, row.dimension, row.cited - row.reranked))
        return {FILE: Table.of(("what", "of", "where", "value"), lines)}

    def page(self, run: Results) -> PageSection | None:
        """The four curves, the queries that are shown, the tables, and how to read them."""
        of_run = curves(run)
        if not of_run:
            return None
        colors = {curve.system: number for number, curve in enumerate(of_run)}
        plots = [
            LinePlot(
                f"{AXES[y]} against {AXES[x]}",
                (AXES[x], AXES[y]),
                tuple(_plot_line(curve, colors[curve.system], x, y) for curve in of_run),
                diagonal=y == "EAE-D",
            )
            for x, y in CURVES
            # Of answers that nobody has attributed there is no EAE-D.
            if all(y in row.means for curve in of_run for row in curve.drawn)
        ]
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
        curve_table, *tables = self.tables(run)
        intervals = [replace(table, folded=True) for table in tables if table.columns[0].name == "EE-D"]
        gaps = [table for table in tables if table.columns[0].name != "EE-D"]
        of_stages = [Note(OF_STAGES)] if gaps else []
        parts: list[PagePart] = [Note(HOW_TO_READ), *plots, curve_table, *intervals, *of_stages, *gaps]
        title = "Fairness, quality and utility of drawn rankings"
        return PageSection("Curves", title, tuple(parts), tuple(colors.items()))


def row_name(system: str, alpha: float | None, run: int = 0) -> str:
    """What a row is called; runs are counted from 0.

    >>> row_name("BM25", None), row_name("BM25", 2.0), row_name("BM25", 2.0, run=1)
    ('BM25', 'BM25 α=2', 'BM25 α=2, run 2')
    """
    again = f", run {run + 1}" if run else ""
    return system if alpha is None else f"{system} α={alpha:g}{again}"


def generator(system: SystemPlan) -> str:
    """What tells one generator from another: who answers, by which prompts."""
    settings = system.settings
    return f"{settings.generate.model_dump_json()} {settings.model.model_dump_json()} {settings.prompts}"


def rivals(name: str, systems: Systems, highest: Literal["all", "same-retriever"]) -> Iterator[str]:
    """The rows among which the highest utility is sought that `name` is measured by; itself is one of them."""
    own = Draws.model_validate(systems[name].row)
    for other, system in systems.items():
        draws = Draws.model_validate(system.row)
        alike = generator(system) == generator(systems[name])
        same = draws.system == own.system and draws.alpha is not None
        if alike and (highest == "all" or other == name or draws.oracle or same):
            yield other


def _plot_line(curve: Curve, color: int, x: str, y: str) -> PlotLine:
    def point(row: RowMeans) -> PlotPoint:
        return PlotPoint("own order" if row.alpha is None else f"α={row.alpha:g}", row.means[x], row.means[y])

    return PlotLine(curve.system, color, tuple(map(point, curve.drawn)), (point(curve.own),) if curve.own else ())


def _expected(run: Results, system: str) -> Mapping[str, float]:
    """What was expected of a system, by measure."""
    return (run.expected or {}).get(system, {}).get("", {})
