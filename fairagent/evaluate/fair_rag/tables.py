"""What a Fair RAG run shows, as text and as CSV."""

from __future__ import annotations

from collections.abc import Iterator

from fairagent.evaluate.fair_rag.analysis import Curve, Stages, curves, stages
from fairagent.evaluate.run import Run
from fairagent.evaluate.tables import csv_text
from fairagent.evaluate.text_table import aligned

ANALYSIS = "fair_rag.csv"


def analysis_text(run: Run) -> list[list[str]]:
    """Blocks of lines: the curves, the intervals of disparity, the stages of each dimension."""
    found = curves(run)
    blocks = [["disparity (EE-D) and ranking quality (EE-R) over alpha", *aligned(_curve_table(found))]]
    blocks += [
        [f"{curve.system}: normalized EU by disparity, beside its own order", *aligned(_interval_table(curve))]
        for curve in found
        if curve.intervals
    ]
    gaps = stages(run)
    for dimension in dict.fromkeys(gap.dimension for gap in gaps):
        rows = [gap for gap in gaps if gap.dimension == dimension]
        blocks.append([f"{dimension}: the exposure gap, stage by stage", *aligned(_stage_table(rows))])
    return blocks


def analysis_csv(run: Run) -> str:
    """One line for each number of the analysis: what, of which system or row, where, value."""
    return csv_text(("what", "of", "where", "value"), _lines(run))


def _curve_table(found: tuple[Curve, ...]) -> list[list[str]]:
    table = [["system", "slope", "AUC", "EE-D rises with alpha (paired t: p)"]]
    for curve in found:
        steps = ", ".join(f"{before:g}→{after:g}: {_number(p)}" for before, after, p in curve.steps)
        table.append([curve.system, _number(curve.slope), _number(curve.area), steps or "-"])
    return table


def _interval_table(curve: Curve) -> list[list[str]]:
    table = [["EE-D", "draws x topics", "mean", "difference", "t-test: p"]]
    for interval in curve.intervals:
        ends = f"[{interval.low:g}, {interval.high:g}{']' if interval.high >= 1 else ')'}"
        table.append([ends, str(interval.count), *map(_number, (interval.mean, interval.difference, interval.p))])
    return table


def _stage_table(rows: list[Stages]) -> list[list[str]]:
    table = [["row", "retrieved", "re-ranked", "", "cited", ""]]
    for row in rows:
        reranked, cited = (f"{change:+.4f}" for change in (row.by_reranking, row.by_answering))
        table.append([row.row, f"{row.retrieved:.4f}", f"{row.reranked:.4f}", reranked, f"{row.cited:.4f}", cited])
    return table


def _lines(run: Run) -> Iterator[tuple[str, str, str, float | None]]:
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
