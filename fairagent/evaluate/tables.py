"""The results of a run as CSV. But for the timings, nothing in them depends on the clock or the machine."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import astuple, fields

from fairagent.evaluate.comparison import Comparison
from fairagent.evaluate.cost import costs
from fairagent.evaluate.labels import gain
from fairagent.evaluate.outcome import Outcome
from fairagent.evaluate.run import Run

SIGNIFICANT = 0.05
ORACLE = "†"


def mark(row: Comparison) -> str:
    """A + or - for a system that is better or worse than the baseline (randomization test after Holm, p < .05)."""
    if row.randomization_holm is None or row.randomization_holm >= SIGNIFICANT or not row.difference:
        return ""
    return "+" if gain(row.measure, row.difference, 0.0) > 0 else "-"


def results_csv(run: Run) -> str:
    """One line for each system, dimension and measure, with the cost of the system; numbers keep every digit."""
    spent = costs(run)
    names = [field.name for field in fields(Comparison)]
    header = [*names, "calls", "input_tokens", "output_tokens", "cost", "oracle", "expected"]
    lines = []
    for row in run.comparisons:
        cost = spent[row.system]
        values = [getattr(row, name) for name in names]
        oracle = int(row.system in run.oracle_systems)
        lines.append(
            [*values, cost.calls, cost.input_tokens, cost.output_tokens, cost.dollars, oracle, expected(run, row)]
        )
    return csv_text(header, lines)


def topics_csv(run: Run) -> str:
    """One line for each topic, system, dimension and measure: the values that the means are taken over."""
    lines = [
        (outcome.topic, outcome.system, dimension, measure, value)
        for outcome in answered(run)
        for dimension, of_measure in outcome.values.items()
        for measure, value in of_measure.items()
    ]
    return csv_text(("topic", "system", "dimension", "measure", "value"), lines)


def answers_csv(run: Run) -> str:
    """One line for each question and system: what was asked and answered, the grade, and who gave it.

    Where a context was debiased, also how many counterfactuals were made, survived and won a place, and how far theta
    moved.
    """
    debiased = any(outcome.answer and outcome.answer.debiased for outcome in answered(run))
    more = ("made", "survived", "placed", "theta_moved") if debiased else ()
    header = ("topic", "system", "kind", *run.measures, "graded_by", "removed", *more, "question", "answer")
    lines = [
        (
            *(outcome.topic, outcome.system, next(filter(None, outcome.values), "")),
            *(outcome.values[""][measure] for measure in run.measures),
            *(outcome.answer.graded_by, " ".join(outcome.answer.removed)),
            *(astuple(outcome.answer.debiased) if outcome.answer.debiased else [None] * len(more)),
            *(outcome.query, outcome.answer.text),
        )
        for outcome in answered(run)
        if outcome.answer
    ]
    return csv_text(header, lines)


def timings_csv(run: Run) -> str:
    """Seconds of each topic under each system; those of topics that run side by side include waiting for each other."""
    return csv_text(("topic", "system", "seconds"), [(o.topic, o.system, o.seconds) for o in run.outcomes])


def answered(run: Run) -> list[Outcome]:
    """The outcomes of the topics that are judged."""
    return [outcome for outcome in run.outcomes if outcome.topic not in run.excluded]


def expected(run: Run, row: Comparison) -> float | None:
    """The number that was expected in the place of the row's mean, if any."""
    return (run.expected or {}).get(row.system, {}).get(row.dimension, {}).get(row.measure)


def columns(run: Run) -> list[tuple[str, str]]:
    """The (dimension, measure) pairs that there are comparisons for, in order."""
    return list(dict.fromkeys((row.dimension, row.measure) for row in run.comparisons))


def csv_text(header: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """The lines as CSV; None is empty."""
    page = io.StringIO()
    writer = csv.writer(page, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(["" if value is None else value for value in line] for line in lines)
    return page.getvalue()
