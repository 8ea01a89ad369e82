"""What must not go unnoticed in a run: how often each system served its users badly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from fairagent.alarms import GROUP_REMOVED
from fairagent.evaluate.engine.run import Run
from fairagent.filter.removals import removal_warnings
from fairagent.types import Group, Removal


def alarms_of(run: Run) -> list[str]:
    """A line for each system that has alarms, e.g. "agent: worse than the engine on 3 of 60".

    What a filter took from the groups is judged over all topics together, which says more than any one of them.
    """
    lines = []
    for system in run.systems:
        said = list(_said(run, system))
        lines += [f"{system}: {'; '.join(said)}"] if said else []
    return lines


def _said(run: Run, system: str) -> Iterator[str]:
    own = [outcome for outcome in run.answered if outcome.system == system]
    counts = Counter(what for outcome in own for what in dict.fromkeys(alarm.what for alarm in outcome.alarms))
    counts.pop(GROUP_REMOVED, None)
    yield from (f"{what} on {count} of {len(own)}" for what, count in sorted(counts.items()))
    lost: dict[Group, Removal] = {}
    for one in (removal for outcome in own for removal in outcome.removals):
        before = lost.get(one.group, Removal(one.group, 0.0, 0.0))
        lost[one.group] = Removal(one.group, before.seen + one.seen, before.removed + one.removed)
    yield from removal_warnings(tuple(lost.values()))
