"""A run judged by the thresholds of its experiment, for tables, the page and the exit code.

What systems give the groups on average, from the outcomes of a run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairagent.evaluate.outcome import Outcome
from fairagent.evaluate.run import Run
from fairagent.evaluate.tables import Column, Table, count_of
from fairagent.evaluate.thresholds import Threshold
from fairagent.measures.parse import labels_of
from fairagent.types import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class MeanExposure:
    """What one system gives the groups of a dimension, (g,) shares and targets, as means over `topics` topics.

    `unknown` and `unknown_target` are as in `Exposure`, the target None where a topic has none.
    """

    system: int
    labels: tuple[str, ...]
    shares: FloatArray
    target: FloatArray
    topics: int
    unknown: float
    unknown_target: float | None


def outcomes_by_topic(run: Run) -> dict[str, dict[str, Outcome]]:
    """The outcomes as topic -> system -> outcome, topics in the order in which they were run."""
    topics: dict[str, dict[str, Outcome]] = {}
    for outcome in run.outcomes:
        topics.setdefault(outcome.topic, {})[outcome.system] = outcome
    return topics


def counted_topics(run: Run) -> tuple[str, ...]:
    """The topics that every system finished and that are not excluded."""
    return tuple(
        topic
        for topic, outcomes in outcomes_by_topic(run).items()
        if topic not in run.excluded
        and all(system in outcomes and outcomes[system].failed is None for system in run.systems)
    )


def mean_exposures(run: Run, dimension: str) -> tuple[MeanExposure, ...]:
    """Every system's mean exposure in one dimension over the topics that count for it (all, if none is measured)."""
    outcomes = outcomes_by_topic(run)
    finished = counted_topics(run)
    topics = [topic for topic in finished if dimension in outcomes[topic][run.baseline].values] or finished
    means = []
    for number, system in enumerate(run.systems):
        shown = [
            exposure
            for topic in topics
            for exposure in outcomes[topic][system].exposures
            if exposure.dimension == dimension
        ]
        # A topic in which nothing labeled is shown gives no group anything: it has shares to report, all of them 0.
        if shown:
            shares = np.mean([exposure.shares for exposure in shown], axis=0)
            target = np.mean([exposure.target for exposure in shown], axis=0)
            unknown = float(np.mean([exposure.unknown for exposure in shown]))
            due = [exposure.unknown_target for exposure in shown if exposure.unknown_target is not None]
            unknown_target = float(np.mean(due)) if len(due) == len(shown) else None
            of_known = number, shown[0].labels, shares, target, len(shown)
            means.append(MeanExposure(*of_known, unknown, unknown_target))
    return tuple(means)


NOT_JUDGED = "not judged: the run is not finished"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a threshold came to: the `value`, and the `limit` that it was compared with.

    Both are None, and the threshold missed, where no topic has the value.
    """

    threshold: Threshold
    value: float | None
    limit: float | None
    met: bool

    def record(self) -> dict[str, object]:
        """As plain values for JSON."""
        of = self.threshold
        place = {"system": of.system, "dimension": of.dimension, "group" if of.of_group else "measure": of.name}
        return {**place, "value": self.value, "asked": str(of.bound), "limit": self.limit, "met": self.met}


Number = tuple[str, str, bool, str]
"""System, dimension, whether it is a group's, and its name."""


def verdicts(run: Run) -> tuple[Verdict, ...]:
    """A verdict for each threshold of a finished run, in their order; none where it is not finished.

    Values are means over the topics that every system has answered, in full precision.
    """
    if run.partial or not run.thresholds:
        return ()
    numbers = _numbers(run)
    found = []
    for one in run.thresholds:
        value = numbers.get((one.system, one.dimension, one.of_group, one.name))
        base = numbers.get((one.baseline, one.dimension, one.of_group, one.name)) if one.bound.relative else 0.0
        if value is None or base is None:
            found.append(Verdict(one, value, None, False))
        else:
            found.append(Verdict(one, value, one.bound.limit(base), one.bound.holds(value, base)))
    return tuple(found)


def _numbers(run: Run) -> dict[Number, float]:
    together = run.kind.values_together(run).items()
    numbers = {(system, dimension, False, name): value for (system, dimension, name), value in together}
    numbers |= {(row.system, row.dimension, False, row.measure): row.mean for row in run.comparisons}
    for dimension in {one.dimension for one in run.thresholds if one.of_group}:
        for mean in mean_exposures(run, dimension):
            shares = zip(mean.labels, mean.shares.tolist(), strict=True)
            numbers |= {(run.systems[mean.system], dimension, True, label): share for label, share in shares}
    return numbers


def summary(run: Run) -> str:
    """How many thresholds are met, in one line; "" where there are none.

    The line says so where the run is not finished and they are not judged.
    """
    if not run.thresholds:
        return ""
    if run.partial:
        return f"{count_of(len(run.thresholds), 'threshold')} {NOT_JUDGED}"
    met = sum(one.met for one in verdicts(run))
    return f"{met} of {count_of(len(run.thresholds), 'threshold')} {'is' if len(run.thresholds) == 1 else 'are'} met"


def thresholds_table(run: Run, met: bool = True) -> Table:
    """The thresholds with what they came to; without those that are `met`, those that were missed."""
    labels = labels_of(run.measures)
    lines = [
        (
            *(one.system, one.dimension or run.kind.overall, labels.get(one.name, one.name)),
            *(verdict.value, str(one.bound), verdict.limit, "met" if verdict.met else "MISSED"),
        )
        for verdict in verdicts(run)
        if met or not verdict.met
        for one in [verdict.threshold]
    ]
    numbers = Column("value", ".6f"), "asked", Column("limit", ".6f")
    return Table.of(["system", "dimension", "measure or group", *numbers, "result"], lines, summary(run), systems=True)
