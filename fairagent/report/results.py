"""What the page says of the systems as wholes: the tables of results, the findings above them, what it all took."""

import math
from dataclasses import dataclass

from fairagent.evaluate.comparison import Comparison
from fairagent.evaluate.results import Cost, costs, mark
from fairagent.evaluate.run import MeanExposure, Run
from fairagent.report.series import RELEVANCE, comparisons_of, main_measure, retrievals

VERDICTS = {"+": "better", "-": "worse", "": ""}


@dataclass(frozen=True, slots=True)
class ResultCell:
    """One system in one column; `expected` is the number to compare with, where there is one.

    `verdict` is "better" or "worse" where the difference from the baseline is significant, else "". `best` marks the
    best mean of the systems that did not look at the judgments.
    """

    comparison: Comparison
    expected: float | None
    verdict: str
    best: bool


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """One measure: from which dimension, over how many topics, and the smallest and largest bound of an interval."""

    dimension: str
    measure: str
    topics: int
    scale: tuple[float, float]


@dataclass(frozen=True, slots=True)
class SystemRow:
    """One system's row; `cells` stand beside the table's columns."""

    system: int
    baseline: bool
    cells: tuple[ResultCell | None, ...]


@dataclass(frozen=True, slots=True)
class ResultsTable:
    """The systems by the measures of relevance and those of one dimension ("": relevance alone)."""

    dimension: str
    columns: tuple[ResultColumn, ...]
    lines: tuple[SystemRow, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """How the best system that did not look at the judgments stands to the baseline in one dimension.

    `best` and `baseline` are by the `main_measure`, `improved` says whether the mean of `best` is better; `others` are
    both systems by the other measures, relevance first.
    `exposures` are both systems' mean exposures, where they are known.
    """

    dimension: str
    best: Comparison
    baseline: Comparison
    verdict: str
    improved: bool
    others: tuple[tuple[Comparison, Comparison], ...]
    exposures: tuple[MeanExposure, MeanExposure] | None


@dataclass(frozen=True, slots=True)
class Effort:
    """What one system took over all topics: how many it answered and failed on, retrievals, and the model's cost."""

    system: int
    answered: int
    failed: int
    retrievals: int
    cost: Cost


def result_tables(run: Run) -> tuple[ResultsTable, ...]:
    """One table a dimension that was measured, or else one for relevance alone; none where nothing was measured.

    Where questions are answered, one for all of them comes first, and each kind of question stands alone.
    """
    dimensions = [dimension for dimension in run.dimensions if comparisons_of(run, dimension)]
    if run.kind.classes:
        tables = [_table(run, dimension, (dimension,)) for dimension in (RELEVANCE, *dimensions)]
    else:
        tables = [_table(run, dimension, (RELEVANCE, dimension)) for dimension in dimensions]
        tables = tables or [_table(run, RELEVANCE, (RELEVANCE,))]
    return tuple(table for table in tables if table.columns)


def _table(run: Run, dimension: str, shown: tuple[str, ...]) -> ResultsTable:
    """The table of a dimension, with the columns of all that are `shown`."""
    honest = {(row.dimension, row.measure): -math.inf for row in run.comparisons}
    for row in run.comparisons:
        if row.system not in run.oracle_systems:
            honest[row.dimension, row.measure] = max(_worth(run, row), honest[row.dimension, row.measure])
    rows = {(row.system, row.dimension, row.measure): row for row in run.comparisons}
    columns = [_column(run, d, m) for d in shown for m in run.measures if (d, m) in honest]

    def cell(system: str, column: ResultColumn) -> ResultCell | None:
        row = rows.get((system, column.dimension, column.measure))
        if row is None:
            return None
        best = system not in run.oracle_systems and _worth(run, row) == honest[column.dimension, column.measure]
        return ResultCell(row, run.expected_of(row), VERDICTS[mark(run, row)], best)

    lines = (
        SystemRow(number, system == run.baseline, tuple(cell(system, column) for column in columns))
        for number, system in enumerate(run.systems)
    )
    return ResultsTable(dimension, tuple(columns), tuple(lines))


def _column(run: Run, dimension: str, measure: str) -> ResultColumn:
    rows = [row for row in run.comparisons if (row.dimension, row.measure) == (dimension, measure)]
    return ResultColumn(
        dimension, measure, rows[0].topics, (min(row.low for row in rows), max(row.high for row in rows))
    )


def findings(run: Run) -> tuple[Finding, ...]:
    """One finding a dimension in which the baseline and another system that saw no judgments were measured."""
    return tuple(finding for dimension in run.compared_in if (finding := _finding(run, dimension)))


def _finding(run: Run, dimension: str) -> Finding | None:
    compared = comparisons_of(run, dimension)
    measure = main_measure(run, dimension)
    others = [s for s in run.systems if s != run.baseline and s not in run.oracle_systems and (s, measure) in compared]
    if measure is None or not others or (run.baseline, measure) not in compared:
        return None
    best = max((compared[system, measure] for system in others), key=lambda row: _worth(run, row))
    beside = [
        (rows[best.system, m], rows[run.baseline, m])
        for rows in ((comparisons_of(run, RELEVANCE), compared) if dimension else (compared,))
        for m in run.measures
        if m != measure and {(best.system, m), (run.baseline, m)} <= rows.keys()
    ]
    exposures = {run.systems[mean.system]: mean for mean in run.mean_exposures(dimension)}
    both = {run.baseline, best.system} <= exposures.keys()
    return Finding(
        dimension,
        best,
        compared[run.baseline, measure],
        VERDICTS[mark(run, best)],
        _worth(run, best) > _worth(run, compared[run.baseline, measure]),
        tuple(beside),
        (exposures[run.baseline], exposures[best.system]) if both else None,
    )


def _worth(run: Run, row: Comparison) -> float:
    """The mean, or where lower ones are better, its negative."""
    return run.gain(row.measure, row.mean)


def efforts(run: Run) -> tuple[Effort, ...]:
    """Each system's effort over all topics that it was tried on, counted for the tables or not."""
    spent = costs(run)
    found = []
    for number, system in enumerate(run.systems):
        own = [outcome for outcome in run.outcomes if outcome.system == system]
        failed = sum(outcome.failed is not None for outcome in own)
        found.append(Effort(number, len(own) - failed, failed, sum(map(retrievals, own)), spent[system]))
    return tuple(found)
