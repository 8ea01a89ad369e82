"""Systems as points of two means, of which the best are the Pareto front: no drawing here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fairagent.evaluate.engine.comparison import Comparison
from fairagent.evaluate.engine.run import Run
from fairagent.report.names import is_kind
from fairagent.report.series import RELEVANCE, comparisons_of


class Mean(NamedTuple):
    """A mean and the ends of its 95 % interval, which are the mean itself where it has none."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, row: Comparison) -> Mean:
        """That of one system in one measure."""
        return cls(row.mean, row.low, row.high)


@dataclass(frozen=True, slots=True)
class Point:
    """One system in a scatter plot; `front` marks the Pareto front."""

    system: int
    x: Mean
    y: Mean
    oracle: bool
    front: bool


def trade_off_measures(run: Run, dimension: str) -> tuple[str, str] | None:
    """The nDCG and the AWRF that a dimension's trade-off is between; None where the run lacks one of the two."""
    compared = comparisons_of(run, dimension)
    alone = comparisons_of(run, RELEVANCE)
    fairness = next((m for m in run.measures if is_kind(m, "AWRF") and (run.baseline, m) in compared), None)
    judged = [m for m in run.measures if (run.baseline, m) in compared or (run.baseline, m) in alone]
    relevance = next((m for m in judged if is_kind(m, "nDCG")), None)
    return None if fairness is None or relevance is None else (relevance, fairness)


def trade_off(run: Run, dimension: str) -> tuple[Point, ...]:
    """Every system's nDCG and AWRF; nDCG over the dimension's own topics where there is one, else over all.

    Empty where the run lacks one of the two measures.
    """
    if not (measures := trade_off_measures(run, dimension)):
        return ()
    relevance, fairness = measures
    compared = comparisons_of(run, dimension)
    of_relevance = compared if (run.baseline, relevance) in compared else comparisons_of(run, RELEVANCE)
    pairs = {
        system: (Mean.of(of_relevance[system, relevance]), Mean.of(compared[system, fairness]))
        for system in run.systems
        if (system, relevance) in of_relevance and (system, fairness) in compared
    }
    return points(run, pairs)


def points(run: Run, pairs: Mapping[str, tuple[Mean, Mean]], cheap: bool = False) -> tuple[Point, ...]:
    """The systems of `run` with two means each, of both of which more is better; if `cheap`, less of the first.

    A system is on the Pareto front if none is at least as good in both and better in one. Systems that looked at the
    judgments are on no front and push nobody off it.
    """
    worth = {system: (-x.mean if cheap else x.mean, y.mean) for system, (x, y) in pairs.items()}
    honest = [worth[system] for system in pairs if system not in run.oracle_systems]
    return tuple(
        Point(
            run.systems.index(system),
            x,
            y,
            system in run.oracle_systems,
            system not in run.oracle_systems and not _dominated(worth[system], honest),
        )
        for system, (x, y) in pairs.items()
    )


def _dominated(point: tuple[float, float], others: Sequence[tuple[float, float]]) -> bool:
    return any(x >= point[0] and y >= point[1] and (x, y) != point for x, y in others)
