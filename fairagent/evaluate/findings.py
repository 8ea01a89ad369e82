"""What a run has found: in each dimension the best system beside the baseline, and the verdict in a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple, dataclass
from typing import Any, Literal

import numpy as np

from fairagent.evaluate.comparison import Comparison, bootstrap_intervals, paired_randomization, smallest_p, tested
from fairagent.evaluate.run import MeanExposure, Run
from fairagent.evaluate.tables import p_phrase
from fairagent.measures.base import seeded
from fairagent.measures.parse import is_measure, leading_measure, short_labels
from fairagent.measures.unawareness import mean_under_error
from fairagent.types import FloatArray, exposure_rows
from fairagent.types.change import ExposureChange, Verdict, as_verdict, exposure_change, seen_change
from fairagent.types.clean import in_line
from fairagent.types.common import counted

RELEVANCE = ""
"""The dimension of measures of relevance alone."""


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
    """A + or - for a system that is better or worse than the baseline (`tested`)."""
    return {"better": "+", "worse": "-", "": ""}[_tested(run, row)]


def _tested(run: Run, row: Comparison) -> Literal["better", "worse", ""]:
    difference = None if row.measure in run.neutral else row.difference
    return tested(row.randomization_holm, difference and run.gain(row.measure, difference))


@dataclass(frozen=True, slots=True)
class Tested:
    """The difference of a system from the baseline over `topics` topics, and what its test says (`tested`).

    `low` and `high` are the ends of its 95 % bootstrap interval, for which topics are resampled. `p` is that of the
    randomization test (`corrected`: after Holm over the systems), `least` the smallest that it can say.
    """

    measure: str
    label: str
    difference: float
    low: float
    high: float
    topics: int
    p: float | None
    says: Literal["better", "worse", ""]
    least: float = 0.0
    corrected: bool = True

    def __str__(self) -> str:
        found = f"{self.label} {self.difference:+.4f}"
        if self.p is None:
            return f"{found}, {counted(self.topics, 'topic')}: not tested"
        p = f"{p_phrase(self.p, self.least)}{' after Holm' * self.corrected}"
        return f"{found}, 95 % interval {self.low:+.4f} to {self.high:+.4f}, {p}"

    @property
    def fairness(self) -> Verdict:
        """What it says of a measure of fairness."""
        words: dict[str, Verdict] = {"better": "fairer", "worse": "less fair"}
        return words.get(self.says, "no measurable difference")


def tested_difference(run: Run, row: Comparison) -> Tested:
    """The paired test of a system, not the baseline, by one measure."""
    of_topic = run.by_topic
    differences = [
        of_topic[topic][row.system].values[row.dimension][row.measure] - base[row.measure]
        for topic in run.counted_topics
        if row.measure in (base := of_topic[topic][run.baseline].values.get(row.dimension, {}))
    ]
    ends = _interval(np.array(differences), run.kind.seed, row.dimension, row.measure)
    about = row.measure, short_labels(run.measures)[row.measure], float(row.difference or 0.0), *ends, row.topics
    return Tested(*about, row.randomization_holm, _tested(run, row), smallest_p(row.topics) * (len(run.systems) - 1))


def paired(measure: str, differences: FloatArray, dimension: str) -> Tested:
    """The paired test of topics' differences (n,), n >= 2, where nothing else is tested beside it; higher is better."""
    (p,) = paired_randomization(differences[None], seeded(0, "randomization", dimension, measure))
    mean, topics = float(differences.mean()), len(differences)
    about = measure, measure, mean, *_interval(differences, 0, dimension, measure), topics
    return Tested(*about, p, tested(p, mean), smallest_p(topics), corrected=False)


def _interval(differences: FloatArray, seed: int, *names: str) -> tuple[float, float]:
    """The ends of the 95 % interval of the mean of topics' differences (n,), n >= 1."""
    low, high = bootstrap_intervals(differences[None], seeded(seed, "difference", *names))
    return float(low[0]), float(high[0])


@dataclass(frozen=True, slots=True)
class Finding:
    """The best system without a look at the judgments beside the baseline, by the `main_measure` and by `others`.

    `test` is of the main measure, `fairness` of the first AWRF of a dimension, or else of its first measure of groups
    alone; None where there is none.
    """

    dimension: str
    best: Comparison
    baseline: Comparison
    test: Tested
    fairness: Tested | None
    others: tuple[tuple[Comparison, Comparison], ...]
    exposures: tuple[MeanExposure, MeanExposure] | None

    def record(self) -> dict[str, Any]:
        """What is found as plain values, with the verdict in words."""
        tests = {"test": asdict(self.test), "fairness": self.fairness and asdict(self.fairness)}
        verdict = self.fairness.fairness if self.fairness and self.fairness.p is not None else None
        return {"dimension": self.dimension, "system": self.best.system, "verdict": verdict, **tests}


def findings(run: Run) -> tuple[Finding, ...]:
    """One finding a dimension in which the baseline and another system that saw no judgments were measured."""
    every: tuple[Finding, ...] = run.memo.get(
        "findings", lambda: tuple(finding for dimension in run.compared_in if (finding := _finding(run, dimension)))
    )
    return every


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
    of_groups = [
        row
        for row in (best, *(own for own, _ in pairs))
        if dimension and row.dimension == dimension and row.measure not in run.neutral and "*" not in row.measure
    ]
    fairness = next((row for row in of_groups if is_measure(row.measure, "AWRF")), next(iter(of_groups), None))
    return Finding(
        dimension,
        best,
        compared[run.baseline, measure],
        tested_difference(run, best),
        tested_difference(run, fairness) if fairness else None,
        tuple(pairs),
        (exposures[run.baseline], exposures[best.system]) if both else None,
    )


def change_of(run: Run, finding: Finding) -> ExposureChange | None:
    """What the best system changes for the groups, as means over the topics; None where no exposure was measured.

    The verdict is that of the test of fairness; a single topic can only be looked at (`seen_change`).
    """
    if finding.exposures is None:
        return None
    before, after = map(exposure_rows, finding.exposures)
    about: dict[str, Any] = {"source": run.targets.get(finding.dimension, "").partition(" ")[0]}
    if (test := finding.fairness) and test.p is None:
        about["verdict"] = seen_change(before, after, -run.gain(test.measure, test.difference))
    elif test:
        about |= {"verdict": test.fairness, "test": str(test)}
    return exposure_change(finding.dimension, before, after, **about)


def under_label_error(run: Run, dimension: str) -> dict[str, tuple[float, float, float]]:
    """System -> mean AWRF of made labels and the ends of its interval (`mean_under_error`); empty without any."""
    of_system: dict[str, dict[str, tuple[float, float, float, float] | None]] = {system: {} for system in run.systems}
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
            intervals[system] = astuple(mean_under_error(np.array(likely)))
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
        change, test = change_of(run, one), one.test
        if change:
            yield str(change)
        elif one.fairness and one.fairness.p is not None:
            yield in_line(as_verdict(one.dimension, one.fairness.fairness, str(one.fairness)))
        elif one.dimension:
            yield in_line(f"{one.dimension}:")
        sure = "" if test.p is None else f", {test.says or 'no measurable difference'} ({test})"
        numbers = f"{short[one.best.measure]} {one.best.mean:.4f} instead of {one.baseline.mean:.4f}"
        tried = len(run.systems) - 1 - len(set(run.oracle_systems) - {run.baseline})
        best = f"the best of {tried} beside " if tried > 1 else "instead of "
        yield "  " + in_line(f"{one.best.system}, {best}{run.baseline}: {numbers}{sure}")
    yield from (in_line(str(one)) for one in run.loops)
