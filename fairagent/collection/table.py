"""`GroupTable`: the group memberships of up to millions of documents; and tables that are cached on disk.

Ids are a sorted array, labels a few small integers a document; a saved table is mapped from disk, so that only the
pages that are needed are read.

A table that takes long to read is cached at `<place>-<key>`, where the key is a hash of all that it depends on: another
file has another place, and what is replaced is only what was damaged. So a table may be read while others are written,
by whomever.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from glob import escape
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fairagent.collection.bounds import Bounds, bounded, error_text
from fairagent.collection.records import Faults, checked_id
from fairagent.collection.table_buffer import AnyArray, IntArray, LabelColumn, Labels, TableBuffer, keys
from fairagent.errors import DataError, FairAgentError, UsageError
from fairagent.settings.faults import no_such
from fairagent.storage.arrays import read_array, write_array
from fairagent.storage.digests import RECORD, differences, file_digest
from fairagent.storage.files import one_at_a_time, remove_folder, write_whole
from fairagent.storage.folders import is_there, workshop
from fairagent.storage.readers import file_text, parse_json
from fairagent.types import FloatArray
from fairagent.types.clean import logger

FORMAT = 1
"""To be raised whenever the reading of group files, or the form of saved tables, changes."""
HEAD, NOTES = "groups.json", "notes.json"
ARRAYS = ("codes", "indptr", "weights", "of_type")
"""Of a column."""
LARGEST_HEAD = 1 << 26
"""Bytes; as of the notes."""
BATCH = 3_000
"""So many ids are looked up at once: their rows fit into the processor's cache."""
LATEST = 8
"""So many tables of one place are retained where nothing else is said: several collections may share an index."""
OF_TABLES = Bounds(rows=100_000_000, seconds=6 * 3600.0)
"""Of the rows of a table: many of them are its purpose."""
WAIT = 600.0
"""Seconds that a process waits for another one that reads the same groups."""

log = logger(__name__)


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
        self.ids = ids
        """The ids of all its documents, sorted, as UTF-8 bytes."""
        self.dimensions: tuple[str, ...] = tuple(columns)
        self.predicted = tuple(name for name, column in columns.items() if column.predicted)
        """The dimensions whose memberships are a classifier's probabilities."""
        self.oracle: tuple[str, ...] = ()
        """The dimensions whose labels were taken from the judgments: none."""
        self._keys = keys(ids)
        self._columns = dict(columns)
        # The same list is looked up once a dimension, and by measure, re-ranker and result.
        self._cached_rows = lru_cache(maxsize=64)(self._rows)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"GroupTable({len(self):,} documents, {', '.join(self.dimensions)})"

    @classmethod
    def from_rows(
        cls,
        rows: Iterable[tuple[str, Mapping[str, Labels]]],
        dimensions: Iterable[str] | Mapping[str, Sequence[str] | None],
        unnormalized: Collection[str] = (),
        predicted: Collection[str] = (),
        bounds: Bounds | None = None,
    ) -> GroupTable:
        """Build a table from a stream of rows (id, {dimension: labels}).

        Labels are None (unknown), a label, several labels (equal shares) or a mapping to weights >= 0.
        `dimensions` may map a dimension to all its labels in order; else they are those that occur, sorted. Weights
        are divided by their sum, except in dimensions that are `unnormalized`; in `predicted` ones they are a
        classifier's probabilities, which add up to 1 (within 1e-3). All errors of all rows are raised together as a
        DataError that counts the rows from 1. `bounds` end what has no end: 100 million rows, or six hours, unless they
        say otherwise.
        """
        known = dimensions if isinstance(dimensions, Mapping) else dict.fromkeys(dimensions)
        buffer, faults, source = TableBuffer(known, unnormalized, predicted), Faults(), Path("rows")
        for number, row in bounded(rows, "row", bounds or OF_TABLES):
            try:
                id, labels = row
                buffer.add(checked_id(id, "document"), labels, number)
            except ValueError as error:
                faults.add(source, number, str(error))
            except Exception as error:
                faults.add(source, number, f"the row cannot be read: {error_text(error)}")
        buffer.check(source, faults)
        faults.check("groups")
        return cls(*buffer.finish())

    def labels(self, dimension: str) -> tuple[str, ...]:
        """The known labels of a dimension, in the order of the matrix's columns from 1 on."""
        return self._column(dimension).labels

    def memberships(self, dimension: str, ids: Sequence[str], topic: str = "") -> FloatArray:
        """Shares (n, 1 + g) of the `ids`, for any `topic`; column 0 is unknown, and 1 for ids not in the table."""
        return self._column(dimension).matrix(self._cached_rows(tuple(ids)))

    def shares(self, dimension: str) -> FloatArray:
        """The mean membership (1 + g,) of all documents of the table, unlabeled ones included."""
        return self._column(dimension).shares

    def missing(self, dimension: str) -> float:
        """The mean unknown membership of all documents, where those that are not of the type count 0."""
        return self._column(dimension).missing

    def of_type(self, dimension: str, ids: Sequence[str], topic: str = "") -> NDArray[np.bool_] | None:
        """Whether each of the `ids` (n,) is of the dimension's type, those not in the table not; None: undeclared."""
        types = self._column(dimension).of_type
        return None if types is None else np.asarray(types[self._cached_rows(tuple(ids))], np.bool_)

    def batches(self, size: int = BATCH) -> Iterator[tuple[str, list[str]]]:
        """The ids of all its documents, up to `size` at a time, with the topic that their labels are for ("": any)."""
        for start in range(0, len(self), size):
            yield "", [id.decode("utf-8", "surrogatepass") for id in self.ids[start : start + size].tolist()]

    def some(self, most: int) -> list[str]:
        """Up to so many ids of its documents, at even distances."""
        places = np.unique(np.linspace(0, len(self) - 1, most).astype(np.intp))
        return [id.decode("utf-8", "surrogatepass") for id in self.ids[places].tolist()]

    def has(self, ids: Sequence[str]) -> NDArray[np.bool_]:
        """Whether each of the ids has a row, (n,)."""
        return np.asarray(self._rows(ids) < len(self))

    def relabeled(self, dimension: str, labels: Sequence[str]) -> Self:
        """The same table with one dimension's labels in this order; they may include ones no document has."""
        missing = [label for label in self.labels(dimension) if label not in labels]
        if missing or len(set(labels)) < len(labels):
            raise UsageError(f"{dimension!r} cannot be relabeled to {list(labels)}: {missing} or a repeated label")
        return type(self)(self.ids, self._columns | {dimension: self._column(dimension).relabeled(labels)})

    def save(self, folder: Path | str) -> None:
        """Write the table into `folder`; it counts as written once its groups.json is there."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / HEAD).unlink(missing_ok=True)
        write_array(folder / "ids.npy", self.ids)
        head: list[dict[str, object]] = []
        for place, (name, column) in enumerate(self._columns.items()):
            arrays = {part: getattr(column, part) for part in ARRAYS}
            present = {part: array for part, array in arrays.items() if array is not None}
            for part, array in present.items():
                write_array(folder / f"{place}.{part}.npy", array)
            about = {"normalize": column.normalize, "predicted": column.predicted}
            head.append({"name": name, "labels": column.labels, **about, "arrays": list(present)})
        text = json.dumps({"format": FORMAT, "documents": len(self), "dimensions": head}, ensure_ascii=False, indent=1)
        write_whole(folder / HEAD, text + "\n")

    @classmethod
    def load(cls, folder: Path | str, compared: bool = False) -> GroupTable:
        """Map a saved table from disk; DataError where it is incomplete or damaged.

        `compared`: its bytes are known to be those that were saved, so that none is read before it is needed.
        """
        folder = Path(folder)
        try:
            head = parse_json(file_text(folder / HEAD, LARGEST_HEAD))
            if head["format"] != FORMAT:
                raise ValueError(f"format {head['format']}, this version reads {FORMAT}")
            ids = read_array(folder / "ids.npy", mapped=True)
            if ids.shape != (head["documents"],):
                raise ValueError(f"ids.npy has shape {ids.shape}, expected ({head['documents']},)")
            columns = {}
            for place, part in enumerate(head["dimensions"]):
                arrays: dict[str, Any] = {
                    name: read_array(folder / f"{place}.{name}.npy", mapped=True) for name in part["arrays"]
                }
                arrays |= {"normalize": part["normalize"], "predicted": part["predicted"]}
                column = columns[part["name"]] = LabelColumn(tuple(part["labels"]), **arrays)
                if not compared:
                    column.check(len(ids))
        except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{folder}: not a complete group table ({error}); save it again") from None
        return cls(ids, columns)

    def _column(self, dimension: str) -> LabelColumn:
        try:
            return self._columns[dimension]
        except KeyError:
            raise UsageError(no_such("dimension", dimension, self.dimensions)) from None

    def _rows(self, ids: Sequence[str]) -> IntArray:
        """The row of each id; the row after the last where the table does not have it."""
        width = self.ids.dtype.itemsize
        encoded = (id.encode("utf-8", "surrogatepass") for id in ids)
        # The empty id, and none that numpy would change, is in no table.
        possible = [id if len(id) <= width and not id.endswith(b"\0") else b"" for id in encoded]
        wanted = keys(np.array(possible, self.ids.dtype))
        rows = self._keys.searchsorted(wanted)
        rows[self._keys.take(rows, mode="clip") != wanted] = len(self)
        return rows


Made = tuple[GroupTable, tuple[str, ...]]
"""A table, and notes on what is odd in it."""


def cached_table(
    place: Path, origin: Callable[[], Mapping[str, object]], make: Callable[[], Made], latest: int = LATEST
) -> Made:
    """The table and notes that `make` reads, from the cache; else read now, and cached where that works.

    `origin` says, in terms of JSON, what they depend on. What changes while it is read is not cached. A damaged table
    is noticed, by all of its bytes (`fairagent.storage.digests`), and made anew. The `latest` at a place are retained.
    """
    depends = origin()
    key = hashlib.sha256(json.dumps({"format": FORMAT, **depends}, sort_keys=True).encode()).hexdigest()[:16]
    folder = place.with_name(f"{place.name}-{key}")
    if cached := _load(folder):
        return cached
    with one_at_a_time(folder.with_name(f"{folder.name}.lock"), WAIT):
        if cached := _load(folder):
            return cached
        made = make()
        if origin() == depends:
            try:
                with workshop(folder, (RECORD, HEAD, NOTES)) as shop:
                    made[0].save(shop.new)
                    write_whole(shop.new / NOTES, json.dumps(made[1]) + "\n")
                    shop.put()
            except (OSError, FairAgentError) as error:
                log.warning("the groups are read anew each time: they cannot be cached at %s (%s)", folder, error)
            # Whoever has an older table mapped can go on reading it.
            tables = [path.parent for path in place.parent.glob(f"{escape(place.name)}-*/{HEAD}")]
            for old in sorted(tables, key=lambda path: path.stat().st_mtime)[:-latest]:
                remove_folder(old)
    return made


def _load(folder: Path) -> Made | None:
    """What is cached in `folder`; None where nothing is, or not all of it."""
    try:
        if not is_there(folder, RECORD):
            return None
        if damage := differences(folder, whole=True, digest=file_digest):
            log.warning("the groups at %s are damaged (%s), and read anew", folder, damage[0])
            return None
        return GroupTable.load(folder, compared=True), tuple(parse_json(file_text(folder / NOTES, LARGEST_HEAD)))
    except (OSError, ValueError, TypeError, FairAgentError) as error:
        log.debug("no usable groups at %s (%s)", folder, error)
        return None
