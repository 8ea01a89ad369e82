"""What the rows of a system say together, and medians over several systems and their runs.

The paper's Table 1 has a row a retriever, of which it has run four generators; how it takes them together is not said.
Medians do not follow one generator that fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from fairagent.evaluate.engine.run import Run
from fairagent.evaluate.engine.tables import Table
from fairagent.evaluate.kinds.fair_rag.analysis import Curve
from fairagent.evaluate.kinds.fair_rag.section import NORMALIZED
from fairagent.measures.disparity_curves import EDGES, interval_name

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
