"""Who chooses a target: the call or the settings, the collection, its population; else the error of `open_choice`.

And the notes on targets that are estimated from the engine's own list: they repeat what it favors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fairagent.collection.collection import Collection
from fairagent.collection.records import listed
from fairagent.collection.targets import Target, make_target
from fairagent.errors import DataError, UsageError
from fairagent.measures import known_part
from fairagent.settings.faults import no_such
from fairagent.types import FloatArray, Ranking
from fairagent.types.clean import in_line
from fairagent.types.common import FOLLOWS, Alarm

KINDS = ("uniform", "corpus", "estimated")
"""The kinds that every collection with labels has, and that an open choice is shown with."""
MOST_GROUPS = 12
"""Groups of a dimension that are named; the others are counted."""
LONGEST_NAME = 32
"""Characters of a group's name in a line of 80."""


def make_targets(
    chosen: Any, dimensions: Sequence[str], collection: Collection, topic: str, ranking: Ranking
) -> tuple[Target, ...]:
    """The targets of `dimensions` for one topic id; `chosen` is what the call or the settings say, None: nothing.

    `ranking` serves the targets that estimate. Raises UsageError, with what each choice would mean here, where a
    dimension has no target; else what `make_target` does.
    """
    there = collection.groups.dimensions
    if isinstance(chosen, Mapping) and (strange := [name for name in chosen if name not in there]):
        raise UsageError(f"a target is set for what is none: {no_such('dimension', in_line(strange[0]), there)}")
    kinds = {dimension: target_choice(chosen, dimension, collection) for dimension in dimensions}
    if lacking := [dimension for dimension, kind in kinds.items() if kind is None]:
        raise UsageError(open_choice(lacking, collection, topic, ranking))
    return tuple(make_target(kind, dimension, collection, topic, ranking) for dimension, kind in kinds.items())


def target_choice(chosen: Any, dimension: str, collection: Collection) -> Any:
    """The target of one dimension, as `make_target` takes it; None where nobody chose one.

    What is `chosen`, in a call or the settings, beats the collection's own `target`, and this its population, which
    makes `trec-estimated`.
    """
    for targets in (chosen, collection.target):
        if (kind := targets.get(dimension) if isinstance(targets, Mapping) else targets) is not None:
            return kind
    return "trec-estimated" if dimension in collection.population else None


def open_choice(dimensions: Sequence[str], collection: Collection, topic: str, ranking: Ranking) -> str:
    """What has to be chosen: the shares of the groups under each of `KINDS`, and how to say it, in lines of 80."""
    lines = [
        f"no target is set for {in_line(listed(dimensions))}.",
        "How much of the exposure each group should get is for you to choose. Here it is",
        "",
    ]
    for dimension in dimensions:
        lines += [_row(dimension, KINDS), *_rows(dimension, collection, topic, ranking), ""]
    first = in_line(dimensions[0])
    label = in_line(next(iter(collection.groups.labels(dimensions[0])), "GROUP"))
    lines += [
        "`estimated` follows the engine's own list for this query, and its bias with it.",
        "Choose one of these, or shares of your own, which add up to 1:",
        "  command line         --target uniform",
        f"                       --target '{{{first}: {{{label}: 0.5, ...}}}}'",
        '  Python               target="uniform" in the call',
        "  settings             target: uniform",
        f"  collection's file    target: {{{first}: uniform}}",
    ]
    return "\n".join(lines)


def _rows(dimension: str, collection: Collection, topic: str, ranking: Ranking) -> list[str]:
    labels = collection.groups.labels(dimension)
    if not labels:
        return ["    (no document has a label: search without this dimension)"]
    columns: list[FloatArray | None] = []
    for kind in KINDS:
        try:
            columns.append(make_target(kind, dimension, collection, topic, ranking).shares)
        except (DataError, UsageError):
            columns.append(None)
    places = list(range(len(labels)))
    if len(places) > MOST_GROUPS:
        known = next((column for column in columns[1:] if column is not None), np.zeros(len(labels)))
        places = sorted(np.argsort(-known, kind="stable")[:MOST_GROUPS].tolist())
    rows = [
        _row(f"  {labels[place]}", ["-" if column is None else f"{column[place]:.1%}" for column in columns])
        for place in places
    ]
    return rows + [f"    and {len(labels) - len(places)} more"] * (len(places) < len(labels))


def _row(name: str, cells: Sequence[str]) -> str:
    name = in_line(name)
    name = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 3]}..."
    return f"  {name:<{LONGEST_NAME}}" + "".join(f"{cell:>12}" for cell in cells)


LOW = 0.5
"""A group whose target is below this share of its share of all documents is named."""


def following(targets: tuple[Target, ...]) -> tuple[str, ...]:
    """A note on the targets that follow the engine's own list."""
    names = [f"{one.dimension} ({one.source})" for one in targets if one.follows]
    if not names:
        return ()
    what = "target of {} follows" if len(names) == 1 else "targets of {} follow"
    return (f"the {what.format(' and '.join(names))} the engine's own list for this query",)


def below_corpus(targets: tuple[Target, ...], collection: Collection) -> tuple[Alarm, ...]:
    """One alarm for each dimension in which such a target is far below what the groups have of all documents."""
    alarms = []
    for target in (one for one in targets if one.follows):
        try:
            shares = known_part(collection.groups.shares(target.dimension))
        except UsageError:
            # Groups in metadata have no shares of all documents.
            continue
        rows = zip(target.labels, target.shares.tolist(), shares.tolist(), strict=True)
        low = [f"{label} {due:.1%} (of all documents {share:.1%})" for label, due, share in rows if due < LOW * share]
        if low:
            alarms.append(Alarm(FOLLOWS, f"{target.source} in {target.dimension} gives {', '.join(low)}"))
    return tuple(alarms)
