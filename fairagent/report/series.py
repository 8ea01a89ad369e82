"""The numbers behind the plots, taken from a run: no drawing here."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fairagent.evaluate.engine.comparison import Comparison
from fairagent.evaluate.engine.exposures import counted_topics, outcomes_by_topic
from fairagent.evaluate.engine.outcome import Outcome
from fairagent.evaluate.engine.run import Run
from fairagent.report.names import is_kind, is_product
from fairagent.types import FloatArray

RELEVANCE = ""
"""The dimension of measures of relevance alone."""


@dataclass(frozen=True, slots=True, eq=False)
class GapPaths:
    """The gap of the list that the loop stands on after each retrieval, (topics, retrievals) in nats.

    A topic that stopped early keeps its last gap. `infinite` topics had a list without a labeled document, whose gap
    is infinite, and are left out.
    """

    system: int
    gaps: FloatArray
    infinite: int


def comparisons_of(run: Run, dimension: str) -> dict[tuple[str, str], Comparison]:
    """The comparisons in one dimension as (system, measure) -> comparison."""
    return {(c.system, c.measure): c for c in run.comparisons if c.dimension == dimension}


def main_measure(run: Run, dimension: str) -> str | None:
    """What a dimension is won by: the first product; without one the first AWRF; without one the first measure."""
    measured = {measure for _, measure in comparisons_of(run, dimension)}
    measures = [measure for measure in run.measures if measure in measured]
    products = [measure for measure in measures if is_product(measure)]
    fairness = [measure for measure in measures if is_kind(measure, "AWRF")]
    return next(iter([*products, *fairness, *measures]), None)


def gap_paths(run: Run) -> tuple[GapPaths, ...]:
    """The gaps of every system that retrieved more than once for some topic."""
    outcomes = outcomes_by_topic(run)
    topics = counted_topics(run)
    found = []
    for number, system in enumerate(run.systems):
        paths = [path for topic in topics if (path := _accepted(outcomes[topic][system]))]
        longest = max((len(path) for path in paths), default=0)
        if longest > 1:
            finite = [path + path[-1:] * (longest - len(path)) for path in paths if all(map(math.isfinite, path))]
            found.append(GapPaths(number, np.array(finite).reshape(len(finite), longest), len(paths) - len(finite)))
    return tuple(found)


def _accepted(outcome: Outcome) -> list[float]:
    gaps: list[float] = []
    for step in outcome.steps:
        gaps.append(step.gap if step.accepted or not gaps else gaps[-1])
    return gaps


def gains(run: Run, dimension: str, measure: str) -> dict[str, dict[str, float]]:
    """What each system gains over the baseline, topic by topic: system -> topic -> difference, where there is one.

    A gain is above 0 where the system is better, also where lower values are.
    """
    outcomes = outcomes_by_topic(run)
    found: dict[str, dict[str, float]] = {system: {} for system in run.systems if system != run.baseline}
    for topic in counted_topics(run):
        base = _value(outcomes[topic][run.baseline].values, dimension, measure)
        for system, of_system in found.items():
            value = _value(outcomes[topic][system].values, dimension, measure)
            if base is not None and value is not None:
                of_system[topic] = run.gain(measure, value, base)
    return found


def _value(values: Mapping[str, Mapping[str, float]], dimension: str, measure: str) -> float | None:
    return values.get(dimension, {}).get(measure)
