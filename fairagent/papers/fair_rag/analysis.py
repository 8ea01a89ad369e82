"""What a Fair RAG run shows: curves over alpha, utility by intervals of disparity, and the gap stage by stage.

What the rows of a system say together, and medians over several systems and their runs.

The paper's Table 1 has a row a retriever, of which it has run four generators; how it takes them together is not said.
Medians do not follow one generator that fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np

from fairagent.extend import (
    EDGES,
    DisparityInterval,
    FloatArray,
    PlotPoint,
    Run,
    Table,
    area_under_curve,
    disparity_intervals,
    interval_name,
    paired_t,
    slope,
)
from fairagent.papers.fair_rag.draws import NORMALIZED, Draws

RETRIEVED, RERANKED, CITED = STAGES = ("gap retrieved", "gap re-ranked", "gap cited")
CURVES = (("EE-D", "EE-R"), ("EE-R", NORMALIZED), ("EE-D", NORMALIZED), ("EE-D", "EAE-D"))
"""What is drawn against what: disparity, ranking quality, utility and attributed disparity."""


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


@dataclass(frozen=True, slots=True)
class Stages:
    """One row's mean gap in one dimension where documents are retrieved, after re-ranking, and in what is cited."""

    row: str
    dimension: str
    retrieved: float
    reranked: float
    cited: float
    topics: int

    @property
    def by_reranking(self) -> float:
        """What re-ranking (and drawing) adds to the gap; below 0 it closes so much of it."""
        return self.reranked - self.retrieved

    @property
    def by_answering(self) -> float:
        """What answering adds to the gap."""
        return self.cited - self.reranked


def curves(run: Run) -> tuple[Curve, ...]:
    """One curve for each run of each system that rankings are drawn from, and one for the oracle of each generator."""
    found = []
    drawn_as = {name: Draws.model_validate(row) for name, row in run.rows.items()}
    for key in dict.fromkeys((draws.system, draws.oracle, draws.run) for draws in drawn_as.values()):
        system, oracle, number = key
        names = [name for name in run.systems if _of(drawn_as[name]) == key]
        drawn = [RowMeans(name, drawn_as[name].alpha, _means(run, name)) for name in names]
        drawn = sorted((row for row in drawn if row.alpha is not None and row.means), key=lambda row: row.alpha or 0.0)
        # A system has one own order, which is that of all of its runs.
        own_name = next(
            (name for name, of in drawn_as.items() if _of(of) == (system, oracle, 0) and of.alpha is None), ""
        )
        own_means = _means(run, own_name)
        own = RowMeans(own_name, None, own_means) if own_means else None
        if drawn or own:
            called = names[0] if oracle else f"{system}, run {number + 1}" if number else system
            line, intervals = _line(drawn), _intervals(run, drawn, own)
            found.append(
                Curve(called, "" if oracle else system, tuple(drawn), own, *line, intervals, _steps(run, drawn))
            )
    return tuple(found)


def query_points(run: Run, curve: Curve, queries: int, x: str, y: str) -> list[PlotPoint]:
    """Two measures of the first so many queries, at every alpha of a curve."""
    counted = list(dict.fromkeys(one.topic for one in run.answered))[:queries]
    names = {row.name: f"α={row.alpha:g}" for row in curve.drawn}
    return [
        PlotPoint(f"{one.topic} {names[one.system]}", one.values[""][x], one.values[""][y])
        for one in run.answered
        if one.system in names and one.topic in counted and y in one.values.get("", {})
    ]


def _of(draws: Draws) -> tuple[str, bool, int]:
    return draws.system, draws.oracle, draws.run


def stages(run: Run) -> tuple[Stages, ...]:
    """Every row's gap, stage by stage, in each dimension that is judged."""
    rows = {(row.system, row.dimension, row.measure): row for row in run.comparisons}
    found = []
    for dimension in run.dimensions:
        for name in run.systems:
            if (name, dimension, RETRIEVED) in rows:
                first, second, third = (rows[name, dimension, stage] for stage in STAGES)
                found.append(Stages(name, dimension, first.mean, second.mean, third.mean, first.topics))
    return tuple(found)


def _means(run: Run, name: str) -> dict[str, float]:
    return {row.measure: row.mean for row in run.comparisons if row.system == name and not row.dimension}


def _line(drawn: Sequence[RowMeans]) -> tuple[float | None, float | None]:
    disparity = np.array([row.means["EE-D"] for row in drawn])
    relevance = np.array([row.means["EE-R"] for row in drawn])
    if len(set(disparity.tolist())) < 2:
        return None, None
    return slope(disparity, relevance), area_under_curve(disparity, relevance)


def _values(run: Run, name: str, measure: str) -> FloatArray:
    """The values of the topics that all rows have finished, in their order."""
    return np.array(list(_by_topic(run, name, measure)))


def _by_topic(run: Run, name: str, measure: str) -> Iterator[float]:
    for outcome in run.outcomes:
        if outcome.system == name and outcome.topic not in run.excluded and measure in outcome.values.get("", {}):
            yield outcome.values[""][measure]


def _intervals(run: Run, drawn: Sequence[RowMeans], own: RowMeans | None) -> tuple[DisparityInterval, ...]:
    if own is None or not drawn:
        return ()
    disparity = np.concatenate([_values(run, row.name, "EE-D") for row in drawn])
    utility = np.concatenate([_values(run, row.name, NORMALIZED) for row in drawn])
    # Of a run that is not finished the rows may have gone differently far.
    if len(disparity) != len(utility):
        return ()
    return disparity_intervals(disparity, utility, _values(run, own.name, NORMALIZED))


def _steps(run: Run, drawn: Sequence[RowMeans]) -> tuple[tuple[float, float, float | None], ...]:
    found = []
    for before, after in pairwise(drawn):
        first, second = (_values(run, row.name, "EE-D") for row in (before, after))
        p = paired_t(second - first) if len(first) == len(second) else None
        found.append((before.alpha or 0.0, after.alpha or 0.0, p))
    return tuple(found)


SLOPE, AREA = "slope", "AUC"


def difference(interval: str) -> str:
    """The measure that says by how much normalized EU in an interval of EE-D differs from that of the own order."""
    return f"difference {interval}"


MEASURES = (SLOPE, AREA, *(difference(interval_name(*ends)) for ends in pairwise(EDGES)))
"""What a curve comes to."""


def together(curve: Curve) -> dict[str, float | None]:
    """Measure -> value of a system's curve."""
    of_intervals = {difference(interval.name): interval.difference for interval in curve.intervals}
    return {SLOPE: curve.slope, AREA: curve.area, **of_intervals}


@dataclass(frozen=True, slots=True)
class Median:
    """The median of `curves` curves: measure -> value, over those that have one; normalized EU is of own orders."""

    name: str
    curves: int
    values: dict[str, float]


def medians(wanted: Mapping[str, Sequence[str]], found: Sequence[Curve]) -> Iterator[Median]:
    """Those that are wanted, name -> systems, over all runs of these systems; none where no curve is there."""
    for name, systems in wanted.items():
        of = [curve for curve in found if curve.of in systems]
        own = {curve.of: curve.own.means[NORMALIZED] for curve in of if curve.own}
        told = {NORMALIZED: list(own.values())}
        for measure in MEASURES:
            told[measure] = [value for curve in of if (value := together(curve).get(measure)) is not None]
        if of:
            yield Median(name, len(of), {measure: median(values) for measure, values in told.items() if values})


def median_tables(run: Run, wanted: Mapping[str, Sequence[str]], found: Sequence[Curve]) -> Iterator[Table]:
    """The medians beside what was expected of them; none where nothing is wanted."""
    rows = list(medians(wanted, found))
    papers = [(run.expected or {}).get(row.name, {}).get("", {}) for row in rows]
    shown = [name for name in (NORMALIZED, *MEASURES) if any(name in row.values for row in rows)]
    expected = [name for name in shown if any(name in paper for paper in papers)]
    lines = [
        [row.name, str(row.curves), *map(row.values.get, shown), *map(paper.get, expected)]
        for row, paper in zip(rows, papers, strict=True)
    ]
    columns = ["median of", "curves", *shown, *(f"expected {name}" for name in expected)]
    if rows:
        yield Table.of(columns, lines, "medians over systems and runs")
