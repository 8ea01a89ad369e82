"""What the page says of an experiment on StereoSet or CrowS-Pairs: the numbers of all items together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fairagent.evaluate.run import Run
from fairagent.evaluate.stereotypes.sets import SetRow, set_rows
from fairagent.stereotypes.benchmark import NOTES, OVERALL


@dataclass(frozen=True, slots=True)
class ChoicesShown:
    """The section's content: (part, kind) -> a row a system, those of everything first; `way`: how it was found out."""

    way: str
    names: tuple[str, ...]
    places: Mapping[tuple[str, str], tuple[SetRow, ...]]
    notes: tuple[str, ...]


def choices(run: Run) -> ChoicesShown | None:
    """The section; None for other runs, and where no item has been scored under all systems."""
    rows = set_rows(run)
    if not rows:
        return None
    found = dict.fromkeys((row.part, row.kind) for row in rows if OVERALL in (row.part, row.kind))
    # Everything together first; within a part, its kinds keep their order.
    order = sorted(found, key=lambda place: place != (OVERALL, OVERALL))
    places = {place: tuple(row for row in rows if (row.part, row.kind) == place) for place in order}
    return ChoicesShown(run.way, tuple(rows[0].values), places, NOTES[run.choices])
