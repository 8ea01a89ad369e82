"""Collections made of rows: `Collection.from_records`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from fairagent.clean import logger
from fairagent.collection.collection import Collection
from fairagent.collection.config import DimensionColumn, DocumentsFile
from fairagent.collection.documents import document_of
from fairagent.collection.faults import Faults, shown
from fairagent.collection.forms import ROW, records, rows_of
from fairagent.collection.groups import Groups, JoinedGroups
from fairagent.collection.labeling import Labeling, label_notes, labeled
from fairagent.collection.labels import LabelReader
from fairagent.collection.load import aligned
from fairagent.collection.population import checked_population
from fairagent.collection.records import Record, checked_id, field_reader
from fairagent.collection.table import GroupTable
from fairagent.collection.targets import Given
from fairagent.settings import validate
from fairagent.types import Document

log = logger(__name__)

GroupColumns = str | Sequence[str] | Mapping[str, str | Mapping[str, Any]]
"""The column of a dimension that is named like it, several, or dimension -> its column or all that can be said of it
(`DimensionColumn`)."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class InMemory:
    """Documents at hand."""

    kept: tuple[Document, ...]
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Document]:
        return iter(self.kept)

    def count(self) -> int:
        """How many there are."""
        return len(self.kept)

    def fingerprint(self) -> str:
        """SHA-256 (hex) over all of their fields, in order."""
        digest = hashlib.sha256()
        for one in self.kept:
            line = json.dumps([one.id, one.title, one.text, dict(one.extra)], sort_keys=True)
            digest.update(f"{line}\n".encode())
        return digest.hexdigest()


def collection_of(
    source: Any,
    text: str | Sequence[str],
    id: str | None,
    groups: GroupColumns,
    title: str | None,
    separator: str | None,
    population: Mapping[str, Mapping[str, float]],
    name: str,
    labels: Labeling | None = None,
) -> Collection:
    """See `Collection.from_records`."""
    dimensions = _dimensions(groups, separator)
    faults, file = Faults(), isinstance(source, str | Path)
    place = Path(source) if file else Path(name)
    rows, id = _rows(source, place, id, faults) if file else _numbered(rows_of(source), id)
    fields = validate(DocumentsFile, {"path": str(place), "id": id, "text": text, "title": title}, "from_records")
    shares = checked_population(population, place, faults)
    doubts: list[str] = []
    if labels is not None:
        kept, columns = list(rows), {name: column.column or name for name, column in dimensions.items()}
        rows = iter(kept)
        dimensions, doubts = labeled(
            dimensions, labels, lambda name: (row.get(columns[name]) for _, row in kept), shares
        )
    read_id, reader = field_reader(id), LabelReader(dimensions)
    buffer, documents, numbers, titled = reader.buffer(), [], dict[str, int](), title is None
    for number, record in rows:
        titled = titled or title in record
        try:
            document = document_of(checked_id(read_id(record), "document"), record, fields)
            buffer.add(document.id, reader.read(record, number), number, reader.read_types(record))
        except ValueError as error:
            faults.add(place, number, str(error))
            continue
        if numbers.setdefault(document.id, number) != number:
            message = f"the document id {shown(document.id)} is that of {numbers[document.id]} already"
            faults.add(place, number, message)
        documents.append(document)
    if not documents and not faults:
        faults.add(place, None, "there are no rows")
    elif not titled:
        faults.add(place, None, f"no row has the title field {title!r}")
    reader.check(place, faults)
    faults.check(f"collection {name!r}")
    notes: list[str] = []
    table: Groups = aligned(GroupTable(*buffer.finish()), shares, notes) if dimensions else JoinedGroups([])
    for dimension in table.dimensions:
        if not table.labels(dimension):
            column = reader.columns[dimension]
            faults.add(place, None, f"the column {column!r} of dimension {dimension!r} is empty in every row")
    faults.check(f"collection {name!r}")
    found = [*doubts, *label_notes(table, 'labels="join" joins them')]
    for note in found:
        log.warning("collection %r: %s", name, note)
    notes += found
    # Whoever gives shares in a call means them: they are not mixed with what an engine shows.
    own = {dimension: Given(shares=given) for dimension, given in shares.items()} or None
    return Collection(name, {}, {}, table, shares, tuple(notes), InMemory(tuple(documents)), target=own)


def _dimensions(groups: GroupColumns, separator: str | None) -> dict[str, DimensionColumn]:
    names = [groups] if isinstance(groups, str) else groups
    columns = names if isinstance(names, Mapping) else dict(zip(names, names, strict=True))
    return {
        dimension: validate(
            DimensionColumn,
            {"separator": separator, **({"column": column} if isinstance(column, str) else column)},
            f"groups.{dimension}",
        )
        for dimension, column in columns.items()
    }


def _rows(source: Any, place: Path, id: str | None, faults: Faults) -> tuple[Iterator[tuple[int, Record]], str]:
    """The rows of a file; see `_numbered`."""
    if id is None:
        _, first = next(records(place, DocumentsFile(path=(str(place),)), Faults()), (0, {}))
        id = "id" if "id" in first else ROW
    return records(place, DocumentsFile(path=(str(place),), id=id), faults), id


def _numbered(rows: Iterator[Record], id: str | None) -> tuple[Iterator[tuple[int, Record]], str]:
    """The rows with their numbers, and the field of their ids: where none is named, `id` or else the number."""
    first = next(rows, None)
    everything = rows if first is None else chain([first], rows)
    if id is None:
        id = "id" if first is not None and "id" in first else ROW
    if id != ROW:
        return enumerate(everything, start=1), id
    return ((number, {**row, ROW: number}) for number, row in enumerate(everything, start=1)), id
