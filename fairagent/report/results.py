"""What the page says of the systems as wholes: tables, findings, effort, and the numbers behind the plots."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

from fairagent.evaluate.comparison import Comparison
from fairagent.evaluate.findings import (
    RELEVANCE,
    VERDICTS,
    comparisons_of,
    is_measure,
    label_error_text,
    main_measure,
    mark,
    under_label_error,
    worth,
)
from fairagent.evaluate.outcome import Outcome
from fairagent.evaluate.results import Cost, costs
from fairagent.evaluate.run import Run
from fairagent.types import FloatArray

# --- tables, effort ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ResultCell:
    """One system in one column; `best` is the best mean without a look at the judgments, `verdict` if significant.

    `under_error` is AWRF where labels are made, with its interval; "" for other measures.
    """

    comparison: Comparison
    expected: float | None
    verdict: str
    best: bool
    under_error: str = ""


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """One measure in one dimension, over so many topics; `scale` spans all intervals, `cells` are the systems'."""

    dimension: str
    measure: str
    topics: int
    scale: tuple[float, float]
    cells: tuple[ResultCell | None, ...]


@dataclass(frozen=True, slots=True)
class Effort:
    """What one system took over all topics: how many it answered and failed on, retrievals, and the model's cost."""

    system: int
    answered: int
    failed: int
    retrievals: int
    cost: Cost


def result_tables(run: Run) -> dict[str, tuple[ResultColumn, ...]]:
    """Dimension -> the columns of its table, those of relevance first; classes of questions stand alone."""
    dimensions = [dimension for dimension in run.dimensions if comparisons_of(run, dimension)]
    shown: dict[str, tuple[str, ...]]
    if run.kind.classes:
        shown = {dimension: (dimension,) for dimension in (RELEVANCE, *dimensions)}
    else:
        shown = {dimension: (RELEVANCE, dimension) for dimension in dimensions} or {RELEVANCE: (RELEVANCE,)}
    tables = {
        dimension: tuple(column for d in shown_in for m in run.measures if (column := _column(run, d, m)))
        for dimension, shown_in in shown.items()
    }
    return {dimension: columns for dimension, columns in tables.items() if columns}


def _column(run: Run, dimension: str, measure: str) -> ResultColumn | None:
    rows = {row.system: row for row in run.comparisons if (row.dimension, row.measure) == (dimension, measure)}
    if not rows:
        return None
    made = under_label_error(run, dimension) if is_measure(measure, "AWRF") else {}
    honest = [worth(run, row) for row in rows.values() if row.system not in run.oracle_systems]
    cells = [
        ResultCell(
            rows[system],
            run.expected_of(rows[system]),
            VERDICTS[mark(run, rows[system])],
            system not in run.oracle_systems and worth(run, rows[system]) == max(honest),
            label_error_text(made.get(system), 3),
        )
        if system in rows
        else None
        for system in run.systems
    ]
    scale = min(row.low for row in rows.values()), max(row.high for row in rows.values())
    return ResultColumn(dimension, measure, next(iter(rows.values())).topics, scale, tuple(cells))


def efforts(run: Run) -> tuple[Effort, ...]:
    """Each system's effort over all topics that it was tried on, counted for the tables or not."""
    spent, rows = costs(run), []
    for number, system in enumerate(run.systems):
        own = [outcome for outcome in run.outcomes if outcome.system == system]
        failed = sum(outcome.failed is not None for outcome in own)
        rows.append(Effort(number, len(own) - failed, failed, sum(map(retrievals, own)), spent[system]))
    return tuple(rows)


def retrievals(outcome: Outcome) -> int:
    """How many lists the loop retrieved: that of the user's query, and each that terms were added for."""
    return sum(place == 0 or bool(step.terms) for place, step in enumerate(outcome.steps))


# --- gaps and gains -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class GapPaths:
    """The gap after each retrieval, (topics, retrievals) in nats, without the topics whose gap is ever infinite."""

    system: int
    gaps: FloatArray
    infinite: int


def gap_paths(run: Run) -> tuple[GapPaths, ...]:
    """The gaps of every system that retrieved more than once for some topic."""
    outcomes, topics = run.by_topic, run.counted_topics
    of_systems = []
    for number, system in enumerate(run.systems):
        paths = []
        for topic in topics:
            gaps: list[float] = []
            for step in outcomes[topic][system].steps:
                gaps.append(step.gap if step.accepted or not gaps else gaps[-1])
            paths += [gaps] if gaps else []
        longest = max(map(len, paths), default=0)
        if longest > 1:
            finite = [path + path[-1:] * (longest - len(path)) for path in paths if all(map(math.isfinite, path))]
            shaped = np.array(finite).reshape(len(finite), longest)
            of_systems.append(GapPaths(number, shaped, len(paths) - len(finite)))
    return tuple(of_systems)


def gains(run: Run, dimension: str, measure: str) -> dict[str, dict[str, float]]:
    """System -> topic -> by how much it is better than the baseline, where both have a value."""
    outcomes = run.by_topic
    gained: dict[str, dict[str, float]] = {system: {} for system in run.systems if system != run.baseline}
    for topic in run.counted_topics:
        values = {name: one.values.get(dimension, {}).get(measure) for name, one in outcomes[topic].items()}
        base = values[run.baseline]
        for system, of_system in gained.items():
            value = values[system]
            if base is not None and value is not None:
                of_system[topic] = run.gain(measure, value, base)
    return gained


# --- systems as points of two means ---------------------------------------------------------------------------------


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
    compared, alone = comparisons_of(run, dimension), comparisons_of(run, RELEVANCE)
    fairness = next((m for m in run.measures if is_measure(m, "AWRF") and (run.baseline, m) in compared), None)
    judged = [m for m in run.measures if (run.baseline, m) in compared or (run.baseline, m) in alone]
    relevance = next((m for m in judged if is_measure(m, "nDCG")), None)
    return None if fairness is None or relevance is None else (relevance, fairness)


def trade_off(run: Run, dimension: str) -> tuple[Point, ...]:
    """Every system's nDCG (over the dimension's own topics where there is one) and AWRF; empty without both."""
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
    """The systems with two means each, of which more (if `cheap`, of the first less) is better; oracles on no front."""
    worth = {system: (-x.mean if cheap else x.mean, y.mean) for system, (x, y) in pairs.items()}
    honest = [worth[system] for system in pairs if system not in run.oracle_systems]

    def point(system: str, x: Mean, y: Mean) -> Point:
        own, oracle = worth[system], system in run.oracle_systems
        beaten = any(one[0] >= own[0] and one[1] >= own[1] and one != own for one in honest)
        return Point(run.systems.index(system), x, y, oracle, not oracle and not beaten)

    return tuple(point(system, x, y) for system, (x, y) in pairs.items())


@dataclass(frozen=True, slots=True)
class Spending:
    """What one system takes for a topic: means, but the median of the milliseconds; `dollars` are for 1,000 topics."""

    system: int
    retrievals: float
    calls: float
    tokens: float
    dollars: float | None
    milliseconds: float


class Currency(Enum):
    """What systems' costs are measured in: a field of `Spending`; the value is its unit in words."""

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
    """What fairness costs; None where nothing is judged by it, or all systems cost the same."""
    spent = spending(run)
    currency = _currency(spent)
    # Answers are judged by being right or by agreeing with a stereotype: no measure is of both.
    if currency is None or run.kind.classes:
        return None
    of_dimension = {}
    for dimension in run.dimensions:
        compared = comparisons_of(run, dimension)
        if measure := main_measure(run, dimension):
            pairs = {}
            for each in spent:
                system, cost = run.systems[each.system], currency.of(each)
                pairs[system] = (Mean(cost, cost, cost), Mean.of(compared[system, measure]))
            of_dimension[dimension] = points(run, pairs, cheap=True)
    return CostTradeOff(currency, spent, of_dimension) if of_dimension else None


def spending(run: Run) -> tuple[Spending, ...]:
    """Every system's; none where no topic is judged."""
    outcomes, topics, rows = run.by_topic, run.counted_topics, []
    for number, system in enumerate(run.systems if topics else ()):
        own = [outcomes[topic][system] for topic in topics]
        dollars = [outcome.cost for outcome in own if outcome.cost is not None]
        rows.append(
            Spending(
                number,
                float(np.mean([retrievals(outcome) for outcome in own])),
                float(np.mean([outcome.calls for outcome in own])),
                float(np.mean([outcome.input_tokens + outcome.output_tokens for outcome in own])),
                1000 * float(np.mean(dollars)) if len(dollars) == len(own) else None,
                1000 * float(np.median([outcome.seconds for outcome in own])),
            )
        )
    return tuple(rows)


def _currency(spent: Sequence[Spending]) -> Currency | None:
    """Dollars where every price is known, else calls; time where nobody calls a model; None where all cost the same."""
    if not any(each.calls for each in spent):
        chosen = Currency.MILLISECONDS
    else:
        chosen = Currency.CALLS if any(each.dollars is None for each in spent) else Currency.DOLLARS
    return chosen if len({chosen.of(each) for each in spent}) > 1 else None
