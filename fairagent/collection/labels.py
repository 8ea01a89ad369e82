"""Reading group labels from table columns or JSON fields."""

from collections.abc import Mapping
from pathlib import Path

from fairagent.collection.config import DimensionColumn, GroupsFile, TypeColumn
from fairagent.collection.faults import Faults, listed, shown
from fairagent.collection.forms import records
from fairagent.collection.records import Record, checked_id, field_reader
from fairagent.collection.table import GroupTable
from fairagent.collection.table_buffer import Labels, TableBuffer
from fairagent.types import UNKNOWN


class LabelReader:
    """Reads the dimensions of a record, and keeps track of columns that no record has."""

    def __init__(self, dimensions: Mapping[str, DimensionColumn]) -> None:
        self.dimensions = dimensions
        self.columns = {name: column.column or name for name, column in dimensions.items()}
        rules = {name: column.applies_to for name, column in dimensions.items()}
        self.types = {name: rule for name, rule in rules.items() if isinstance(rule, TypeColumn)}
        self.of_all = [name for name, rule in rules.items() if rule == "all"]
        self.missing = set(dimensions)
        self.missing_types, self.nobody = set(self.types), set(self.types)
        self.fields: tuple[str, ...] = ()

    def buffer(self) -> TableBuffer:
        """An empty buffer for these dimensions."""
        return TableBuffer(
            {name: column.labels for name, column in self.dimensions.items()},
            [name for name, column in self.dimensions.items() if not column.normalize],
            [name for name, column in self.dimensions.items() if column.predicted],
            [*self.types, *self.of_all],
        )

    def read(self, record: Record) -> dict[str, Labels]:
        """The labels of one record; ValueError where a value is no label, list or mapping."""
        if self.missing:
            self.missing -= {name for name in self.missing if self.columns[name] in record}
            self.fields = self.fields or tuple(record)
        return {name: labels_of(record.get(self.columns[name]), column) for name, column in self.dimensions.items()}

    def read_types(self, record: Record) -> list[str]:
        """The dimensions of whose type the record's document is; ValueError where a value is no text or list."""
        self.missing_types -= {name for name in self.missing_types if self.types[name].column in record}
        found = [name for name, type in self.types.items() if _is_of(record.get(type.column), type)]
        self.nobody.difference_update(found)
        return [*found, *self.of_all]

    def check(self, path: Path, faults: Faults) -> None:
        """Add a fault for each column that no record had (one may lack it), and each type that no record is of."""
        for name in sorted(self.missing) if self.fields else ():
            there = listed(self.fields)
            faults.add(path, 1, f"no column {self.columns[name]!r} for dimension {name!r}; there are: {there}")
        for name in sorted(self.missing_types) if self.fields else ():
            column, there = self.types[name].column, listed(self.fields)
            faults.add(path, 1, f"no column {column!r} for the type of dimension {name!r}; there are: {there}")
        for name in sorted(self.nobody - self.missing_types) if self.fields else ():
            column, values = self.types[name].column, listed(self.types[name].values or ("anything",))
            faults.add(path, None, f"no document is of the type of dimension {name!r}: {column!r} never says {values}")


def read_groups(path: Path, block: GroupsFile, faults: Faults) -> GroupTable | None:
    """The table of one groups file; None where it has faults, which are added to `faults`."""
    reader = LabelReader(block.dimensions)
    buffer = reader.buffer()
    read_id = field_reader(block.id)
    before = faults.count
    for number, record in records(path, block, faults):
        try:
            labels, types = reader.read(record), reader.read_types(record)
            buffer.add(checked_id(read_id(record), "document"), labels, number, types)
        except ValueError as error:
            faults.add(path, number, str(error))
    if buffer.lines or faults.count == before:
        buffer.check(path, faults)
    reader.check(path, faults)
    return GroupTable(*buffer.finish()) if faults.count == before else None


def labels_of(value: object, column: DimensionColumn) -> Labels:
    """The labels in one cell; ValueError where it holds no text, whole number, list or mapping."""
    if value is None or value == "":
        return None
    if isinstance(value, Mapping):
        return _mapped_weights(value, column) if column.map else value
    if isinstance(value, str) and column.separator is None and not column.map:
        return value.strip()
    if isinstance(value, str):
        parts = value.split(column.separator) if column.separator else [value]
    else:
        parts = [_text(part) for part in (value if isinstance(value, list) else [value])]
    labels = [part.strip() for part in parts]
    return [label for part in labels for label in column.map.get(part, (part,))]


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


def _is_of(value: object, type: TypeColumn) -> bool:
    """Whether the value says that its document is of the type: one of the type's values, or any where it has none."""
    # What a JSON file denies is no value like any other.
    if value is None or (value is False and type.values is None):
        return False
    texts = [_text(part).strip() for part in (value if isinstance(value, list) else [value])]
    return any(text in type.values if type.values else text for text in texts)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int):
        return str(value)
    raise ValueError(f"{shown(value)} is no label; expected text, a list of texts or label: weight pairs")
