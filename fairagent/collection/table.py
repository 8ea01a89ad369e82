"""Groups of documents: `GroupTable` of up to millions of them; groups by topic, several joined, and intersections.

In a table ids are a sorted array, labels a few small integers a document; a saved one is mapped from disk, so that only
the pages that are needed are read.
"""

import hashlib
import itertools
import json
import math
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from glob import escape
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from fairagent.collection.records import Faults, checked_id, listed, shown
from fairagent.collection.rows import Bounds, bounded, error_text
from fairagent.errors import DataError, FairAgentError, UsageError
from fairagent.measures import joint_memberships
from fairagent.settings.faults import no_such
from fairagent.storage.arrays import read_array, write_array
from fairagent.storage.digests import RECORD, differences, file_digest
from fairagent.storage.files import one_at_a_time, remove_folder, write_whole
from fairagent.storage.folders import is_there, workshop
from fairagent.storage.readers import file_text, parse_json
from fairagent.types import UNKNOWN, FloatArray
from fairagent.types.clean import label_text, logger

IntArray = NDArray[np.int64]
AnyArray = NDArray[Any]
Labels = str | Iterable[str] | Mapping[str, float] | None
"""What a document is in one dimension: nothing, a label, several (equal shares), or label -> weight."""

FORMAT = 1
"""To be raised whenever the reading of group files, or the form of saved tables, changes."""
HEAD, NOTES = "groups.json", "notes.json"
LARGEST_HEAD = 1 << 26
"""Bytes; as of the notes."""
BATCH = 3_000
"""So many ids are looked up at once: their rows fit into the processor's cache."""
MOST_LABELS = 65_535

log = logger(__name__)


class Groups(Protocol):
    """The groups of a collection's documents, in one or more dimensions (gender, region ...).

    For a dimension that there is not, every method raises UsageError that names those there are.
    """

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The names of the dimensions."""

    @property
    def oracle(self) -> tuple[str, ...]:
        """The dimensions whose labels were taken from the judgments: whoever uses them sees the judgments."""

    @property
    def predicted(self) -> tuple[str, ...]:
        """The dimensions whose memberships are a classifier's probabilities."""

    def labels(self, dimension: str) -> tuple[str, ...]:
        """The known labels, in the order of the columns 1 .. g."""

    def memberships(self, dimension: str, ids: Sequence[str], topic: str = "") -> FloatArray:
        """Shares (n, 1 + g) of the documents `ids`; column 0 is unknown, rows sum to 1 where normalized."""

    def of_type(self, dimension: str, ids: Sequence[str], topic: str = "") -> NDArray[np.bool_] | None:
        """Whether the documents `ids` (n,) are of the dimension's type, as a person of unknown gender is of `gender`'s.

        None where nothing declares it.
        """

    def shares(self, dimension: str) -> FloatArray:
        """The mean membership (1 + g,) of all documents."""

    def missing(self, dimension: str) -> float:
        """The part of `shares` whose group is not known: what is unknown of documents that can be of the type."""


@dataclass(frozen=True, eq=False)
class LabelColumn:
    """The labels of one dimension for d documents, in compressed sparse rows.

    Row r has the entries `indptr[r]:indptr[r + 1]` of `codes` (0 is unknown, c is `labels[c - 1]`) and of
    `weights`; every row has at least one entry and none twice. Row d stands for documents that are not in
    the table: unknown. Without `indptr` each row has exactly one entry, without `weights` they are equal.
    With `normalize` a row of the matrix sums to 1; otherwise its weights (or ones) stay as they are. `of_type`
    (d + 1,) says which documents are of the dimension's type (None: not declared), `predicted` that the weights
    are a classifier's probabilities.
    """

    labels: tuple[str, ...]
    codes: AnyArray
    indptr: AnyArray | None = None
    weights: AnyArray | None = None
    normalize: bool = True
    of_type: AnyArray | None = None
    predicted: bool = False

    def matrix(self, rows: IntArray) -> FloatArray:
        """Membership of the documents in `rows` (n,): shape (n, 1 + g), column 0 is unknown."""
        result, line = np.zeros((rows.size, 1 + len(self.labels))), np.arange(rows.size)
        if self.indptr is None:
            result[line, self.codes[rows]] = 1.0
            return result
        starts = self.indptr[rows].astype(np.int64)
        counts = self.indptr[rows + 1] - starts
        entries, line = _ranges(starts, counts), np.repeat(line, counts)
        # No code occurs twice in a row, so assigning is the same as adding up, only faster.
        if self.weights is not None:
            result[line, self.codes[entries]] = self.weights[entries]
            return result / result.sum(axis=1, keepdims=True) if self.normalize else result
        result[line, self.codes[entries]] = (1.0 / counts)[line] if self.normalize else 1.0
        return result

    @cached_property
    def shares(self) -> FloatArray:
        """The mean membership of all documents, unknown ones included: shape (1 + g,)."""
        if self.indptr is None:
            return np.bincount(self.codes[:-1], minlength=1 + len(self.labels)) / (self.codes.size - 1)
        documents = self.indptr.size - 2
        counts = self.indptr[1:-1].astype(np.int64) - self.indptr[:-2]
        entries = int(self.indptr[documents])
        values = np.ones(entries) if self.weights is None else self.weights[:entries].astype(np.float64)
        if self.normalize:
            values /= np.repeat(np.add.reduceat(values, self.indptr[:documents]), counts)
        return np.bincount(self.codes[:entries], values, minlength=1 + len(self.labels)) / documents

    @cached_property
    def missing(self) -> float:
        """The mean unknown membership of all documents, where those that are not of the type count 0."""
        if self.of_type is None:
            return float(self.shares[0])
        rows = np.flatnonzero(self.of_type[:-1])
        return float(self.matrix(rows)[:, 0].sum()) / (self.of_type.size - 1)

    def relabeled(self, labels: Sequence[str]) -> Self:
        """The same memberships with the known labels in this order; `labels` has all present ones."""
        place_of = {label: place for place, label in enumerate(labels, start=1)}
        places = np.array([0, *(place_of[label] for label in self.labels)])
        return replace(self, labels=tuple(labels), codes=places.astype(_code_type(len(labels)))[self.codes])

    def check(self, documents: int) -> None:
        """Raise ValueError where the arrays do not fit together, or the number of documents."""
        rows = self.codes.size if self.indptr is None else self.indptr.size - 1
        entries = self.codes.size if self.indptr is None else int(self.indptr[-1])
        weights = entries if self.weights is None else self.weights.size
        types = rows if self.of_type is None else self.of_type.size
        if not rows == types == documents + 1 or not entries == self.codes.size == weights:
            raise ValueError("its arrays differ in length")
        falling = self.indptr is not None and bool((self.indptr[1:] < self.indptr[:-1]).any())
        if self.codes.dtype.kind != "u" or falling or int(self.codes.max(initial=0)) > len(self.labels):
            raise ValueError("its numbers are not those of labels")


def _ranges(starts: IntArray, counts: IntArray) -> IntArray:
    """The concatenated ranges starts[i] .. starts[i] + counts[i] - 1."""
    ends = np.cumsum(counts)
    offsets: IntArray = np.repeat(starts - (ends - counts), counts)
    return offsets + np.arange(offsets.size)


def _code_type(labels: int) -> type[np.uint8] | type[np.uint16]:
    return np.uint8 if labels < 256 else np.uint16


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
        self._keys, self._columns = _keys(ids), dict(columns)
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
    ) -> Self:
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
        for number, row in bounded(rows, "row", bounds or Bounds(rows=100_000_000, seconds=6 * 3600.0)):
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
            present = [part for part in ("codes", "indptr", "weights", "of_type") if getattr(column, part) is not None]
            for part in present:
                write_array(folder / f"{place}.{part}.npy", getattr(column, part))
            about = {"normalize": column.normalize, "predicted": column.predicted}
            head.append({"name": name, "labels": column.labels, **about, "arrays": present})
        text = json.dumps({"format": FORMAT, "documents": len(self), "dimensions": head}, ensure_ascii=False, indent=1)
        write_whole(folder / HEAD, text + "\n")

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """Map a saved table from disk; DataError where it is incomplete or damaged."""
        folder, columns = Path(folder), dict[str, LabelColumn]()
        try:
            head = parse_json(file_text(folder / HEAD, LARGEST_HEAD))
            if head["format"] != FORMAT:
                raise ValueError(f"format {head['format']}, this version reads {FORMAT}")
            ids = read_array(folder / "ids.npy", mapped=True)
            if ids.shape != (head["documents"],):
                raise ValueError(f"ids.npy has shape {ids.shape}, expected ({head['documents']},)")
            for place, about in enumerate(head["dimensions"]):
                arrays: dict[str, Any] = {
                    part: read_array(folder / f"{place}.{part}.npy", mapped=True) for part in about["arrays"]
                }
                flags = {"normalize": about["normalize"], "predicted": about["predicted"]}
                columns[about["name"]] = LabelColumn(tuple(about["labels"]), **flags, **arrays)
                columns[about["name"]].check(len(ids))
        except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{folder}: not a complete group table ({error}); save it again") from None
        return cls(ids, columns)

    def _column(self, dimension: str) -> LabelColumn:
        if dimension not in self._columns:
            raise UsageError(no_such("dimension", dimension, self.dimensions))
        return self._columns[dimension]

    def _rows(self, ids: Sequence[str]) -> IntArray:
        """The row of each id; the row after the last where the table does not have it."""
        width = self.ids.dtype.itemsize
        encoded = (id.encode("utf-8", "surrogatepass") for id in ids)
        # The empty id, and none that numpy would change, is in no table.
        possible = [id if len(id) <= width and not id.endswith(b"\0") else b"" for id in encoded]
        wanted = _keys(np.array(possible, self.ids.dtype))
        rows = self._keys.searchsorted(wanted)
        rows[self._keys.take(rows, mode="clip") != wanted] = len(self)
        return rows


def _keys(ids: AnyArray) -> AnyArray:
    """What the ids are sorted by: themselves, or where 8 bytes hold them the same bits as integers.

    Integers are compared several times faster, and any total order serves a look-up.
    """
    return ids.view("<u8") if ids.dtype.itemsize == 8 else ids


class _ColumnBuffer:
    """The labels of one dimension, row by row, and where they are `typed`, whether a document is of its type."""

    def __init__(self, labels: Sequence[str] | None, normalize: bool, predicted: bool, typed: bool) -> None:
        if labels is not None and (UNKNOWN in labels or len(set(labels)) < len(labels)):
            raise UsageError(f"labels must be distinct and leave out {UNKNOWN}: {listed(labels)}")
        self.closed = labels is not None
        self.normalize, self.predicted = normalize, predicted
        self.code = {UNKNOWN: 0} | {label: code for code, label in enumerate(labels or (), start=1)}
        self.codes, self.counts, self.weights = array("H"), array("H"), array("d")
        self.types = array("B") if typed else None

    def add(self, labels: Labels) -> None:
        """Append one row; ValueError where a label or a weight cannot be."""
        shares = _weights(labels, self.predicted)
        for label in shares:
            if label not in self.code:
                if self.closed:
                    raise ValueError(f"{shown(label)} is none of its labels ({listed(list(self.code)[1:])})")
                if len(self.code) > MOST_LABELS:
                    raise ValueError(f"more than {MOST_LABELS} labels; is this the right column?")
                self.code[label] = len(self.code)
        self.codes.extend([self.code[label] for label in shares])
        self.counts.append(len(shares))
        self.weights.extend(shares.values())

    def finish(self, order: IntArray) -> LabelColumn:
        """The column with its rows in `order`, and the row of absent documents after them."""
        labels = [label for label in self.code if label != UNKNOWN]
        codes = np.frombuffer(self.codes, np.uint16).astype(_code_type(len(labels)))
        counts = np.frombuffer(self.counts, np.uint16).astype(np.int64)
        values = np.frombuffer(self.weights, np.float64)
        types = None if self.types is None else np.append(np.frombuffer(self.types, np.bool_)[order], False)
        equal, indptr, entries, weights = bool((values == 1.0).all()), None, order, None
        if not bool((counts == 1).all()) or not (equal or self.normalize):
            entries = _ranges((np.cumsum(counts) - counts)[order], counts[order])
            indptr = np.zeros(counts.size + 2, np.uint32)
            np.cumsum(np.append(counts[order], 1), out=indptr[1:])
            if not equal:
                # 32 bits where nothing is lost (counts lose nothing), so that measures stay exact.
                weights = np.append(values[entries], 1.0)
                single = weights.astype(np.float32)
                weights = single if bool((single == weights).all()) else weights
        codes = np.append(codes[entries], codes.dtype.type(0))
        column = LabelColumn(tuple(labels), codes, indptr, weights, self.normalize, types, self.predicted)
        return column if self.closed else column.relabeled(sorted(labels))


def _weights(labels: Labels, predicted: bool) -> dict[str, float]:
    """Distinct label -> weight > 0; unknown alone where there is none."""
    if labels is None or isinstance(labels, str):
        return {labels or UNKNOWN: 1.0}
    if not isinstance(labels, Iterable):
        return {label_text(labels): 1.0}
    weights = labels if isinstance(labels, Mapping) else {label: 1.0 for label in labels if label not in (None, "")}
    for label, weight in weights.items():
        number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not number or not 0.0 <= weight <= 1e300:
            raise ValueError(f"the weight of {shown(label)} is {shown(weight)}, expected a number >= 0")
    if predicted and weights and abs((total := math.fsum(weights.values())) - 1.0) > 1e-3:
        shares = listed([f"{label} {share:g}" for label, share in weights.items()])
        raise ValueError(f"predicted labels that do not add up: {shares} make {total:.6g}, expected 1")
    return {label_text(label): float(weight) for label, weight in weights.items() if weight} or {UNKNOWN: 1.0}


class TableBuffer:
    """A growing list of rows (id, labels per dimension); `lines` are their line numbers.

    `unnormalized`, `predicted` and `typed` name the dimensions that are so (see `LabelColumn`). Ids are gathered as
    UTF-8 bytes: millions of them as Python objects would take six times the memory.
    """

    def __init__(
        self,
        labels: Mapping[str, Sequence[str] | None],
        unnormalized: Collection[str] = (),
        predicted: Collection[str] = (),
        typed: Collection[str] = (),
    ) -> None:
        self._ids, self._lengths, self.lines = bytearray(), array("H"), array("I")
        self._columns = {
            name: _ColumnBuffer(known, name not in unnormalized, name in predicted, name in typed)
            for name, known in labels.items()
        }

    def add(self, id: str, labels: Mapping[str, Labels], line: int, types: Collection[str] = ()) -> None:
        """Append one row; `types` are the typed dimensions of whose type the document is.

        Raises ValueError, naming each dimension, where labels or weights cannot be.
        """
        messages = []
        if unknown := labels.keys() - self._columns.keys():
            messages.append(no_such("dimension", listed(sorted(unknown)), self._columns))
        for name, column in self._columns.items():
            try:
                column.add(labels.get(name))
            except ValueError as error:
                messages.append(f"{name}: {error}")
            except Exception as error:
                messages.append(f"{name}: the labels cannot be read: {error_text(error)}")
            if column.types is not None:
                column.types.append(name in types)
        encoded = id.encode("utf-8", "surrogatepass")
        self._ids += encoded
        self._lengths.append(len(encoded))
        self.lines.append(line)
        if messages:
            raise ValueError("; ".join(messages))

    def check(self, path: Path, faults: Faults) -> None:
        """Add an error for each id that came before, or where there is no row at all."""
        if not self.lines:
            faults.add(path, None, "there are no rows")
            return
        ids, order = self._sorted
        for place in np.flatnonzero(ids[1:] == ids[:-1]).tolist():
            first, again = self.lines[order[place]], self.lines[order[place + 1]]
            id = bytes(ids[place]).decode("utf-8", "replace")
            faults.add(path, again, f"the document id {shown(id)} is that of line {first} already")

    def finish(self) -> tuple[AnyArray, dict[str, LabelColumn]]:
        """The sorted ids and the columns with their rows in the same order."""
        ids, order = self._sorted
        return ids, {name: column.finish(order) for name, column in self._columns.items()}

    @cached_property
    def _sorted(self) -> tuple[AnyArray, IntArray]:
        """The ids in the order of their keys, and the row (from 0) of each; equal ids stay in order."""
        lengths = np.frombuffer(self._lengths, np.uint16)
        width = max(8, int(lengths.max()))
        cells = np.zeros((lengths.size, width), np.uint8)
        cells[np.arange(width) < lengths[:, np.newaxis]] = np.frombuffer(self._ids, np.uint8)
        ids = cells.view(f"S{width}")[:, 0]
        order = np.argsort(_keys(ids), kind="stable")
        return ids[order], order


Made = tuple[GroupTable, tuple[str, ...]]
"""A table, and notes on what is odd in it."""


def cached_table(
    place: Path, origin: Callable[[], Mapping[str, object]], make: Callable[[], Made], latest: int = 8
) -> Made:
    """The table and notes that `make` reads, from the cache at `<place>-<key>`; else read now, and cached if possible.

    The key is a hash of what they depend on, which `origin` says in terms of JSON: so a table may be read while others
    are written. What changes while it is read is not cached; a damaged table is noticed by its bytes and made anew.
    The `latest` at a place are retained: several collections may share an index.
    """
    depends = origin()
    key = hashlib.sha256(json.dumps({"format": FORMAT, **depends}, sort_keys=True).encode()).hexdigest()[:16]
    folder = place.with_name(f"{place.name}-{key}")

    def cached() -> Made | None:
        try:
            if not is_there(folder, RECORD):
                return None
            if damage := differences(folder, whole=True, digest=file_digest):
                log.warning("the groups at %s are damaged (%s), and read anew", folder, damage[0])
                return None
            return GroupTable.load(folder), tuple(parse_json(file_text(folder / NOTES, LARGEST_HEAD)))
        except (OSError, ValueError, TypeError, FairAgentError) as error:
            log.debug("no usable groups at %s (%s)", folder, error)
            return None

    if there := cached():
        return there
    with one_at_a_time(folder.with_name(f"{folder.name}.lock"), 600.0):
        if there := cached():
            return there
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


class TopicGroups(GroupTable):
    """Labels that depend on the topic, e.g. the stance of a text towards a claim.

    They come from the judgments: only judged documents have one. The ids of its rows are made by `pair`; `shares` is
    the mean over all judged pairs of topic and document.
    """

    def __init__(self, ids: AnyArray, columns: Mapping[str, LabelColumn]) -> None:
        super().__init__(ids, columns)
        self.oracle = self.dimensions

    @staticmethod
    def pair(topic: str, id: str) -> str:
        """The id of a document's row for one topic (neither id holds white space)."""
        return f"{topic}\t{id}"

    def memberships(self, dimension: str, ids: Sequence[str], topic: str = "") -> FloatArray:
        return super().memberships(dimension, [self.pair(topic, id) for id in ids])

    def of_type(self, dimension: str, ids: Sequence[str], topic: str = "") -> NDArray[np.bool_] | None:
        """Whether the documents `ids` (n,) are of the dimension's type for `topic`; others than judged ones are not."""
        return super().of_type(dimension, [self.pair(topic, id) for id in ids])

    def batches(self, size: int = BATCH) -> Iterator[tuple[str, list[str]]]:
        """Each topic's judged documents."""
        judged: dict[str, list[str]] = {}
        for _, pairs in super().batches(size):
            for topic, _, id in (pair.partition("\t") for pair in pairs):
                judged.setdefault(topic, []).append(id)
        yield from judged.items()


class JoinedGroups:
    """Several groups with different dimensions as one; none at all where there are no parts."""

    def __init__(self, parts: Sequence[Groups]) -> None:
        self._parts = {dimension: part for part in parts for dimension in part.dimensions}
        self.parts = tuple(dict.fromkeys(self._parts.values()))
        self.dimensions = tuple(self._parts)
        self.oracle = tuple(name for part in parts for name in part.oracle)
        self.predicted = tuple(name for part in parts for name in part.predicted)

    def labels(self, dimension: str) -> tuple[str, ...]:
        return self._part(dimension).labels(dimension)

    def memberships(self, dimension: str, ids: Sequence[str], topic: str = "") -> FloatArray:
        return self._part(dimension).memberships(dimension, ids, topic)

    def of_type(self, dimension: str, ids: Sequence[str], topic: str = "") -> NDArray[np.bool_] | None:
        return self._part(dimension).of_type(dimension, ids, topic)

    def shares(self, dimension: str) -> FloatArray:
        return self._part(dimension).shares(dimension)

    def missing(self, dimension: str) -> float:
        return self._part(dimension).missing(dimension)

    def _part(self, dimension: str) -> Groups:
        if dimension not in self._parts:
            raise UsageError(no_such("dimension", dimension, self.dimensions))
        return self._parts[dimension]


def tables_of(groups: Groups) -> list[GroupTable]:
    """The tables that groups are joined of, without labels that come from judgments and what is made of others."""
    if isinstance(groups, JoinedGroups):
        return [table for part in groups.parts for table in tables_of(part)]
    return [groups] if isinstance(groups, GroupTable) and not isinstance(groups, TopicGroups) else []


class Intersection:
    """The combinations of the groups of two or more dimensions as one dimension.

    All combinations are groups, whether or not they occur, the last dimension running fastest. A row is the outer
    product of the parts' rows; column 0 collects the mass with an unknown in any part.
    """

    def __init__(self, name: str, parts: Mapping[str, GroupTable]) -> None:
        """Take the tables of the dimensions that are combined, in order."""
        self.name, self._parts = name, dict(parts)
        self.parts, self.dimensions = tuple(parts), (name,)
        self.oracle = self.dimensions if any(part in table.oracle for part, table in parts.items()) else ()
        self.predicted = self.dimensions if any(part in table.predicted for part, table in parts.items()) else ()
        cells = itertools.product(*(table.labels(dimension) for dimension, table in parts.items()))
        self._labels = tuple(" x ".join(cell) for cell in cells)

    def labels(self, dimension: str) -> tuple[str, ...]:
        return self._labels

    def memberships(self, dimension: str, ids: Sequence[str], topic: str = "") -> FloatArray:
        rows = [table.memberships(name, ids, topic) for name, table in self._parts.items()]
        known = (np.indices([row.shape[1] for row in rows]) > 0).all(axis=0).ravel()
        joint = joint_memberships(rows)
        return np.column_stack([joint[:, ~known].sum(axis=1), joint[:, known]])

    def of_type(self, dimension: str, ids: Sequence[str], topic: str = "") -> NDArray[np.bool_] | None:
        """Whether the documents `ids` (n,) are of the type of every part that declares one; None where no part does."""
        types = [table.of_type(name, ids, topic) for name, table in self._parts.items()]
        declared = [one for one in types if one is not None]
        return np.logical_and.reduce(declared) if declared else None

    def shares(self, dimension: str) -> FloatArray:
        """The mean membership (1 + g,) of all documents; of all judged ones where labels depend on the topic."""
        return self._counted[0]

    def missing(self, dimension: str) -> float:
        return self._counted[2]

    @property
    def counts(self) -> IntArray:
        """How many documents (g,) are in each group, at least in part; judged ones where labels depend on the topic."""
        return self._counted[1]

    def product(self, population: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
        """Label -> world share, as if the parts were independent; empty where a part has no world shares."""
        if not all(name in population for name in self._parts):
            return {}
        shares = ([population[name].get(label, 0.0) for label in t.labels(name)] for name, t in self._parts.items())
        return dict(zip(self._labels, map(math.prod, itertools.product(*shares)), strict=True))

    @cached_property
    def _counted(self) -> tuple[FloatArray, IntArray, float]:
        """Shares, counts, and what is missing."""
        tables = list(dict.fromkeys(self._parts.values()))
        # Only judged pairs of topic and document have labels that depend on a topic; and a document that the first
        # table does not have is unknown there, so that it is in no group.
        first = next((table for table in tables if isinstance(table, TopicGroups)), tables[0])
        batches = list(first.batches())
        if len(tables) > 1 and not isinstance(first, TopicGroups):
            own = {id for _, ids in batches for id in ids}
            batches.append(("", list({id for table in tables for _, ids in table.batches() for id in ids} - own)))
        sums, counts, missing = np.zeros(1 + len(self._labels)), np.zeros(len(self._labels), np.int64), 0.0
        for topic, ids in batches:
            rows, of_type = self.memberships(self.name, ids, topic), self.of_type(self.name, ids, topic)
            sums += rows.sum(axis=0)
            counts += np.count_nonzero(rows[:, 1:], axis=0)
            missing += float(rows[:, 0].sum() if of_type is None else rows[of_type, 0].sum())
        documents = sum(len(ids) for _, ids in batches)
        return sums / documents, counts, missing / documents
