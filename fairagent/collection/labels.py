"""Group labels: read from columns or fields, mapped, and what to know of them before anything is measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fairagent.collection.config import DimensionColumn, GroupsFile, TypeColumn
from fairagent.collection.forms import records
from fairagent.collection.groups import Groups, JoinedGroups
from fairagent.collection.records import Faults, Record, checked_id, field_reader, listed, shown
from fairagent.collection.spellings import join_spellings
from fairagent.collection.table import GroupTable, Labels, TableBuffer
from fairagent.errors import UsageError
from fairagent.settings import validate
from fairagent.settings.faults import no_such
from fairagent.types import UNKNOWN
from fairagent.types.clean import label_text

Labeling = str | Mapping[str, str | Mapping[str, str | Sequence[str]]]
"""How values become labels: "join" for the spellings of all dimensions, or dimension -> "join" or value -> label (or a
list of labels, an empty one for none), as `map` of a collection file."""
JOIN = "join"
MANY_GROUPS = 12
SMALL_GROUP = 0.01
"""Of the documents that have a label."""


class LabelReader:
    """Reads the dimensions of a record, and notes what is wrong with a column over all records."""

    def __init__(self, dimensions: Mapping[str, DimensionColumn]) -> None:
        self.dimensions = dimensions
        self.columns = {name: column.column or name for name, column in dimensions.items()}
        rules = {name: column.applies_to for name, column in dimensions.items()}
        self.types = {name: rule for name, rule in rules.items() if isinstance(rule, TypeColumn)}
        self.of_all = [name for name, rule in rules.items() if rule == "all"]
        self.missing = set(dimensions)
        self.missing_types, self.unused_types = set(self.types), set(self.types)
        self.value_types = {name: dict[str, tuple[object, int]]() for name in dimensions}
        self.unmapped = {name: Counter[str]() for name, column in dimensions.items() if column.map}
        self.fields: tuple[str, ...] = ()

    def buffer(self) -> TableBuffer:
        """An empty buffer for these dimensions."""
        columns = self.dimensions.items()
        return TableBuffer(
            {name: column.all_labels for name, column in columns},
            [name for name, column in columns if not column.normalize],
            [name for name, column in columns if column.predicted],
            [*self.types, *self.of_all],
        )

    def read(self, record: Record, number: int = 0) -> dict[str, Labels]:
        """The labels of one record, in this line; ValueError, naming the dimension, for what is no label."""
        if self.missing:
            self.missing -= {name for name in self.missing if self.columns[name] in record}
            self.fields = self.fields or tuple(record)
        labels: dict[str, Labels] = {}
        for name, column in self.dimensions.items():
            value = record.get(self.columns[name])
            try:
                labels[name] = labels_of(value, column)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
            if name in self.unmapped:
                # What a map makes nothing of, until it makes something of a value.
                if labels[name]:
                    del self.unmapped[name]
                elif value not in (None, "", []):
                    self.unmapped[name][str(value).strip()] += 1
            types = self.value_types[name]
            for part in () if column.labels else value if isinstance(value, list) else (value,):
                # The first value of each type; a text that is a number may stand among texts as among numbers.
                if isinstance(part, str) and "text" not in types:
                    text = part.strip()
                    if text and not text.lstrip("-").isdecimal() and text not in column.map:
                        types["text"] = part, number
                elif isinstance(part, int | float) and label_text(part) not in column.map:
                    types.setdefault("true or false" if isinstance(part, bool) else "whole numbers", (part, number))
        return labels

    def read_types(self, record: Record) -> list[str]:
        """The dimensions of whose type the record's document is; ValueError where a value is no text or list."""
        self.missing_types -= {name for name in self.missing_types if self.types[name].column in record}
        of_type = []
        for name, type in self.types.items():
            value = record.get(type.column)
            # What a JSON file denies is no value like any other.
            if value is None or (value is False and type.values is None):
                continue
            texts = [label_text(part).strip() for part in (value if isinstance(value, list) else [value])]
            if any(text in type.values if type.values else text for text in texts):
                of_type.append(name)
        self.unused_types.difference_update(of_type)
        return [*of_type, *self.of_all]

    def check(self, path: Path, faults: Faults) -> None:
        """Add an error for each column that no record had (one may lack it), and each type that no record is of."""
        for name in sorted(self.missing) if self.fields else ():
            faults.add(path, 1, f"dimension {name!r}: {no_such('column', self.columns[name], self.fields)}")
        for name, types in self.value_types.items():
            if len(types) > 1:
                first = listed([f"{type} ({shown(one)}, {path.name}:{line})" for type, (one, line) in types.items()])
                message = f"the labels of {name!r} are of mixed types: {first}"
                faults.add(path, None, f"{message}; say with `map` which label each value is")
        for name, unmapped in self.unmapped.items():
            if unmapped:
                values = listed([f"{shown(value)} ({count:,})" for value, count in unmapped.most_common()], 8)
                faults.add(path, None, f"the `map` of dimension {name!r} leaves no label: it makes nothing of {values}")
        for name in sorted(self.unused_types) if self.fields else ():
            column, values = self.types[name].column, listed(self.types[name].values or ("anything",))
            if name in self.missing_types:
                faults.add(path, 1, f"the type of dimension {name!r}: {no_such('column', column, self.fields)}")
            else:
                message = f"no document is of the type of dimension {name!r}: {column!r} never says {values}"
                faults.add(path, None, message)


def read_groups(path: Path, block: GroupsFile, faults: Faults) -> GroupTable | None:
    """The table of one groups file; None where it has faults, which are added to `faults`."""
    reader, read_id, before = LabelReader(block.dimensions), field_reader(block.id), faults.count
    buffer = reader.buffer()
    for number, record in records(path, block, faults):
        try:
            labels, types = reader.read(record, number), reader.read_types(record)
            buffer.add(checked_id(read_id(record), "document"), labels, number, types)
        except ValueError as error:
            faults.add(path, number, str(error))
    if buffer.lines or faults.count == before:
        buffer.check(path, faults)
    reader.check(path, faults)
    return GroupTable(*buffer.finish()) if faults.count == before else None


def labels_of(value: object, column: DimensionColumn) -> Labels:
    """The labels in one cell; ValueError where it holds no text, whole number, list or mapping."""
    if value is None or (isinstance(value, str) and not value):
        return None
    known, rest = column.labels or (), column.rest
    if isinstance(value, Mapping):
        labels = _mapped_weights(value, column) if column.map else value
        if rest is None:
            return labels
        others = {label: (rest,) for label in labels if label not in (*known, UNKNOWN)}
        return _mapped_weights(labels, column.model_copy(update={"map": others}))
    if isinstance(value, str) and column.separator is None and not column.map:
        label = value.strip()
        return label if rest is None or not label or label in known else rest
    if isinstance(value, str):
        parts = value.split(column.separator) if column.separator else [value]
    else:
        parts = [label_text(part) for part in (value if isinstance(value, list) else [value])]
    mapped = [label for part in parts for label in column.map.get(part.strip(), (part.strip(),))]
    if rest is None:
        return mapped
    return list(dict.fromkeys(label if label in known else rest for label in mapped if label))


def _mapped_weights(weights: Mapping[str, float], column: DimensionColumn) -> dict[str, float]:
    """The weights under their new labels, added up; a label replaced by several is split evenly.

    A label that is replaced by none is left out, but for a probability, which then is that of the unknown.
    """
    mapped: dict[str, float] = {}
    for label, weight in weights.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float):
            raise ValueError(f"the weight of {shown(label)} is {shown(weight)}, expected a number >= 0")
        new = column.map.get(label, (label,)) or ((UNKNOWN,) if column.predicted else ())
        for name in new:
            mapped[name] = mapped.get(name, 0.0) + weight / len(new)
    return mapped


def labeled(
    columns: Mapping[str, DimensionColumn],
    labels: Labeling | None,
    cells: Callable[[str], Iterable[object]],
    known: Mapping[str, Collection[str]],
) -> tuple[dict[str, DimensionColumn], list[str]]:
    """The columns with the maps that `labels` gives, or that join the spellings in the `cells` of a dimension.

    And what is in doubt of the spellings that were joined. `known` are labels, by dimension, whose spelling stays. A
    column that has a map retains it under "join". Raises UsageError for a dimension that there is not, for two maps,
    and for what is no map.
    """
    if (isinstance(labels, str) and labels != JOIN) or not isinstance(labels, str | Mapping | None):
        raise UsageError(f"labels={shown(labels)}: expected {JOIN!r}, or dimension -> {JOIN!r} or value -> label")
    wanted = dict.fromkeys(columns, JOIN) if isinstance(labels, str) else dict[str, Any](labels or {})
    made, doubts = dict(columns), list[str]()
    for name, how in wanted.items():
        if name not in columns:
            raise UsageError(f"labels: {no_such('dimension', name, columns)}")
        column = columns[name]
        if isinstance(how, Mapping):
            if column.map:
                raise UsageError(f"labels: the column of {name!r} has a `map` already; give one of the two")
            about = column.model_dump(exclude={"map"}) | {"map": dict(how)}
            made[name] = validate(DimensionColumn, about, f"labels.{name}")
        elif how != JOIN:
            raise UsageError(f"labels: {name!r} is {shown(how)}, expected {JOIN!r} or value -> label")
        elif not column.map:
            counts: Counter[str] = Counter()
            for cell in cells(name):
                # What is no label is an error when the rows are read.
                with suppress(ValueError):
                    found = labels_of(cell, column)
                    counts.update([found] if isinstance(found, str) else list(found or ()))
            del counts[""]
            spellings = join_spellings(counts, (*(column.labels or ()), *known.get(name, ())))
            made[name] = column.model_copy(update={"map": spellings.map})
            doubts += [f"{name!r}: {doubt}" for doubt in spellings.doubts]
    return made, doubts


def label_notes(groups: Groups, remedy: str) -> list[str]:
    """What to know of the labels of all dimensions before exposure is measured by them.

    Spellings that look alike, with the `remedy` that joins them; a single document that has a label; and what
    `group_notes` says. Intersections have notes of their own.
    """
    notes = []
    for part in groups.parts if isinstance(groups, JoinedGroups) else (groups,):
        for dimension in part.dimensions if isinstance(part, GroupTable) else ():
            assert isinstance(part, GroupTable)
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
