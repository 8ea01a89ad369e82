"""What a Fair RAG run shows: curves over alpha, utility by intervals of disparity, and the gap stage by stage.

Medians take curves of several systems and runs together. The paper's Table 1 has a row a retriever, of which it has run
four generators; how it aggregates them is not stated. Medians do not follow one generator that fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np

from fairagent.evaluate.comparison import paired_t
from fairagent.evaluate.run import Run
from fairagent.evaluate.tables import PlotPoint
from fairagent.measures.curves import (
    EDGES,
    DisparityInterval,
    area_under_curve,
    disparity_intervals,
    fitted_line,
    interval_name,
)
from fairagent.papers.fair_rag.draws import NORMALIZED, Draws
from fairagent.types import FloatArray

STAGES = ("gap retrieved", "gap re-ranked", "gap cited")
CURVES = (("EE-D", "EE-R"), ("EE-R", NORMALIZED), ("EE-D", NORMALIZED), ("EE-D", "EAE-D"))
"""What is drawn against what: disparity, ranking quality, utility and attributed disparity."""
SLOPE, AREA = "slope", "AUC"


def difference(interval: str) -> str:
    """The measure that says by how much normalized EU in an interval of EE-D differs from that of the own order."""
    return f"difference {interval}"


MEASURES = (SLOPE, AREA, *(difference(interval_name(*ends)) for ends in pairwise(EDGES)))
"""What a curve comes to."""


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
        of_intervals = {difference(interval.name): interval.difference for interval in self.intervals}
        return {SLOPE: self.slope, AREA: self.area, **of_intervals}


def curves(run: Run) -> tuple[Curve, ...]:
    """One curve for each run of each system that rankings are drawn from, and one for the oracle of each generator."""
    rows: dict[tuple[str, bool, int], list[RowMeans]] = {}
    for name in run.systems:
        draws = Draws.model_validate(run.rows[name])
        means = {row.measure: row.mean for row in run.comparisons if row.system == name and not row.dimension}
        rows.setdefault((draws.system, draws.oracle, draws.run), []).append(RowMeans(name, draws.alpha, means))
    every = (_curve(run, *key, rows) for key in rows)
    return tuple(curve for curve in every if curve.drawn or curve.own)


def _curve(
    run: Run, system: str, oracle: bool, number: int, rows: Mapping[tuple[str, bool, int], Sequence[RowMeans]]
) -> Curve:
    of_run = rows[system, oracle, number]
    drawn = sorted((row for row in of_run if row.alpha is not None and row.means), key=lambda row: row.alpha or 0.0)
    # A system has one own order, which is that of all of its runs.
    first = rows.get((system, oracle, 0), ())
    own = next((row for row in first if row.alpha is None and row.means), None)
    disparity = np.array([row.means["EE-D"] for row in drawn])
    relevance = np.array([row.means["EE-R"] for row in drawn])
    line = fitted_line(disparity, relevance) if len(drawn) else None
    steps = []
    for before, after in pairwise(drawn):
        one, two = (_values(run, row.name, "EE-D") for row in (before, after))
        # Of a run that is not finished the rows may have gone differently far.
        p = paired_t(two - one) if len(one) == len(two) else None
        steps.append((before.alpha or 0.0, after.alpha or 0.0, p))
    called = of_run[0].name if oracle else f"{system}, run {number + 1}" if number else system
    return Curve(
        called,
        "" if oracle else system,
        tuple(drawn),
        own,
        line.slope if line else None,
        area_under_curve(disparity, relevance) if line else None,
        _intervals(run, drawn, own),
        tuple(steps),
    )


def _values(run: Run, name: str, measure: str) -> FloatArray:
    """The values of the topics that all rows have finished, in their order."""
    of_row = (one for one in run.outcomes if one.system == name and one.topic not in run.excluded)
    return np.array([one.values[""][measure] for one in of_row if measure in one.values.get("", {})])


def _intervals(run: Run, drawn: Sequence[RowMeans], own: RowMeans | None) -> tuple[DisparityInterval, ...]:
    if own is None or not drawn:
        return ()
    disparity, utility = (
        np.concatenate([_values(run, row.name, measure) for row in drawn]) for measure in ("EE-D", NORMALIZED)
    )
    if len(disparity) != len(utility):
        return ()
    return disparity_intervals(disparity, utility, _values(run, own.name, NORMALIZED))


def query_points(run: Run, curve: Curve, queries: int, x: str, y: str) -> list[PlotPoint]:
    """Two measures of the first so many queries, at every alpha of a curve."""
    shown = list(dict.fromkeys(one.topic for one in run.answered))[:queries]
    names = {row.name: f"α={row.alpha:g}" for row in curve.drawn}
    return [
        PlotPoint(f"{one.topic} {names[one.system]}", one.values[""][x], one.values[""][y])
        for one in run.answered
        if one.system in names and one.topic in shown and y in one.values.get("", {})
    ]


@dataclass(frozen=True, slots=True)
class Stages:
    """One row's mean gap in one dimension where documents are retrieved, after re-ranking, and in what is cited."""

    row: str
    dimension: str
    retrieved: float
    reranked: float
    cited: float

    @property
    def by_reranking(self) -> float:
        """What re-ranking (and drawing) adds to the gap; below 0 it closes so much of it."""
        return self.reranked - self.retrieved

    @property
    def by_answering(self) -> float:
        """What answering adds to the gap."""
        return self.cited - self.reranked


def stages(run: Run) -> tuple[Stages, ...]:
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


def medians(wanted: Mapping[str, Sequence[str]], of_run: Sequence[Curve]) -> Iterator[Median]:
    """Those that are wanted, name -> systems, over all runs of these systems; none where no curve is there."""
    for name, systems in wanted.items():
        chosen = [curve for curve in of_run if curve.of in systems]
        own = {curve.of: curve.own.means[NORMALIZED] for curve in chosen if curve.own}
        values: dict[str, list[float]] = {NORMALIZED: list(own.values())}
        for measure in MEASURES:
            values[measure] = [value for curve in chosen if (value := curve.measures.get(measure)) is not None]
        if chosen:
            yield Median(name, len(chosen), {measure: median(each) for measure, each in values.items() if each})
