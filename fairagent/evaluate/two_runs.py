"""Two runs side by side: each system that both have, over the topics that it has answered in both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fairagent.evaluate.comparison import Comparison, compare
from fairagent.evaluate.fingerprint import changes
from fairagent.evaluate.outcome import Outcome
from fairagent.evaluate.run import Run, lower_is_better

LEFT, RIGHT = "left", "right"


@dataclass(frozen=True, slots=True)
class Beside:
    """One system by one measure in two runs: `right` is compared to `left`, over the same topics (`Comparison`)."""

    system: str
    left: Comparison
    right: Comparison


def side_by_side(left: Run, right: Run) -> tuple[Beside, ...]:
    """Every system of both runs by every measure of both, in the order of the left run.

    Over the topics that the system has answered in both, that neither run excludes and the measure has a value for in
    both; a measure without any is left out. p-values are those of two runs, not corrected for how many are looked at.
    """
    found: list[Beside] = []
    sides = {LEFT: _answers(left), RIGHT: _answers(right)}
    lower = lower_is_better(left.kind, left.dimensions)
    for system in left.systems:
        if system not in right.systems:
            continue
        both = {
            (topic, side): outcome
            for side, answers in sides.items()
            for (topic, name), outcome in answers.items()
            if name == system
        }
        topics = [topic for topic, side in both if side == LEFT and (topic, RIGHT) in both]
        for dimension, measure in _columns(left, right):
            counted = [
                topic
                for topic in topics
                if all(measure in both[topic, side].values.get(dimension, {}) for side in sides)
            ]
            rows = compare(both, counted, (LEFT, RIGHT), [(dimension, measure)], left.kind.seed, lower)
            found += [Beside(system, *rows)] if rows else []
    return tuple(found)


def differences(left: Run, right: Run) -> list[str]:
    """What the systems of both runs were made from, value by value where it differs ("was" the left one)."""
    before, now = ({"systems": run.provenance["systems"]} for run in (left, right))
    return changes(before, now)


def _columns(left: Run, right: Run) -> list[tuple[str, str]]:
    dimensions = ("", *(name for name in left.dimensions if name in right.dimensions))
    return [(dimension, name) for dimension in dimensions for name in left.measures if name in right.measures]


def _answers(run: Run) -> Mapping[tuple[str, str], Outcome]:
    return {(one.topic, one.system): one for one in run.answered if one.failed is None}
