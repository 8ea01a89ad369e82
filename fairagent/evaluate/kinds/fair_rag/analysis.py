"""What a Fair RAG run shows: curves over alpha, utility by intervals of disparity, and the gap stage by stage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fairagent.evaluate.engine.run import Run
from fairagent.evaluate.engine.statistics import paired_t
from fairagent.evaluate.kinds.fair_rag.section import NORMALIZED, Draws
from fairagent.measures.disparity_curves import (
    DisparityInterval,
    area_under_curve,
    disparity_intervals,
    slope,
)
from fairagent.types import FloatArray

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
    """One system: its rows by rising alpha, its own order (if it is there), and what the rows say together.

    `slope` is that of EE-R on EE-D, `area` the area under that curve, both over the rows that are drawn (None where
    there are not two different ones); `steps` are paired t-tests of EE-D between neighbors in alpha: (from, to, p).
    """

    system: str
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
    """One curve for each system that rankings are drawn from, and one for the oracle of each generator."""
    found = []
    drawn_as = {name: Draws.model_validate(row) for name, row in run.rows.items()}
    for system in dict.fromkeys((draws.system, draws.oracle) for draws in drawn_as.values()):
        names = [name for name in run.systems if (drawn_as[name].system, drawn_as[name].oracle) == system]
        rows = [RowMeans(name, drawn_as[name].alpha, _means(run, name)) for name in names]
        rows = [row for row in rows if row.means]
        drawn = sorted((row for row in rows if row.alpha is not None), key=lambda row: row.alpha or 0.0)
        own = next((row for row in rows if row.alpha is None), None)
        if rows:
            called = names[0] if system[1] else system[0]
            found.append(
                Curve(called, tuple(drawn), own, *_line(drawn), _intervals(run, drawn, own), _steps(run, drawn))
            )
    return tuple(found)


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
