"""What the loop of each system adds: the same system without it runs beside the others, in no table and in no test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairagent.evaluate.comparison import bootstrap_intervals, by_query
from fairagent.evaluate.outcome import Outcome
from fairagent.evaluate.plan import Plan, SystemPlan
from fairagent.measures.base import seeded
from fairagent.measures.parse import leading_measure, short_labels
from fairagent.settings import Without
from fairagent.types.common import counted


@dataclass(frozen=True, slots=True)
class LoopGain:
    """By how much a system is better than itself without its loop, by the measure that the experiment is won by.

    `gain` is the mean over pairs of topic and dimension, `low` and `high` its 95 % interval, for which topics are
    resampled. `other` is the system without the loop, "" where the experiment does not name it.
    """

    system: str
    other: str
    measure: str
    gain: float
    low: float
    high: float
    topics: int
    pairs: int

    def __str__(self) -> str:
        if self.low <= 0 <= self.high:
            found = f"adds nothing measurable here ({self.measure} {self.gain:+.3f}"
        else:
            found = f"{f'adds +{self.gain:.3f}' if self.gain > 0 else f'costs {-self.gain:.3f}'} ({self.measure}"
        pairs = f", {self.pairs:,} pairs of topic and dimension" if self.pairs > self.topics else ""
        return (
            f"{self.system}: the loop {found}, 95 % interval {self.low:+.3f} to {self.high:+.3f}; "
            f"{counted(self.topics, 'topic')}{pairs}{self.other and f'; against {self.other}'})"
        )


def without_loops(systems: Mapping[str, SystemPlan]) -> dict[str, SystemPlan]:
    """What runs beside `systems`: those with a loop without it, but for what is one of them or asks a model itself."""
    beside: dict[str, SystemPlan] = {}
    for name, system in systems.items():
        if (own := _without_loop(system)) and not own.asks and not _found(own, {**systems, **beside}):
            own_name = f"{name}, no loop"
            while own_name in systems:
                own_name += ", again"
            beside[own_name] = own
    return beside


def loop_gains(plan: Plan, outcomes: Mapping[tuple[str, str], Outcome], topics: Sequence[str]) -> Iterator[LoopGain]:
    """What each loop adds on those of the `topics` that both systems have answered, where they are two or more."""
    by_name = {one.name: one for one in plan.experiment.measured(plan.dimensions)}
    measure = leading_measure(plan.measures)
    if measure is None or by_name[measure].neutral:
        return
    lower = by_name[measure].lower_is_better
    label = short_labels(plan.measures)[measure] + (", less is better" if lower else "")
    for name, system in plan.systems.items():
        own = _without_loop(system)
        other = own and _found(own, plan.all_systems)
        if not other:
            continue
        of_topics, differences = [], []
        for topic in topics:
            with_it, without = outcomes[topic, name], outcomes.get((topic, other))
            for dimension, values in with_it.values.items():
                if measure in values and without and measure in without.values.get(dimension, {}):
                    of_topics.append(topic)
                    differences.append(values[measure] - without.values[dimension][measure])
        sums, counts = by_query(np.array([differences]) * (-1 if lower else 1), of_topics)
        if len(counts) > 1:
            low, high = bootstrap_intervals(sums, seeded(plan.experiment.seed, "loop", measure), counts)
            found = float(sums.sum() / counts.sum()), float(low[0]), float(high[0]), len(counts), len(of_topics)
            yield LoopGain(name, other if other in plan.systems else "", label, *found)


def _without_loop(system: SystemPlan) -> SystemPlan | None:
    """The same system without its loop; None where it has none."""
    if not system.settings.loops:
        return None
    plain = system.model_copy(update={"settings": system.settings.model_copy(update={"loop": Without()})})
    return plain.model_copy(update={"asks": plain.searching_with})


def _found(system: SystemPlan, systems: Mapping[str, SystemPlan]) -> str:
    """The name of the one that is set as `system` is, by whichever profile; "" where there is none."""
    settings = system.settings.model_dump(exclude={"profile"})
    same = (name for name, one in systems.items() if one.settings.model_dump(exclude={"profile"}) == settings)
    return next(same, "")
