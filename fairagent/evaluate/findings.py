"""What a run has found: in each dimension the best system beside the baseline, and the verdict in a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fairagent.evaluate.comparison import Comparison, smallest_p
from fairagent.evaluate.run import MeanExposure, Run
from fairagent.evaluate.tables import SIGNIFICANT, p_phrase
from fairagent.measures.parse import is_measure, leading_measure, short_labels
from fairagent.types import exposure_rows
from fairagent.types.change import SHOWN_CHANGE, ExposureChange, exposure_change
from fairagent.types.clean import in_line

RELEVANCE = ""
"""The dimension of measures of relevance alone."""
VERDICTS = {"+": "better", "-": "worse", "": ""}


def comparisons_of(run: Run, dimension: str) -> dict[tuple[str, str], Comparison]:
    """The comparisons in one dimension as (system, measure) -> comparison."""
    return {(c.system, c.measure): c for c in run.comparisons if c.dimension == dimension}


def main_measure(run: Run, dimension: str) -> str | None:
    """The `leading_measure` of a dimension, of those that it was measured by."""
    measured = {measure for _, measure in comparisons_of(run, dimension)}
    return leading_measure([measure for measure in run.measures if measure in measured])


def worth(run: Run, row: Comparison) -> float:
    """The mean, or where lower ones are better, its negative."""
    return run.gain(row.measure, row.mean)


def best_mean(run: Run, rows: Sequence[Comparison]) -> float | None:
    """The best mean of a measure among systems that did not look at the judgments; None where nothing is better."""
    honest = [row for row in rows if row.system not in run.oracle_systems]
    if len(honest) < 2 or honest[0].measure in run.neutral:
        return None
    return max(honest, key=lambda row: worth(run, row)).mean


def mark(run: Run, row: Comparison) -> str:
    """A + or - for a system that is better or worse than the baseline (randomization test after Holm, p < .05)."""
    if row.randomization_holm is None or row.randomization_holm >= SIGNIFICANT or not row.difference:
        return ""
    if row.measure in run.neutral:
        return ""
    return "+" if run.gain(row.measure, row.difference) > 0 else "-"


@dataclass(frozen=True, slots=True)
class Finding:
    """The best system without a look at the judgments beside the baseline, by the `main_measure` and by `others`.

    `p` is that of the randomization test after Holm, as a sentence has it; "" where nothing was tested.
    """

    dimension: str
    best: Comparison
    baseline: Comparison
    verdict: str
    p: str
    improved: bool
    others: tuple[tuple[Comparison, Comparison], ...]
    exposures: tuple[MeanExposure, MeanExposure] | None

    @property
    def measured(self) -> tuple[tuple[Comparison, Comparison], ...]:
        """The best system and the baseline by the main measure, then by the others."""
        return (self.best, self.baseline), *self.others


def findings(run: Run) -> tuple[Finding, ...]:
    """One finding a dimension in which the baseline and another system that saw no judgments were measured."""
    return tuple(finding for dimension in run.compared_in if (finding := _finding(run, dimension)))


def _finding(run: Run, dimension: str) -> Finding | None:
    compared = comparisons_of(run, dimension)
    measure = main_measure(run, dimension)
    others = [s for s in run.systems if s != run.baseline and s not in run.oracle_systems and (s, measure) in compared]
    if measure is None or not others or (run.baseline, measure) not in compared:
        return None
    best = max((compared[system, measure] for system in others), key=lambda row: worth(run, row))
    pairs = [
        (rows[best.system, m], rows[run.baseline, m])
        for rows in ((comparisons_of(run, RELEVANCE), compared) if dimension else (compared,))
        for m in run.measures
        if m != measure and {(best.system, m), (run.baseline, m)} <= rows.keys()
    ]
    exposures = {run.systems[mean.system]: mean for mean in run.mean_exposures(dimension)}
    both = {run.baseline, best.system} <= exposures.keys()
    tested = best.randomization_holm
    return Finding(
        dimension,
        best,
        compared[run.baseline, measure],
        VERDICTS[mark(run, best)],
        "" if tested is None else p_phrase(tested, smallest_p(best.topics) * (len(run.systems) - 1)),
        worth(run, best) > worth(run, compared[run.baseline, measure]),
        tuple(pairs),
        (exposures[run.baseline], exposures[best.system]) if both else None,
    )


def change_of(run: Run, finding: Finding) -> ExposureChange | None:
    """What the best system changes for the groups, as means over the topics; None where no exposure was measured.

    The dimension is worse where its first AWRF is.
    """
    if finding.exposures is None:
        return None
    before, after = finding.exposures
    fairness = (now.mean - was.mean for now, was in finding.measured if is_measure(now.measure, "AWRF"))
    worse = next(fairness, 0.0) < -SHOWN_CHANGE
    source = run.targets.get(finding.dimension, "").partition(" ")[0]
    return exposure_change(finding.dimension, exposure_rows(before), exposure_rows(after), worse, source)


def under_label_error(run: Run, dimension: str) -> dict[str, tuple[float, float, float]]:
    """System -> AWRF where labels are made and the ends of its interval: means over the topics; empty where none is."""
    of_system: dict[str, dict[str, tuple[float, float, float] | None]] = {system: {} for system in run.systems}
    for outcome in run.answered:
        for one in outcome.exposures if outcome.failed is None else ():
            if one.dimension == dimension:
                of_system[outcome.system][outcome.topic] = one.likely
    topics = [topic for topic in of_system[run.baseline] if all(topic in own for own in of_system.values())]
    intervals = {}
    for system, own in of_system.items():
        likely = [ends for topic in topics if (ends := own[topic]) is not None]
        # A mean over other topics than those of its neighbors would mislead.
        if likely and len(likely) == len(topics):
            value, low, high = np.mean(likely, axis=0).tolist()
            intervals[system] = value, low, high
    return intervals


def label_error_text(likely: Sequence[float | None] | None, digits: int = 4) -> str:
    """AWRF with the ends of what label errors make of it, in one cell; "" where nothing is known of errors.

    >>> label_error_text((0.93, 0.9, 0.95))
    '0.9300 [0.9000, 0.9500]'
    """
    numbers = [f"{one:.{digits}f}" for one in likely or () if one is not None]
    return "{} [{}, {}]".format(*numbers) if numbers else ""


def verdict_lines(run: Run) -> Iterator[str]:
    """The verdict: for each dimension what the best system gives the groups instead of the baseline, and by how much.

    The best is chosen on the topics that it is shown for. Then come what loops add.
    """
    short = short_labels(run.measures)
    for one in findings(run):
        change = change_of(run, one)
        if change:
            yield str(change)
        elif one.dimension:
            yield in_line(f"{one.dimension}:")
        sure = f", {one.verdict or 'no significant difference'} ({one.p} after Holm)" if one.p else ""
        numbers = f"{short[one.best.measure]} {one.best.mean:.4f} instead of {one.baseline.mean:.4f}"
        tried = len(run.systems) - 1 - len(set(run.oracle_systems) - {run.baseline})
        best = f"the best of {tried} beside " if tried > 1 else "instead of "
        yield "  " + in_line(f"{one.best.system}, {best}{run.baseline}: {numbers}{sure}")
    yield from (in_line(str(one)) for one in run.loops)
