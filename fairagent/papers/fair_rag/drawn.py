"""What both kinds of Fair RAG have in common: rows that are drawn at each alpha, their measures, tables and curves."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, product
from typing import ClassVar, Literal

from fairagent.errors import SettingsError
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
from fairagent.evaluate.run import Run
from fairagent.evaluate.tables import Column, LinePlot, Note, PagePart, PageSection, PlotLine, PlotPoint, Table
from fairagent.measures import normalized_expected_utility
from fairagent.papers.fair_rag.analysis import (
    AREA,
    CURVES,
    MEASURES,
    SLOPE,
    Curve,
    RowMeans,
    curves,
    difference,
    medians,
    query_points,
    stages,
)
from fairagent.papers.fair_rag.draws import HIGHEST, NORMALIZED, Drawing, Draws
from fairagent.settings.faults import no_such

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
AXES = {
    "EE-D": "disparity (EE-D)",
    "EE-R": "ranking quality (EE-R)",
    NORMALIZED: "utility (normalized EU)",
    "EAE-D": "attributed disparity (EAE-D)",
}
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


class DrawnKind(ExperimentKind, ABC):
    """A kind whose systems stand in their own order and drawn at each alpha."""

    uses: ClassVar[frozenset[str]] = SEARCH | {"sampling", "attribute"}

    fair_rag: Drawing = Drawing()
    """What rankings are drawn and how they are measured."""

    @property
    def n(self) -> int:
        """How many items a generator is given."""
        return self.fair_rag.k

    def check(self, checking: Checking) -> None:
        """Add what is wrong with the alphas, and systems that choose what they answer from."""
        section, problems = self.fair_rag, checking.problems
        for alpha in section.alphas:
            if alpha < 0 or alpha == float("inf"):
                problems.add(SettingsError, f"fair_rag.alphas: {alpha:g} is no finite number of 0 or more")
        if any(before == after for before, after in pairwise(sorted(section.alphas))):
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
        """Those of items."""
        return MEASURED

    @property
    def measured_together(self) -> tuple[str, ...]:
        """A system's slope and area, and by how much EU differs from that of its own order in each interval of EE-D."""
        return MEASURES

    @property
    def other_names(self) -> tuple[str, ...]:
        """The medians."""
        return tuple(self.fair_rag.medians)

    def values_together(self, run: Run) -> Mapping[tuple[str, str, str], float]:
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
        for topic in topics:
            for name in plan.systems:
                outcome = outcomes[topic, name]
                highest = max(outcomes[topic, rival].values[""][HIGHEST] for rival in against[name])
                normalized = normalized_expected_utility(outcome.values[""]["EU"], highest)
                values = {**outcome.values, "": {**outcome.values[""], NORMALIZED: normalized}}
                completed[topic, name] = replace(outcome, values=values)
        return completed

    # --- what came out -------------------------------------------------------------------------------------------

    def results(self, run: Run) -> KindResults:
        """The curves over alpha."""
        return KindResults(self.tables(run), self.files(run), page=self.page(run), together=self.values_together(run))

    def tables(self, run: Run) -> list[Table]:
        """The curves, the intervals of disparity, the stages of each dimension."""
        of_run = curves(run)
        return [
            _curve_table(run, of_run),
            *self._median_tables(run, of_run),
            *(_interval_table(run, one) for one in of_run if one.intervals),
            *_stage_tables(run),
        ]

    def _median_tables(self, run: Run, of_run: Sequence[Curve]) -> Iterator[Table]:
        """The medians with what was expected of them; none where nothing is wanted."""
        if rows := list(medians(self.fair_rag.medians, of_run)):
            papers = [_expected(run, row.name) for row in rows]
            shown = [name for name in (NORMALIZED, *MEASURES) if any(name in row.values for row in rows)]
            expected = [name for name in shown if any(name in paper for paper in papers)]
            lines = [
                [row.name, str(row.curves), *map(row.values.get, shown), *map(paper.get, expected)]
                for row, paper in zip(rows, papers, strict=True)
            ]
            columns = ["median of", "curves", *shown, *(f"expected {name}" for name in expected)]
            yield Table.of(columns, lines, "medians over systems and runs")

    def files(self, run: Run) -> Mapping[str, Table]:
        """One line for each number of the analysis."""
        return {FILE: Table.of(("what", "of", "where", "value"), list(_numbers(run)))}

    def page(self, run: Run) -> PageSection | None:
        """The four curves, the tables, and how to read them."""
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
        x, y, queries = "EE-D", NORMALIZED, self.fair_rag.queries
        for one in of_run if queries else ():
            if points := query_points(run, one, queries, x, y):
                of_queries = (cloud(one.system, colors[one.system], points),)
                caption = f"{one.system}: {AXES[y]} against {AXES[x]}, query by query"
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


def _expected(run: Run, system: str) -> Mapping[str, float]:
    """What was expected of a system, by measure."""
    return (run.expected or {}).get(system, {}).get("", {})


def _curve_table(run: Run, of_run: Sequence[Curve]) -> Table:
    papers = [_expected(run, curve.system) for curve in of_run]
    shown = [name for name in (SLOPE, AREA) if any(name in paper for paper in papers)]
    lines = []
    for curve, paper in zip(of_run, papers, strict=True):
        tests = ((f"{before:g}→{after:g}", "-" if p is None else f"{p:.4f}") for before, after, p in curve.steps)
        steps = ", ".join(f"{step}: {p}" for step, p in tests)
        lines.append([curve.system, curve.slope, curve.area, *(paper.get(name) for name in shown), steps or "-"])
    title = "disparity (EE-D) and ranking quality (EE-R) over alpha"
    columns = ["system", SLOPE, AREA, *(f"expected {name}" for name in shown), "EE-D rises with alpha (paired t: p)"]
    return Table.of(columns, lines, title)


def _interval_table(run: Run, curve: Curve) -> Table:
    expected = {
        name: _expected(run, curve.system).get(difference(name)) for name in (one.name for one in curve.intervals)
    }
    compared = any(value is not None for value in expected.values())
    lines = [
        [one.name, str(one.count), one.mean, one.difference, one.p, *([expected[one.name]] if compared else [])]
        for one in curve.intervals
    ]
    columns = ["EE-D", "draws x topics", "mean", "difference", "t-test: p"]
    title = f"{curve.system}: normalized EU by disparity, compared with its own order"
    return Table.of([*columns, *(["expected difference"] if compared else [])], lines, title)


def _stage_tables(run: Run) -> Iterator[Table]:
    of_run = stages(run)
    columns: list[str | Column] = ["row", "retrieved", "re-ranked", Column("", "+.4f"), "cited", Column("", "+.4f")]
    for dimension in dict.fromkeys(one.dimension for one in of_run):
        lines = [
            [one.row, one.retrieved, one.reranked, one.by_reranking, one.cited, one.by_answering]
            for one in of_run
            if one.dimension == dimension
        ]
        yield Table.of(columns, lines, f"{dimension}: the exposure gap, stage by stage", systems=True)


def _numbers(run: Run) -> Iterator[tuple[str, str, str, float | None]]:
    """What, of which system or row, where, value."""
    for curve in curves(run):
        yield "slope of EE-R on EE-D", curve.system, "", curve.slope
        yield "area under EE-R over EE-D", curve.system, "", curve.area
        for before, after, p in curve.steps:
            yield "paired t-test of EE-D", curve.system, f"alpha {before:g} to {after:g}", p
        for interval in curve.intervals:
            where = f"EE-D {interval.low:g} to {interval.high:g}"
            for what in ("count", "mean", "difference", "p"):
                yield f"normalized EU: {what}", curve.system, where, getattr(interval, what)
    for row in stages(run):
        yield "gap retrieved", row.row, row.dimension, row.retrieved
        yield "opened by re-ranking", row.row, row.dimension, row.by_reranking
        yield "opened by answering", row.row, row.dimension, row.by_answering
