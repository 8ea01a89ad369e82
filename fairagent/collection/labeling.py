"""Labeling: how the values of columns become labels, and what to know of the labels before anything is measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from fairagent.collection.config import DimensionColumn
from fairagent.collection.faults import listed, shown
from fairagent.collection.groups import Groups, JoinedGroups
from fairagent.collection.labels import labels_of
from fairagent.collection.spellings import join_spellings
from fairagent.collection.table import GroupTable
from fairagent.errors import UsageError
from fairagent.settings import validate

Labeling = str | Mapping[str, str | Mapping[str, str | Sequence[str]]]
"""How values become labels: "join" for the spellings of all dimensions, or dimension -> "join" or value -> label (or a
list of labels, an empty one for none), as `map` of a collection file."""
JOIN = "join"
MANY_GROUPS = 12
SMALL_GROUP = 0.01
"""Of the documents that have a label."""


def labeled(
    columns: Mapping[str, DimensionColumn],
    labels: Labeling | None,
    cells: Callable[[str], Iterable[object]],
    known: Mapping[str, Collection[str]],
) -> tuple[dict[str, DimensionColumn], list[str]]:
    """The columns with the maps that `labels` gives, or that join the spellings in the `cells` of a dimension.

    And what is in doubt of the spellings that were joined.

    `known` are labels, by dimension, that are to be kept as they are spelled. A column that has a map keeps it under
    "join". Raises UsageError for a dimension that there is not, for two maps, and for what is no map.
    """
    if (isinstance(labels, str) and labels != JOIN) or not isinstance(labels, str | Mapping | None):
        raise UsageError(f"labels={shown(labels)}: expected {JOIN!r}, or dimension -> {JOIN!r} or value -> label")
    wanted = dict.fromkeys(columns, JOIN) if isinstance(labels, str) else dict[str, Any](labels or {})
    if strange := [name for name in wanted if name not in columns]:
        raise UsageError(f"labels: no dimension {strange[0]!r}; there are: {listed(list(columns)) or 'none'}")
    made, doubts = dict(columns), list[str]()
    for name, how in wanted.items():
        column = columns[name]
        if isinstance(how, Mapping):
            if column.map:
                raise UsageError(f"labels: the column of {name!r} has a `map` already; give one of the two")
            about = column.model_dump(exclude={"map"}) | {"map": dict(how)}
            made[name] = validate(DimensionColumn, about, f"labels.{name}")
        elif how != JOIN:
            raise UsageError(f"labels: {name!r} is {shown(how)}, expected {JOIN!r} or value -> label")
        elif not column.map:
            spelled = (*(column.labels or ()), *known.get(name, ()))
            spellings = join_spellings(counted(cells(name), column), spelled)
            made[name] = column.model_copy(update={"map": spellings.map})
            doubts += [f"{name!r}: {doubt}" for doubt in spellings.doubts]
    return made, doubts


def counted(cells: Iterable[object], column: DimensionColumn) -> Counter[str]:
    """How often each label is in these cells; what is no label is a fault for who reads the rows."""
    counts: Counter[str] = Counter()
    for cell in cells:
        try:
            labels = labels_of(cell, column)
        except ValueError:
            continue
        counts.update([labels] if isinstance(labels, str) else list(labels or ()))
    del counts[""]
    return counts


def label_notes(groups: Groups, remedy: str) -> list[str]:
    """What to know of the labels of all dimensions before exposure is measured by them.

    Spellings that look alike, with the `remedy` that joins them; a single document that has a label; and what
    `group_notes` says. Intersections have notes of their own.
    """
    notes = []
    parts = groups.parts if isinstance(groups, JoinedGroups) else (groups,)
    for part in [one for one in parts if isinstance(one, GroupTable)]:
        for dimension in part.dimensions:
            unknown, *known = part.shares(dimension).tolist()
            shares = {label: share for label, share in zip(part.labels(dimension), known, strict=True) if share}
            if joined := join_spellings(shares).map:
                notes.append(f"spellings of {dimension!r} that look like the same label: {joins(joined)}; {remedy}")
            if len(part) > 1 and round((1 - unknown) * len(part)) == 1:
                only = f"a single document of {len(part):,} has a label of {dimension!r} ({listed(list(shares))})"
                notes.append(f"{only}, so groups cannot be compared; is this the right column?")
            notes += group_notes(dimension, shares)
    return notes


def group_notes(dimension: str, sizes: Mapping[str, float]) -> list[str]:
    """What to know of groups of these sizes, in numbers or shares of documents.

    >>> for note in group_notes("gender", {"female": 99, "male": 100, "nonbinary": 1}):
    ...     print(note)
    less than 1 % of the labeled documents are in these groups of 'gender', so read little into them: nonbinary 0.5 %
    """
    total, notes = sum(sizes.values()), []
    ordered = sorted(sizes, key=lambda label: -sizes[label])
    named = {label: f"{label} {100 * sizes[label] / total:.2g} %" for label in ordered}
    if len(sizes) > MANY_GROUPS:
        there = listed(list(named.values()))
        notes.append(f"{dimension!r} has {len(sizes):,} groups, too many for one page to show each: {there}")
    if small := [text for label, text in named.items() if sizes[label] < SMALL_GROUP * total]:
        few = f"less than 1 % of the labeled documents are in these groups of {dimension!r}"
        notes.append(f"{few}, so read little into them: {listed(small)}")
    return notes


def joins(map: Mapping[str, Sequence[str]]) -> str:
    """A map of spellings in one line.

    >>> joins({"F": ("female",), "Female": ("female",), "N/A": ()})
    'F, Female -> female; N/A -> no label'
    """
    sources: dict[str, list[str]] = {}
    for value, labels in map.items():
        sources.setdefault(" and ".join(labels) or "no label", []).append(value)
    return "; ".join(f"{listed(values, 8)} -> {label}" for label, values in sources.items())
