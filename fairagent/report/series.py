"""The numbers behind the plots, taken from a run: no drawing here.

Systems as points of two means, of which the best are the Pareto front: no drawing here.

What systems take for a topic, and what that buys in fairness: no drawing here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

from fairagent.evaluate.comparison import Comparison
from fairagent.evaluate.outcome import Outcome
from fairagent.evaluate.run import Run
from fairagent.report.names import is_kind, is_product
from fairagent.types import FloatArray

RELEVANCE = ""
"""The dimension of measures of relevance alone."""


@dataclass(frozen=True, slots=True, eq=False)
class GapPaths:
    """The gap of the list that the loop stands on after each retrieval, (topics, retrievals) in nats.

    A topic that stopped early keeps its last gap. `infinite` topics had a list without a labeled document, whose gap
    is infinite, and are left out.
    """

    system: int
    gaps: FloatArray
    infinite: int


def comparisons_of(run: Run, dimension: str) -> dict[tuple[str, str], Comparison]:
    """The comparisons in one dimension as (system, measure) -> comparison."""
    return {(c.system, c.measure): c for c in run.comparisons if c.dimension == dimension}


def main_measure(run: Run, dimension: str) -> str | None:
    """What a dimension is won by: the first product; without one the first AWRF; without one the first measure."""
    measured = {measure for _, measure in comparisons_of(run, dimension)}
    measures = [measure for measure in run.measures if measure in measured]
    products = [measure for measure in measures if is_product(measure)]
    fairness = [measure for measure in measures if is_kind(measure, "AWRF")]
    return next(iter([*products, *fairness, *measures]), None)


def gap_paths(run: Run) -> tuple[GapPaths, ...]:
    """The gaps of every system that retrieved more than once for some topic."""
    outcomes = run.by_topic
    topics = run.counted_topics
    found = []
    for number, system in enumerate(run.systems):
        paths = [path for topic in topics if (path := _accepted(outcomes[topic][system]))]
        longest = max((len(path) for path in paths), default=0)
        if longest > 1:
            finite = [path + path[-1:] * (longest - len(path)) for path in paths if all(map(math.isfinite, path))]
            found.append(GapPaths(number, np.array(finite).reshape(len(finite), longest), len(paths) - len(finite)))
    return tuple(found)


def _accepted(outcome: Outcome) -> list[float]:
    gaps: list[float] = []
    for step in outcome.steps:
        gaps.append(step.gap if step.accepted or not gaps else gaps[-1])
    return gaps


def gains(run: Run, dimension: str, measure: str) -> dict[str, dict[str, float]]:
    """What each system gains over the baseline, topic by topic: system -> topic -> difference, where there is one.

    A gain is above 0 where the system is better, also where lower values are.
    """
    outcomes = run.by_topic
    found: dict[str, dict[str, float]] = {system: {} for system in run.systems if system != run.baseline}
    for topic in run.counted_topics:
        base = _value(outcomes[topic][run.baseline].values, dimension, measure)
        for system, of_system in found.items():
            value = _value(outcomes[topic][system].values, dimension, measure)
            if base is not None and value is not None:
                of_system[topic] = run.gain(measure, value, base)
    return found


def _value(values: Mapping[str, Mapping[str, float]], dimension: str, measure: str) -> float | None:
    return values.get(dimension, {}).get(measure)


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


@dataclass(frozen=True, slots=True)
class Spending:
    """What one system takes for a topic, over the topics that are judged: means, but the median of the milliseconds.

    `dollars` are US dollars for 1,000 topics, None where a price is not known. The median leaves out what is slow once,
    such as the first search of a process.
    """

    system: int
    retrievals: float
    calls: float
    tokens: float
    dollars: float | None
    milliseconds: float


class Currency(Enum):
    """What systems are told apart by: a field of `Spending`; the value is its unit in words."""

    DOLLARS = "US dollars for 1,000 topics"
    CALLS = "model calls a topic"
    MILLISECONDS = "milliseconds a topic"

    def of(self, spent: Spending) -> float:
        """What a system takes of it."""
        amount: float = getattr(spent, self.name.lower())
        return amount


@dataclass(frozen=True, slots=True)
class CostTradeOff:
    """Dimension -> the systems' costs in `currency`, and their means in its `main_measure`."""

    currency: Currency
    spending: tuple[Spending, ...]
    points: Mapping[str, tuple[Point, ...]]


def cost_trade_off(run: Run) -> CostTradeOff | None:
    """What fairness costs; None where nothing is judged by it, or all systems cost the same.

    Less cost and more fairness is better; the rest is as in `fairagent.report.series.trade_off`.
    """
    spent = spending(run)
    chosen = currency(spent)
    # Answers are judged by being right or by agreeing with a stereotype: no measure is of both.
    if chosen is None or run.kind.classes:
        return None
    found = {}
    for dimension in run.dimensions:
        compared = comparisons_of(run, dimension)
        if measure := main_measure(run, dimension):
            costs = {run.systems[each.system]: chosen.of(each) for each in spent}
            pairs = {
                system: (Mean(cost, cost, cost), Mean.of(compared[system, measure])) for system, cost in costs.items()
            }
            found[dimension] = points(run, pairs, cheap=True)
    return CostTradeOff(chosen, spent, found) if found else None


def spending(run: Run) -> tuple[Spending, ...]:
    """Every system's; none where no topic is judged."""
    outcomes = run.by_topic
    topics = run.counted_topics
    systems = enumerate(run.systems if topics else ())
    return tuple(_spending(number, [outcomes[topic][system] for topic in topics]) for number, system in systems)


def _spending(system: int, own: Sequence[Outcome]) -> Spending:
    dollars = [outcome.cost for outcome in own if outcome.cost is not None]
    return Spending(
        system,
        float(np.mean([retrievals(outcome) for outcome in own])),
        float(np.mean([outcome.calls for outcome in own])),
        float(np.mean([outcome.input_tokens + outcome.output_tokens for outcome in own])),
        1000 * float(np.mean(dollars)) if len(dollars) == len(own) else None,
        1000 * float(np.median([outcome.seconds for outcome in own])),
    )


def retrievals(outcome: Outcome) -> int:
    """How many lists the loop asked its engine for: that of the user's query, and each that terms were added for."""
    return sum(place == 0 or bool(step.terms) for place, step in enumerate(outcome.steps))


def currency(spent: Sequence[Spending]) -> Currency | None:
    """Dollars where every price is known, else calls; time where nobody calls a model; None where all cost the same."""
    if not any(each.calls for each in spent):
        chosen = Currency.MILLISECONDS
    else:
        chosen = Currency.CALLS if any(each.dollars is None for each in spent) else Currency.DOLLARS
    return chosen if len({chosen.of(each) for each in spent}) > 1 else None
