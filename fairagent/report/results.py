"""What the page says of the systems as wholes: the tables of results, the findings above them, what it all cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairagent.evaluate.run import Comparison, Run
from fairagent.report.names import is_kind
from fairagent.report.series import (
    RELEVANCE,
    MeanExposure,
    comparisons_of,
    main_measure,
    mean_exposures,
    outcomes_by_topic,
)

LEVEL = 0.05
"""A difference counts as one where both corrected p-values are below this."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One system by one measure; `expected` is the number to compare with, where there is one.

    `verdict` is "better" or "worse" where the difference from the baseline is significant (`LEVEL`), else "". `best`
    marks the highest mean of the systems that did not look at the judgments.
    """

    comparison: Comparison
    expected: float | None
    verdict: str
    best: bool


@dataclass(frozen=True, slots=True)
class Line:
    """One system's row; `cells` stand beside the table's measures, None where the system was not measured."""

    system: int
    name: str
    baseline: bool
    oracle: bool
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True, slots=True)
class ResultsTable:
    """The systems by the measures of one dimension, "" being relevance alone.

    `scales` are each measure's smallest and largest bound of an interval.
    """

    dimension: str
    measures: tuple[str, ...]
    scales: tuple[tuple[float, float], ...]
    lines: tuple[Line, ...]
    topics: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Finding:
    """How the best system that did not look at the judgments stands to the baseline in one dimension.

    `verdict` is "better", "worse" or "" (no significant difference). `others` are the same system's other measures.
    `exposures` are the mean exposures of the baseline and of that system, where both are known.
    """

    dimension: str
    measure: str
    best: Comparison
    baseline: Comparison
    verdict: str
    others: tuple[tuple[Comparison, Comparison], ...]
    exposures: tuple[MeanExposure, MeanExposure] | None


@dataclass(frozen=True, slots=True)
class Cost:
    """What one system's topics took together; `cost` is None where a price is not known."""

    system: int
    name: str
    topics: int
    failed: int
    retrievals: int
    calls: int
    input_tokens: int
    output_tokens: int
    cost: float | None


def result_tables(run: Run) -> tuple[ResultsTable, ...]:
    """One table for relevance alone, where it was measured, and one a dimension."""
    dimensions = dict.fromkeys([RELEVANCE, *run.dimensions, *(c.dimension for c in run.comparisons)])
    return tuple(table for dimension in dimensions if (table := _table(run, dimension)).measures)


def _table(run: Run, dimension: str) -> ResultsTable:
    compared = comparisons_of(run, dimension)
    measures = tuple(m for m in run.measures if any((system, m) in compared for system in run.systems))
    columns = [[c for (_, measure), c in compared.items() if measure == m] for m in measures]
    lines = tuple(
        Line(
            number,
            system,
            system == run.baseline,
            system in run.oracle_systems,
            tuple(_cell(run, compared.get((system, m)), column) for m, column in zip(measures, columns, strict=True)),
        )
        for number, system in enumerate(run.systems)
    )
    topics = [c.topics for column in columns for c in column] or [0]
    scales = tuple((min(c.low for c in column), max(c.high for c in column)) for column in columns)
    return ResultsTable(dimension, measures, scales, lines, (min(topics), max(topics)))


def _cell(run: Run, comparison: Comparison | None, column: Sequence[Comparison]) -> Cell | None:
    if comparison is None:
        return None
    expected = (run.expected or {}).get(comparison.system, {}).get(comparison.dimension, {}).get(comparison.measure)
    honest = [_oriented(c) for c in column if c.system not in run.oracle_systems]
    best = comparison.system not in run.oracle_systems and len(honest) > 1 and _oriented(comparison) == max(honest)
    return Cell(comparison, expected, verdict(comparison), best)


def lower_is_better(measure: str) -> bool:
    """Whether less is better: the loss and the disparity of expected exposure."""
    return is_kind(measure, "EE-L") or is_kind(measure, "EE-D")


def _oriented(comparison: Comparison) -> float:
    return -comparison.mean if lower_is_better(comparison.measure) else comparison.mean


def verdict(comparison: Comparison) -> str:
    """ "better" or "worse" than the baseline where both corrected tests say so, else ""."""
    ps = (comparison.t_holm, comparison.randomization_holm)
    if comparison.difference is None or any(p is None or p >= LEVEL for p in ps):
        return ""
    return "better" if (comparison.difference > 0) != lower_is_better(comparison.measure) else "worse"


def findings(run: Run) -> tuple[Finding, ...]:
    """One finding a dimension in which the baseline and another system that saw no judgments were measured."""
    return tuple(finding for dimension in run.dimensions if (finding := _finding(run, dimension)))


def _finding(run: Run, dimension: str) -> Finding | None:
    compared = comparisons_of(run, dimension)
    measure = main_measure(run, dimension)
    others = [s for s in run.systems if s != run.baseline and s not in run.oracle_systems and (s, measure) in compared]
    if measure is None or not others or (run.baseline, measure) not in compared:
        return None
    best = max((compared[system, measure] for system in others), key=_oriented)
    beside = [m for m in run.measures if m != measure and {(best.system, m), (run.baseline, m)} <= compared.keys()]
    exposures = {run.systems[mean.system]: mean for mean in mean_exposures(run, dimension)}
    both = {run.baseline, best.system} <= exposures.keys()
    return Finding(
        dimension,
        measure,
        best,
        compared[run.baseline, measure],
        verdict(best),
        tuple((compared[best.system, m], compared[run.baseline, m]) for m in beside),
        (exposures[run.baseline], exposures[best.system]) if both else None,
    )


def costs(run: Run) -> tuple[Cost, ...]:
    """Each system's cost over all topics that it finished, counted for the tables or not."""
    topics = outcomes_by_topic(run)
    found = []
    for number, system in enumerate(run.systems):
        outcomes = [of_topic[system] for of_topic in topics.values() if system in of_topic]
        done = [outcome for outcome in outcomes if outcome.failed is None]
        prices = [outcome.cost for outcome in done]
        found.append(
            Cost(
                number,
                system,
                len(done),
                len(outcomes) - len(done),
                sum(len(outcome.steps) for outcome in done),
                sum(outcome.calls for outcome in done),
                sum(outcome.input_tokens for outcome in done),
                sum(outcome.output_tokens for outcome in done),
                None if None in prices else sum(price for price in prices if price is not None),
            )
        )
    return tuple(found)
