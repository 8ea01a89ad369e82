"""What both kinds of Fair RAG have in common: rows that are drawn at each alpha, their measures, tables and curves."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, product
from typing import ClassVar, Literal

from fairagent.extend import (
    Checking,
    Column,
    ExperimentKind,
    JsonObject,
    LinePlot,
    MeasureInfo,
    Note,
    Outcome,
    PagePart,
    PageSection,
    Plan,
    PlotLine,
    PlotPoint,
    Run,
    SettingsError,
    Subject,
    SystemPlan,
    Systems,
    Table,
    cloud,
    listed,
    normalized_expected_utility,
)
from fairagent.papers.fair_rag.analysis import (
    AREA,
    CURVES,
    MEASURES,
    SLOPE,
    Curve,
    RowMeans,
    curves,
    difference,
    median_tables,
    medians,
    query_points,
    stages,
    together,
)
from fairagent.papers.fair_rag.draws import HIGHEST, NORMALIZED, Drawing, Draws

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
SAID = {
    "EE-D": "disparity (EE-D)",
    "EE-R": "ranking quality (EE-R)",
    NORMALIZED: "utility (normalized EU)",
    "EAE-D": "attributed disparity (EAE-D)",
}


class DrawnKind(ExperimentKind, ABC):
    """A kind whose systems stand in their own order and drawn at each alpha."""

    fair_rag: Drawing = Drawing()
    """What rankings are drawn and how they are measured."""

    attributes: ClassVar[bool] = True

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
                    there = listed(self.systems)
                    problems.add(SettingsError, f"fair_rag.medians.{name}: no system {system!r}; there are: {there}")

    def rows(self, systems: Systems) -> Systems:
        """The rows by their names, system by system; then the oracle, once for each generator."""
        section = self.fair_rag
        found: dict[str, SystemPlan] = {}
        for name, system in systems.items():
            if section.deterministic:
                found[row_name(name, None)] = _drawn(system, Draws(system=name, alpha=None))
            for run, alpha in product(range(section.runs), section.alphas):
                found[row_name(name, alpha, run)] = _drawn(system, Draws(system=name, alpha=alpha, run=run))
        if section.oracle is not None:
            first: dict[str, str] = {}
            for name, system in systems.items():
                first.setdefault(generator(system), name)
            for number, name in enumerate(first.values()):
                oracle = row_name("oracle" if not number else f"oracle for {name}", section.oracle)
                found[oracle] = _drawn(systems[name], Draws(system=name, alpha=section.oracle, oracle=True))
        return found

    def measured(self, dimensions: Sequence[str]) -> tuple[MeasureInfo, ...]:
        """Those of items."""
        return MEASURED

    @property
    def measured_together(self) -> tuple[str, ...]:
        """A system's slope and area, and by how much EU differs from that of its own order in each interval of EE-D."""
        return MEASURES

    @property
    def rows_together(self) -> tuple[str, ...]:
        """The medians."""
        return tuple(self.fair_rag.medians)

    def values_together(self, run: Run) -> Mapping[tuple[str, str, str], float]:
        """Those of every curve, in the place of the system's own order, and the medians."""
        found = curves(run)
        told = {(one.system, "", name): value for one in found for name, value in together(one).items()}
        for row in medians(self.fair_rag.medians, found):
            told |= {(row.name, "", name): value for name, value in row.values.items()}
        return {key: value for key, value in told.items() if value is not None}

    def fingerprint(self, plan: Plan, subject: Subject, environ: Mapping[str, str]) -> JsonObject:
        """What drawn rankings depend on; which rows there are is no part of it."""
        rows = {"alphas", "deterministic", "oracle", "highest", "runs", "medians", "queries"}
        return {"fair_rag": self.fair_rag.model_dump(mode="json", exclude=rows)}

    def completed(
        self, outcomes: Mapping[tuple[str, str], Outcome], topics: Sequence[str], plan: Plan
    ) -> Mapping[tuple[str, str], Outcome]:
        """The outcomes with their normalized EU: each topic's, divided by the best that any rival row had for it."""
        against = {name: tuple(rivals(name, plan.systems, self.fair_rag.highest)) for name in plan.systems}
        found = dict(outcomes)
        for topic in topics:
            for name in plan.systems:
                outcome = outcomes[topic, name]
                highest = max(outcomes[topic, rival].values[""][HIGHEST] for rival in against[name])
                normalized = normalized_expected_utility(outcome.values[""]["EU"], highest)
                values = {**outcome.values, "": {**outcome.values[""], NORMALIZED: normalized}}
                found[topic, name] = replace(outcome, values=values)
        return found

    # --- what came out -------------------------------------------------------------------------------------------

    def tables(self, run: Run) -> list[Table]:
        """The curves, the intervals of disparity, the stages of each dimension."""
        found = curves(run)
        return [
            _curve_table(run, found),
            *median_tables(run, self.fair_rag.medians, found),
            *(_interval_table(run, one) for one in found if one.intervals),
            *_stage_tables(run),
        ]

    def files(self, run: Run) -> Mapping[str, Table]:
        """One line for each number of the analysis."""
        return {FILE: Table.of(("what", "of", "where", "value"), list(_numbers(run)))}

    def page(self, run: Run) -> PageSection | None:
        """The four curves, the tables, and how to read them."""
        found = curves(run)
        if not found:
            return None
        colors = {curve.system: number for number, curve in enumerate(found)}
        plots = [
            LinePlot(
                f"{SAID[y]} against {SAID[x]}",
                (SAID[x], SAID[y]),
                tuple(_plot_line(curve, colors[curve.system], x, y) for curve in found),
                diagonal=y == "EAE-D",
            )
            for x, y in CURVES
            # Of answers that nobody has attributed there is no EAE-D.
            if all(y in row.means for curve in found for row in curve.drawn)
        ]
        if queries := self.fair_rag.queries:
            x, y = "EE-D", NORMALIZED
            clouds = [(one, query_points(run, one, queries, x, y)) for one in found]
            plots += [
                LinePlot(
                    f"{one.system}: {SAID[y]} against {SAID[x]}, query by query",
                    (SAID[x], SAID[y]),
                    (cloud(one.system, colors[one.system], points),),
                )
                for one, points in clouds
                if points
            ]
        curve_table, *tables = self.tables(run)
        intervals = [replace(table, folded=True) for table in tables if table.columns[0].name == "EE-D"]
        gaps = [table for table in tables if table.columns[0].name != "EE-D"]
        of_stages = [Note(OF_STAGES)] if gaps else []
        parts: list[PagePart] = [Note(HOW_TO_READ), *plots, curve_table, *intervals, *of_stages, *gaps]
        title = "Fairness, quality and utility of drawn rankings"
        return PageSection("Curves", title, tuple(parts), tuple(colors.items()))


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


def row_name(system: str, alpha: float | None, run: int = 0) -> str:
    """What a row is called; runs are counted from 0.

    >>> row_name("BM25", None), row_name("BM25", 2.0), row_name("BM25", 2.0, run=1)
    ('BM25', 'BM25 α=2', 'BM25 α=2, run 2')
    """
    again = f", run {run + 1}" if run else ""
    return system if alpha is None else f"{system} α={alpha:g}{again}"


def generator(system: SystemPlan) -> str:
    """What tells one generator from another: who answers, and how it is asked."""
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


def _drawn(system: SystemPlan, draws: Draws) -> SystemPlan:
    return system.model_copy(update={"row": draws.model_dump()})


def _plot_line(curve: Curve, color: int, x: str, y: str) -> PlotLine:
    def point(row: RowMeans) -> PlotPoint:
        return PlotPoint("own order" if row.alpha is None else f"α={row.alpha:g}", row.means[x], row.means[y])

    return PlotLine(curve.system, color, tuple(map(point, curve.drawn)), (point(curve.own),) if curve.own else ())


def _expected(run: Run, curve: Curve) -> Mapping[str, float]:
    """What was expected of the system, by measure."""
    return (run.expected or {}).get(curve.system, {}).get("", {})


def _curve_table(run: Run, found: Sequence[Curve]) -> Table:
    papers = [_expected(run, curve) for curve in found]
    shown = [name for name in (SLOPE, AREA) if any(name in paper for paper in papers)]
    lines = []
    for curve, paper in zip(found, papers, strict=True):
        steps = ", ".join(f"{before:g}→{after:g}: {_number(p)}" for before, after, p in curve.steps)
        lines.append([curve.system, curve.slope, curve.area, *(paper.get(name) for name in shown), steps or "-"])
    title = "disparity (EE-D) and ranking quality (EE-R) over alpha"
    columns = ["system", SLOPE, AREA, *(f"expected {name}" for name in shown), "EE-D rises with alpha (paired t: p)"]
    return Table.of(columns, lines, title)


def _interval_table(run: Run, curve: Curve) -> Table:
    paper = _expected(run, curve)
    compared = any(difference(interval.name) in paper for interval in curve.intervals)
    lines = []
    for interval in curve.intervals:
        numbers = [interval.mean, interval.difference, interval.p]
        expected = [paper.get(difference(interval.name))] if compared else []
        lines.append([interval.name, str(interval.count), *numbers, *expected])
    title = f"{curve.system}: normalized EU by disparity, beside its own order"
    columns = [
        "EE-D",
        "draws x topics",
        "mean",
        "difference",
        "t-test: p",
        *(["expected difference"] if compared else []),
    ]
    return Table.of(columns, lines, title)


def _stage_tables(run: Run) -> Iterator[Table]:
    found = stages(run)
    columns: list[str | Column] = ["row", "retrieved", "re-ranked", Column("", "+.4f"), "cited", Column("", "+.4f")]
    for dimension in dict.fromkeys(one.dimension for one in found):
        lines = [
            [one.row, one.retrieved, one.reranked, one.by_reranking, one.cited, one.by_answering]
            for one in found
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


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
