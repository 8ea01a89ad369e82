"""AWRF where labels are missing or predicted: what it is of the labeled documents, what it can be, and is likely to be.

Made from the outcomes' exposures alone; `fairagent.measures.unawareness` has the mathematics.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields

import numpy as np

from fairagent.collection import Groups
from fairagent.errors import UsageError
from fairagent.evaluate.engine.outcome import GroupShares
from fairagent.evaluate.engine.run import Run
from fairagent.evaluate.engine.statistics import bootstrap_intervals, seeded
from fairagent.evaluate.engine.tables import Table, counted
from fairagent.measures import AWRF, Measure, Product, awrf_bounds, jensen_shannon, prevalence
from fairagent.types import FloatArray

FILE = "unawareness.csv"
NEGLIGIBLE = 1e-12
"""An exposure that is no more is rounding."""

Confusion = Mapping[str, FloatArray]
"""Dimension -> confusion matrix (g, g) of the classifier that predicted its labels."""


@dataclass(frozen=True, slots=True)
class Unaware:
    """One system in one dimension, as means over the topics that count.

    `missing` is the share of exposure whose group is not known. `labeled` is AWRF of the rest (None where all labels
    are predicted), `lowest` and `highest` what AWRF can be. `estimate` is AWRF by predicted labels, `adjusted` (PACC)
    where the classifier's confusion matrix is known; `low` and `high` are its 95 % bootstrap interval over the topics
    (None without predicted labels).
    """

    system: str
    dimension: str
    topics: int
    missing: float
    labeled: float | None
    lowest: float
    highest: float
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    adjusted: bool = False


def unawareness(run: Run, base: float, confusion: Confusion) -> list[Unaware]:
    """Every system in every dimension in which some document shown lacks a label, or labels are predicted.

    `base` is that of AWRF's logarithm.
    """
    return [row for name in run.dimensions for row in _of_dimension(run, name, base, confusion.get(name))]


def tables(run: Run, base: float, confusion: Confusion) -> list[Table]:
    """A table a dimension."""
    found = unawareness(run, base, confusion)
    dimensions = dict.fromkeys(row.dimension for row in found)
    return [_table(run, [row for row in found if row.dimension == name], base) for name in dimensions]


def files(run: Run, base: float, confusion: Confusion) -> dict[str, Table]:
    """One line a system and dimension; no file where there is none."""
    lines = [astuple(row) for row in unawareness(run, base, confusion)]
    return {FILE: Table.of([field.name for field in fields(Unaware)], lines)} if lines else {}


def check_confusion(rows: Sequence[Sequence[float]], dimension: str, groups: Groups) -> None:
    """Raise UsageError or DataError where `rows` are no confusion matrix for a predicted dimension."""
    labels = groups.labels(dimension)
    if dimension not in groups.predicted:
        raise UsageError("labels that are not predicted have no confusion matrix")
    if {len(rows), *map(len, rows)} != {len(labels)}:
        raise UsageError(f"expected a row and a column for each of {len(labels)} labels: {', '.join(labels)}")
    prevalence(np.full(len(labels), 1.0 / len(labels)), np.array(rows))


def base_of(measures: Sequence[Measure]) -> float:
    """The base of the logarithm of the first AWRF among the measures; e without one."""
    factors = (part for one in measures for part in ((one.left, one.right) if isinstance(one, Product) else (one,)))
    first = next((one for one in factors if isinstance(one, AWRF)), None)
    return 2.0 if first and first.log == "2" else math.e


def _table(run: Run, rows: Sequence[Unaware], base: float) -> Table:
    predicted = rows[0].estimate is not None
    columns = ["system", "missing", "labeled", "lowest", "highest", *(["estimate", "95 % interval"] * predicted)]
    lines = [
        (
            *(one.system, one.missing, one.labeled, one.lowest, one.highest),
            *((one.estimate, f"[{one.low:.4f}, {one.high:.4f}]") if predicted else ()),
        )
        for one in rows
    ]
    title = f"{rows[0].dimension}, AWRF@{run.n} under missing labels ({counted(rows[0].topics)})"
    return Table.of(columns, lines, title, _notes(run, rows, base))


def _notes(run: Run, rows: Sequence[Unaware], base: float) -> Iterator[str]:
    row, logarithm = rows[0], "base 2" if base == 2.0 else "natural logarithm"
    yield f"missing: share of exposure in the first {run.n}, of documents that have a group, whose group is not known"
    yield (
        f"labeled: AWRF of the others ({logarithm}), its lowest value where nobody else is shown; lowest, highest: if "
        "the missing are given to groups in any way"
    )
    if above := [one.system for one in rows if one.lowest > row.highest]:
        yield f"above {run.baseline}, whatever the missing are: {', '.join(above)}"
    if below := [one.system for one in rows if one.highest < row.lowest]:
        yield f"below {run.baseline}, whatever the missing are: {', '.join(below)}"
    if row.estimate is not None:
        how = "adjusted by its confusion matrix (PACC)" if row.adjusted else "taken as they are (PCC)"
        yield f"estimate: AWRF by a classifier's probabilities, {how}; the interval is over the topics"
        yield "a predicted label may be wrong: none of them counts as known"


def _of_dimension(run: Run, dimension: str, base: float, confusion: FloatArray | None) -> Iterator[Unaware]:
    shown = {
        system: {
            outcome.topic: exposure
            for outcome in run.answered
            if outcome.system == system and outcome.failed is None
            for exposure in outcome.exposures
            if exposure.dimension == dimension
        }
        for system in run.systems
    }
    topics = [topic for topic in shown[run.baseline] if all(topic in of_topic for of_topic in shown.values())]
    exposures = [shown[system][topic] for system in run.systems for topic in topics]
    predicted = any(one.predicted for one in exposures)
    if not predicted and all(_missing(one) <= NEGLIGIBLE for one in exposures):
        return
    matrix = confusion if predicted else None
    values = np.array([[_fairness(shown[system][topic], base, matrix) for topic in topics] for system in run.systems])
    low, high = bootstrap_intervals(values, seeded(run.kind.seed, "unawareness", dimension))
    adjusted = matrix is not None and prevalence(np.full(len(matrix), 1 / len(matrix)), matrix).adjusted
    for system, of_topic, least, most in zip(run.systems, values, low.tolist(), high.tolist(), strict=True):
        seen = [_seen(shown[system][topic], float(value), base) for topic, value in zip(topics, of_topic, strict=True)]
        missing, lowest, highest = np.mean(seen, axis=0).tolist()
        mean, place = float(of_topic.mean()), (system, dimension, len(topics), missing)
        if predicted:
            yield Unaware(*place, None, lowest, highest, mean, least, most, adjusted)
        else:
            yield Unaware(*place, mean, lowest, highest)


def _missing(one: GroupShares) -> float:
    return one.unknown if one.missing is None else one.missing


def _seen(one: GroupShares, value: float, base: float) -> tuple[float, float, float]:
    """What is missing of the exposure of documents that have a group, and the bounds of AWRF; `value` without any.

    Nothing predicted counts as known.
    """
    known, missing = (1.0 - one.unknown) * np.array(one.shares), _missing(one)
    if one.predicted:
        known, missing = np.zeros_like(known), missing + known.sum()
    total = missing + known.sum()
    if total <= NEGLIGIBLE:
        return 0.0, value, value
    return missing / total, *awrf_bounds(np.append(missing, known) / total, np.array(one.target), base)


def _fairness(one: GroupShares, base: float, confusion: FloatArray | None) -> float:
    """AWRF over the known or predicted groups; its lowest value where nothing has a label."""
    if not any(one.shares):
        return 1.0 - math.log(2.0) / math.log(base)
    return 1.0 - jensen_shannon(prevalence(np.array(one.shares), confusion).shares, np.array(one.target), base=base)
