"""What systems give the groups on average, from the outcomes of a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairagent.evaluate.engine.outcome import Outcome
from fairagent.evaluate.engine.run import Run
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
