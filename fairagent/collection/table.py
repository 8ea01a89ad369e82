"""`GroupTable`: the group memberships of up to millions of documents.

Ids are a sorted array, labels a few small integers a document; a saved table is mapped from disk, so that
only the pages that are asked for are read.

Group tables that take long to read, kept on disk: mapped from there as long as what they are read from is the same.

A kept table is at `<place>-<key>`, where the key is a hash of all that it depends on: another file has another place,
and what is replaced is only what was damaged. So a table may be read while others are written, by whomever.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from glob import escape
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from fairagent.collection.records import Faults, checked_id
from fairagent.collection.table_buffer import AnyArray, IntArray, LabelColumn, Labels, TableBuffer, fixed_width, keys
from fairagent.errors import DataError, FairAgentError, UsageError
from fairagent.storage.arrays import read_array, write_array
from fairagent.storage.digests import RECORD, differences, file_digest
from fairagent.storage.files import one_at_a_time, write_whole
from fairagent.storage.folders import is_there, workshop
from fairagent.storage.readers import file_text, parse_json
from fairagent.types import FloatArray
from fairagent.types.clean import logger

LARGEST_HEAD = 1 << 26
"""Bytes."""
FORMAT = 1
HEAD = "groups.json"
NEWLINE = ord("\n")
BATCH = 3_000
"""So many ids are looked at in one go: their rows fit into the cache."""


class GroupTable:
    """Memberships of documents in the groups of one or more dimensions.

    >>> table = GroupTable.from_rows(
    ...     [("a", {"region": "Asia"}), ("b", {"region": ["Asia", "Europe"]}), ("c", {})], ["region"]
    ... )
    >>> table.labels("region")
    ('Asia', 'Europe')
    >>> table.memberships("region", ["b", "c", "not there"])
    array([[0. , 0.5, 0.5],
           [1. , 0. , 0. ],
           [1. , 0. , 0. ]])
    >>> table.shares("region").round(3).tolist()
    [0.333, 0.5, 0.167]
    """

    def __init__(self, ids: AnyArray, columns: Mapping[str, LabelColumn]) -> None:
        """Take sorted distinct `ids` (d,) of dtype S8 or wider, and columns of d rows."""
        self._ids = ids
        self._keys = keys(ids)
        self._columns = dict(columns)
        self._shares: dict[str, FloatArray] = {}
        self._missing: dict[str, float] = {}
        # The same list is looked up once a dimension, and by measure, re-ranker and result.
        self._remembered = lru_cache(maxsize=64)(self._rows)

    def __len__(self) -> int:
        return len(self._ids)

    def __repr__(self) -> str:
        return f"GroupTable({len(self):,} documents, {', '.join(self.dimensions)})"

    @classmethod
    def from_rows(
        cls,
        rows: Iterable[tuple[str, Mapping[str, Labels]]],
        dimensions: Iterable[str] | Mapping[str, Sequence[str] | None],
        unnormalized: Collection[str] = (),
        predicted: Collection[str] = (),
    ) -> GroupTable:
        """Build a table from (id, {dimension: labels}) rows, which are not kept.

        Labels are None (unknown), a label, several labels (equal shares) or a mapping to weights >= 0.
        `dimensions` may map a dimension to all its labels in order; otherwise they are those that occur,
        sorted. Weights are divided by their sum, except in the dimensions that `unnormalized` names; in those
        that `predicted` names they are a classifier's probabilities, which add up to 1 (within 1e-3). All
        faults of all rows are raised together as a DataError that counts the rows from 1.
        """
        known = dimensions if isinstance(dimensions, Mapping) else dict.fromkeys(dimensions)
        buffer, faults, source = TableBuffer(known, unnormalized, predicted), Faults(), Path("rows")
        for number, (id, labels) in enumerate(rows, start=1):
            try:
                buffer.add(checked_id(id, "document"), labels, number)
            except ValueError as error:
                faults.add(source, number, str(error))
        buffer.check(source, faults)
        faults.check("groups")
        return cls(*buffer.finish())

    @property
    def ids(self) -> AnyArray:
        """The ids of all its documents, sorted, as UTF-8 bytes."""
        return self._ids

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The names of the dimensions."""
        return tuple(self._columns)

    @property
    def oracle(self) -> tuple[str, ...]:
        """The dimensions whose labels were taken from the judgments: none."""
        return ()

    @property
    def predicted(self) -> tuple[str, ...]:
        """The dimensions whose memberships are a classifier's probabilities."""
        return tuple(name for name, column in self._columns.items() if column.predicted)

    def labels(self, dimension: str) -> tuple[str, ...]:
        """The known labels of a dimension, in the order of the matrix's columns from 1 on."""
        return self._column(dimension).labels

    def memberships(self, dimension: str, ids: Sequence[str], topic: str = "") -> FloatArray:
        """Shares (n, 1 + g) of the `ids`; column 0 is unknown, and 1 for ids that are not in the table.

        Rows sum to 1 (unless the dimension is not normalized). `topic` makes no difference here.
        """
        return self._column(dimension).matrix(self._remembered(tuple(ids)))

    def shares(self, dimension: str) -> FloatArray:
        """The mean membership (1 + g,) of all documents of the table, unlabeled ones included."""
        if dimension not in self._shares:
            self._shares[dimension] = self._column(dimension).shares()
        return self._shares[dimension]

    def missing(self, dimension: str) -> float:
        """The mean unknown membership of all documents, those that are not of the type having none."""
        if dimension not in self._missing:
            self._missing[dimension] = self._column(dimension).missing()
        return self._missing[dimension]

    def of_type(self, dimension: str, ids: Sequence[str], topic: str = "") -> NDArray[np.bool_] | None:
        """Whether each of the `ids` (n,) is of the dimension's type, e.g. about a person; None: that is not said.

        Ids that are not in the table are not. `topic` makes no difference here.
        """
        types = self._column(dimension).of_type
        return None if types is None else np.asarray(types[self._remembered(tuple(ids))], np.bool_)

    def batches(self, size: int = BATCH) -> Iterator[tuple[str, list[str]]]:
        """The ids of all its documents, up to `size` at a time, with the topic that their labels are for ("": any)."""
        for start in range(0, len(self), size):
            yield "", [id.decode("utf-8", "surrogatepass") for id in self._ids[start : start + size].tolist()]

    def relabeled(self, dimension: str, labels: Sequence[str]) -> Self:
        """The same table with one dimension's labels in this order; they may include ones no document has."""
        missing = [label for label in self.labels(dimension) if label not in labels]
        if missing or len(set(labels)) < len(labels):
            raise UsageError(f"{dimension!r} cannot be relabeled to {list(labels)}: {missing} or a repeated label")
        return type(self)(self._ids, self._columns | {dimension: self._column(dimension).relabeled(labels)})

    def save(self, folder: Path | str) -> None:
        """Write the table into `folder`; it counts as written once its groups.json is there."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / HEAD).unlink(missing_ok=True)
        _write(folder / "ids.npy", self._ids)
        head: list[dict[str, object]] = []
        for place, (name, column) in enumerate(self._columns.items()):
            arrays = {
                "codes": column.codes,
                "indptr": column.indptr,
                "weights": column.weights,
                "of_type": column.of_type,
            }
            present = {part: array for part, array in arrays.items() if array is not None}
            for part, array in present.items():
                _write(folder / f"{place}.{part}.npy", array)
            about = {"normalize": column.normalize, "predicted": column.predicted}
            head.append({"name": name, "labels": column.labels, **about, "arrays": list(present)})
        text = json.dumps({"format": FORMAT, "documents": len(self), "dimensions": head}, ensure_ascii=False, indent=1)
        (folder / HEAD).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path | str, compared: bool = False) -> GroupTable:
        """Map a saved table from disk; DataError where it is incomplete or damaged.

        `compared`: its bytes are known to be those that were saved, so that none is read before it is asked for.
        """
        folder = Path(folder)
        try:
            head = parse_json(file_text(folder / HEAD, LARGEST_HEAD))
            if head["format"] != FORMAT:
                raise ValueError(f"format {head['format']}, this version reads {FORMAT}")
            ids = _mapped(folder / "ids.npy", head["documents"])
            columns = {}
            for place, part in enumerate(head["dimensions"]):
                arrays = {name: _mapped(folder / f"{place}.{name}.npy") for name in part["arrays"]}
                # Tables from before there were predicted labels do not say whether they are.
                column = LabelColumn(
                    tuple(part["labels"]),
                    normalize=part["normalize"],
                    predicted=part.get("predicted", False),
                    **arrays,
                )
                columns[part["name"]] = column if compared else _checked(column, len(ids))
        except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{folder}: not a complete group table ({error}); save it again") from None
        return cls(ids, columns)

    def _column(self, dimension: str) -> LabelColumn:
        try:
            return self._columns[dimension]
        except KeyError:
            raise unknown_dimension(dimension, self.dimensions) from None

    def _rows(self, ids: Sequence[str]) -> IntArray:
        """The row of each id; the row after the last where the table has it not."""
        width = self._ids.dtype.itemsize
        text = np.frombuffer("\n".join([*ids, ""]).encode("utf-8", "surrogatepass"), np.uint8)
        ends = (text == NEWLINE).nonzero()[0]
        lengths = ends.copy()
        lengths[1:] -= ends[:-1] + 1
        if ends.size != len(ids) or (ends.size and lengths.max() > width):
            # Such ids are in no table; the empty id is not either, and fits.
            return self._rows([id if _fits(id, width) else "" for id in ids])
        wanted = keys(fixed_width(text[text != NEWLINE], lengths, width))
        rows = self._keys.searchsorted(wanted)
        rows[self._keys.take(rows, mode="clip") != wanted] = len(self)
        return rows


def _fits(id: str, width: int) -> bool:
    return "\n" not in id and len(id.encode("utf-8", "surrogatepass")) <= width


def unknown_dimension(dimension: str, dimensions: Collection[str]) -> UsageError:
    """The error for a dimension that a collection does not have."""
    there = f"there are: {', '.join(dimensions)}" if dimensions else "the collection has no groups"
    return UsageError(f"no dimension {dimension!r}; {there}")


def _write(path: Path, array: AnyArray) -> None:
    """Save beside `path` and move into place: the array may be mapped from the very file it replaces."""
    beside = path.with_name(f"{path.name}.part")
    write_array(beside, array)
    beside.replace(path)


def _mapped(path: Path, size: int | None = None) -> AnyArray:
    array = read_array(path, mapped=True)
    if size is not None and array.shape != (size,):
        raise ValueError(f"{path.name} has shape {array.shape}, expected ({size},)")
    return array


def _checked(column: LabelColumn, documents: int) -> LabelColumn:
    rows = column.codes.size if column.indptr is None else column.indptr.size - 1
    entries = column.codes.size if column.indptr is None else int(column.indptr[-1])
    weights = entries if column.weights is None else column.weights.size
    types = rows if column.of_type is None else column.of_type.size
    if not rows == types == documents + 1 or not entries == column.codes.size == weights:
        raise ValueError("its arrays differ in length")
    whole = column.codes.dtype.kind == "u" and (
        column.indptr is None or bool((column.indptr[1:] >= column.indptr[:-1]).all())
    )
    if not whole or int(column.codes.max(initial=0)) > len(column.labels):
        raise ValueError("its numbers are none of labels")
    return column


"""To be raised whenever the reading of group files changes."""
NOTES = "notes.json"
LARGEST_NOTES = 1 << 20
"""Bytes."""
LATEST = 8
"""So many tables of one place are kept: several collections may share an index."""
WAIT = 600.0
"""Seconds that a process waits for another one that reads the same groups."""

Made = tuple[GroupTable, tuple[str, ...]]
"""A table, and notes on what is odd in it."""

log = logger(__name__)


def cached_table(place: Path, origin: Callable[[], Mapping[str, object]], make: Callable[[], Made]) -> Made:
    """The table and notes that `make` reads, from where they are kept; else read now, and kept where that works.

    `origin` says, in terms of JSON, what they depend on. What changes while it is read is not kept. A damaged table is
    found, by all of its bytes (`fairagent.storage.digests`), and made anew.
    """
    said = origin()
    key = hashlib.sha256(json.dumps({"format": FORMAT, **said}, sort_keys=True).encode()).hexdigest()[:16]
    folder = place.with_name(f"{place.name}-{key}")
    if found := _load(folder):
        return found
    with one_at_a_time(folder.with_name(f"{folder.name}.lock"), WAIT):
        if found := _load(folder):
            return found
        made = make()
        if origin() == said:
            _keep(made, folder)
            _tidy(place)
    return made


def _load(folder: Path) -> Made | None:
    """What is kept in `folder`; None where nothing is, or not all of it."""
    try:
        if not is_there(folder, RECORD):
            return None
        if faults := differences(folder, whole=True, digest=file_digest):
            log.warning("the groups at %s are damaged (%s), and read anew", folder, faults[0])
            return None
        return GroupTable.load(folder, compared=True), tuple(parse_json(file_text(folder / NOTES, LARGEST_NOTES)))
    except (OSError, ValueError, TypeError, FairAgentError) as error:
        log.debug("no usable groups at %s (%s)", folder, error)
        return None


def _keep(made: Made, folder: Path) -> None:
    table, notes = made
    try:
        with workshop(folder, (RECORD, HEAD, NOTES)) as shop:
            shop.begin()
            table.save(shop.new)
            write_whole(shop.new / NOTES, json.dumps(notes) + "\n")
            shop.put()
    except (OSError, FairAgentError) as error:
        log.warning("the groups are read anew each time, since they cannot be kept at %s (%s)", folder, error)


def _tidy(place: Path) -> None:
    """Remove all but the latest tables of a place; whoever has one of the others mapped keeps what he has."""
    tables = [path.parent for path in place.parent.glob(f"{escape(place.name)}-*/{HEAD}")]
    for old in sorted(tables, key=lambda path: path.stat().st_mtime)[:-LATEST]:
        shutil.rmtree(old, ignore_errors=True)
