"""AWRF where labels are missing or predicted: that of the labeled documents, and what it can be.

Made from the outcomes' exposures alone; `fairagent.measures.unawareness` has the mathematics.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from fairagent.collection import Groups
from fairagent.errors import UsageError
from fairagent.evaluate.comparison import bootstrap_intervals
from fairagent.evaluate.findings import label_error_text, shown_by_all, under_label_error
from fairagent.evaluate.outcome import GroupShares
from fairagent.evaluate.run import Results
from fairagent.evaluate.tables import Table
from fairagent.measures import AWRF, Measure, Product, awrf_bounds, jensen_shannon, prevalence
from fairagent.measures.base import seeded
from fairagent.types import FloatArray
from fairagent.types.common import counted

NEGLIGIBLE = 1e-12
"""An exposure that is no more is rounding."""


@dataclass(frozen=True, slots=True)
class Unaware:
    """One system in one dimension: AWRF as means over the topics that count.

    `missing` is the share of exposure whose group is not known. `labeled` is the value of the rest (None where all
    labels are predicted), `lowest` and `highest` what it can be. `estimate` is that by predicted labels, `adjusted`
    (PACC) where the classifier's confusion matrix is known; `low` and `high` are its 95 % bootstrap interval over the
    topics (None without predicted labels). `likely` is AWRF as labels drawn from the chances have it, within
    `likely_low` and `likely_high` under label error (`measures.mean_under_error`).
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
    likely: float | None = None
    likely_low: float | None = None
    likely_high: float | None = None


def base_of(measures: Sequence[Measure]) -> float:
    """The base of the logarithm of the first AWRF among the measures; e without one."""
    factors = (part for one in measures for part in ((one.left, one.right) if isinstance(one, Product) else (one,)))
    first = next((one for one in factors if isinstance(one, AWRF)), None)
    return 2.0 if first and first.log == "2" else math.e


def check_confusion(rows: Sequence[Sequence[float]], dimension: str, groups: Groups) -> None:
    """Raise UsageError or DataError where `rows` are no confusion matrix for a predicted dimension."""
    labels = groups.labels(dimension)
    if dimension not in groups.predicted:
        raise UsageError("labels that are not predicted have no confusion matrix")
    if {len(rows), *map(len, rows)} != {len(labels)}:
        raise UsageError(f"expected a row and a column for each of {len(labels)} labels: {', '.join(labels)}")
    prevalence(np.full(len(labels), 1.0 / len(labels)), np.array(rows))


def unawareness(run: Results, base: float, confusion: Mapping[str, FloatArray]) -> list[Unaware]:
    """AWRF of every system in dimensions with predicted or missing labels.

    `confusion` has the matrices (g, g) of the classifiers that predicted a dimension's labels.
    """
    return [row for name in run.dimensions for row in _of_dimension(run, name, base, confusion.get(name))]


def _of_dimension(run: Results, dimension: str, base: float, confusion: FloatArray | None) -> Iterator[Unaware]:
    exposures = list(shown_by_all(run, dimension).values())
    predicted = any(one.predicted for of_system in exposures for one in of_system)
    if not predicted and all(
        _missing(one) <= NEGLIGIBLE and one.target_known is None for of_system in exposures for one in of_system
    ):
        return
    matrix = confusion if predicted else None
    values = np.array([[_value(one, base, matrix) for one in of_system] for of_system in exposures])
    interval = bootstrap_intervals(values, seeded(run.kind.seed, "unawareness", dimension)) if predicted else None
    adjusted = matrix is not None and prevalence(np.full(len(matrix), 1 / len(matrix)), matrix).adjusted
    likely = under_label_error(run, dimension) if predicted else {}
    for row, (system, mean) in enumerate(zip(run.systems, values.mean(axis=1).tolist(), strict=True)):
        missing = [0.0 if (of := _possible(one)) is None else of[0] for one in exposures[row]]
        lowest, highest = np.array([fairness_bounds(one, base) for one in exposures[row]]).mean(axis=0).tolist()
        more: list[Any] = []
        if interval is not None:
            more = [mean, *(float(end[row]) for end in interval), adjusted, *likely.get(system, ())]
        labeled = None if predicted else mean
        yield Unaware(system, dimension, len(exposures[row]), float(np.mean(missing)), labeled, lowest, highest, *more)


def fairness_bounds(one: GroupShares, base: float = math.e) -> tuple[float, float]:
    """The least and the largest AWRF that missing labels allow; the lowest value where no document can have a group."""
    exposure = _possible(one)
    if exposure is None:
        return _lowest(base), _lowest(base)
    known = None if one.target_known is None else np.array(one.target_known)
    return awrf_bounds(exposure, np.array(one.target), base, known)


def _missing(one: GroupShares) -> float:
    return one.unknown if one.missing is None else one.missing


def _possible(one: GroupShares) -> FloatArray | None:
    """The exposure (1 + g,) of documents that have a group, known (not predicted) or not; None without any."""
    known, missing = (1.0 - one.unknown) * np.array(one.shares), _missing(one)
    if one.predicted:
        known, missing = np.zeros_like(known), missing + known.sum()
    total = missing + known.sum()
    return np.append(missing, known) / total if total > NEGLIGIBLE else None


def _value(one: GroupShares, base: float, confusion: FloatArray | None) -> float:
    """AWRF over the known or predicted groups; its lowest value where nothing has a label."""
    if not any(one.shares):
        return _lowest(base)
    return 1.0 - jensen_shannon(prevalence(np.array(one.shares), confusion).shares, np.array(one.target), base=base)


def _lowest(base: float) -> float:
    """AWRF of a ranking that shows no group anything."""
    return 1.0 - math.log(2.0) / math.log(base)


def tables(run: Results, rows: Sequence[Unaware], base: float) -> Iterator[Table]:
    """AWRF in each dimension."""
    for dimension, group in groupby(rows, lambda row: row.dimension):
        of = list(group)
        predicted, erring = of[0].estimate is not None, of[0].likely is not None
        shown = ["system", "missing", "labeled", "lowest", "highest", *(["estimate"] * predicted)]
        lines = [
            [*(getattr(one, name) for name in shown), *([f"[{one.low:.4f}, {one.high:.4f}]"] if predicted else [])]
            + ([label_error_text((one.likely, one.likely_low, one.likely_high))] if erring else [])
            for one in of
        ]
        heads = [*shown, *(["95 % interval"] * predicted), *(["under label error"] * erring)]
        title = f"{dimension}, AWRF(unknown=ignore)@{run.n} under missing labels ({counted(of[0].topics, 'topic')})"
        yield Table.of(heads, lines, title, list(_notes(run, of, base)))


def _notes(run: Results, rows: Sequence[Unaware], base: float) -> Iterator[str]:
    row, logarithm = rows[0], "base 2" if base == 2.0 else "natural logarithm"
    yield f"missing: share of exposure in the first {run.n}, of documents that have a group, whose group is not known"
    yield (
        f"labeled: AWRF of the others ({logarithm}), its lowest value where nobody else is shown; lowest, highest: if "
        "the missing are given to groups in any way"
    )
    # The part of the target that is not known, by topic.
    of_topic = {
        outcome.topic: 1.0 - sum(one.target if one.target_known is None else one.target_known)
        for outcome in run.answered
        for one in outcome.exposures
        if one.dimension == row.dimension
    }
    if (lacking := float(np.mean(list(of_topic.values())))) > NEGLIGIBLE:
        yield (
            f"{lacking:.1%} of the target would come from documents without a label; lowest, highest: that is given to "
            "groups in any way, too"
        )
    above = [one.system for one in rows if one.lowest > row.highest]
    below = [one.system for one in rows if one.highest < row.lowest]
    for side, systems in (("above", above), ("below", below)):
        if systems:
            yield f"{side} {run.baseline}, whatever the missing are: {', '.join(systems)}"
    if row.estimate is not None:
        how = "adjusted by its confusion matrix (PACC)" if row.adjusted else "taken as they are (PCC)"
        yield f"estimate: AWRF by a classifier's probabilities, {how}; the interval is over the topics"
        yield "a predicted label may be wrong: none of them counts as known"
    if row.likely is not None:
        yield (
            "under label error: AWRF as labels drawn from the chances have it, those that the target is counted from, "
            "too; in brackets what errors leave of the mean: topics err by themselves, but for what one labeler shares"
        )
