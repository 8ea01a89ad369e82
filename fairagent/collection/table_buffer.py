"""Buffers from which a `GroupTable` is built row by row.

One dimension of a group table as compact arrays, and its membership matrix.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.collection.records import Faults, listed, shown
from fairagent.errors import UsageError
from fairagent.types import UNKNOWN, FloatArray

IntArray = NDArray[np.int64]
AnyArray = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class LabelColumn:
    """The labels of one dimension for d documents, in compressed sparse rows.

    Row r has the entries `indptr[r]:indptr[r + 1]` of `codes` (0 is unknown, c is `labels[c - 1]`) and of
    `weights`; every row has at least one entry and none twice. Row d stands for documents that are not in
    the table: unknown. Without `indptr` each row has exactly one entry, without `weights` they are equal.
    With `normalize` a row of the matrix sums to 1; otherwise its weights (or ones) stay as they are. `of_type`
    (d + 1,) says which documents are of the dimension's type (None: that is not said), `predicted` that the weights
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
        result = np.zeros((rows.size, 1 + len(self.labels)))
        line = np.arange(rows.size)
        if self.indptr is None:
            result[line, self.codes[rows]] = 1.0
            return result
        starts = self.indptr[rows].astype(np.int64)
        counts = self.indptr[rows + 1] - starts
        entries = ranges(starts, counts)
        line = np.repeat(line, counts)
        # No code occurs twice in a row, so assigning is the same as adding up, only faster.
        if self.weights is not None:
            result[line, self.codes[entries]] = self.weights[entries]
            return result / result.sum(axis=1, keepdims=True) if self.normalize else result
        result[line, self.codes[entries]] = (1.0 / counts)[line] if self.normalize else 1.0
        return result

    def shares(self) -> FloatArray:
        """The mean membership of all documents, unknown ones included: shape (1 + g,)."""
        if self.indptr is None:
            documents = self.codes.size - 1
            return np.bincount(self.codes[:-1], minlength=1 + len(self.labels)) / documents
        documents = self.indptr.size - 2
        counts = self.indptr[1:-1].astype(np.int64) - self.indptr[:-2]
        entries = int(self.indptr[documents])
        values = np.ones(entries) if self.weights is None else self.weights[:entries].astype(np.float64)
        if self.normalize:
            values /= np.repeat(np.add.reduceat(values, self.indptr[:documents]), counts)
        return np.bincount(self.codes[:entries], values, minlength=1 + len(self.labels)) / documents

    def missing(self) -> float:
        """The mean unknown membership of all documents, those that are not of the type having none."""
        if self.of_type is None:
            return float(self.shares()[0])
        rows = np.flatnonzero(self.of_type[:-1])
        return float(self.matrix(rows)[:, 0].sum()) / (self.of_type.size - 1)

    def relabeled(self, labels: Sequence[str]) -> LabelColumn:
        """The same memberships with the known labels in this order; `labels` has all present ones."""
        places = np.array([0, *(labels.index(label) + 1 for label in self.labels)])
        codes = places.astype(code_type(len(labels)))[self.codes]
        return replace(self, labels=tuple(labels), codes=codes)


def ranges(starts: IntArray, counts: IntArray) -> IntArray:
    """The concatenated ranges starts[i] .. starts[i] + counts[i] - 1.

    >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = np.cumsum(counts)
    offsets: IntArray = np.repeat(starts - (ends - counts), counts)
    return offsets + np.arange(offsets.size)


def code_type(labels: int) -> type[np.uint8] | type[np.uint16]:
    """The smallest type that holds the codes of so many labels and of unknown."""
    return np.uint8 if labels < 256 else np.uint16


Labels = str | Iterable[str] | Mapping[str, float] | None
"""What a document is in one dimension: nothing, a label, several (equal shares), or label -> weight."""

MOST_LABELS = 65_535
HEAVIEST = 1e300
"""Larger weights could add up to infinity."""
ADDS_UP = 1e-3
"""How far from 1 predicted probabilities may add up: they are written with few digits."""


class IdBuffer:
    """A growing list of ids, as UTF-8 bytes."""

    def __init__(self) -> None:
        self.bytes = bytearray()
        self.lengths = array("H")

    def add(self, id: str) -> None:
        """Append one id."""
        encoded = id.encode("utf-8", "surrogatepass")
        self.bytes += encoded
        self.lengths.append(len(encoded))

    def finish(self) -> AnyArray:
        """All ids as a fixed-width bytes array, at least 8 wide."""
        lengths = np.frombuffer(self.lengths, np.uint16)
        return fixed_width(np.frombuffer(self.bytes, np.uint8), lengths, max(8, int(lengths.max())))


class ColumnBuffer:
    """The labels of one dimension, row by row, and where they are `typed`, whether a document is of its type."""

    def __init__(
        self, labels: Sequence[str] | None, normalize: bool, predicted: bool = False, typed: bool = False
    ) -> None:
        if labels is not None and (UNKNOWN in labels or len(set(labels)) < len(labels)):
            raise UsageError(f"labels must be distinct and leave out {UNKNOWN}: {listed(labels)}")
        self.closed = labels is not None
        self.normalize, self.predicted = normalize, predicted
        self.code = {UNKNOWN: 0} | {label: code for code, label in enumerate(labels or (), start=1)}
        self.codes = array("H")
        self.counts = array("H")
        self.weights: array[float] | None = None
        self.types = array("B") if typed else None

    def add(self, labels: Labels) -> None:
        """Append one row; ValueError where a label or a weight cannot be."""
        if isinstance(labels, str):
            self.codes.append(self._code(labels) if labels else 0)
            self.counts.append(1)
            if self.weights is not None:
                self.weights.append(1.0)
            return
        shares = _shares(labels)
        if self.predicted and labels:
            _check_adds_up(labels if isinstance(labels, Mapping) else shares)
        if self.weights is None and any(weight != 1.0 for weight in shares.values()):
            self.weights = array("d", [1.0]) * len(self.codes)
        self.codes.extend([self._code(label) for label in shares])
        self.counts.append(len(shares))
        if self.weights is not None:
            self.weights.extend(shares.values())

    def finish(self, order: IntArray) -> LabelColumn:
        """The column with its rows in `order`, and the row of absent documents after them."""
        labels = [label for label in self.code if label != UNKNOWN]
        codes = np.frombuffer(self.codes, np.uint16).astype(code_type(len(labels)))
        counts = np.frombuffer(self.counts, np.uint16).astype(np.int64)
        weights = None if self.weights is None else np.frombuffer(self.weights, np.float64)
        types = None if self.types is None else np.append(np.frombuffer(self.types, np.bool_)[order], False)
        about = self.normalize, types, self.predicted
        if bool((counts == 1).all()) and (weights is None or self.normalize):
            column = LabelColumn(tuple(labels), np.append(codes[order], codes.dtype.type(0)), None, None, *about)
        else:
            entries = ranges((np.cumsum(counts) - counts)[order], counts[order])
            indptr = np.zeros(counts.size + 2, np.uint32)
            np.cumsum(np.append(counts[order], 1), out=indptr[1:])
            codes = np.append(codes[entries], codes.dtype.type(0))
            if weights is not None:
                weights = _narrow(np.append(weights[entries], 1.0))
            column = LabelColumn(tuple(labels), codes, indptr, weights, *about)
        return column if self.closed else column.relabeled(sorted(labels))

    def _code(self, label: str) -> int:
        code = self.code.get(label)
        if code is None:
            code = len(self.code)
            if self.closed:
                raise ValueError(f"{shown(label)} is none of its labels ({listed(list(self.code)[1:])})")
            if not isinstance(label, str):
                raise ValueError(f"{shown(label)} is no label, expected text")
            if code > MOST_LABELS:
                raise ValueError(f"more than {MOST_LABELS} labels; is this the right column?")
            self.code[label] = code
        return code


class TableBuffer:
    """A growing list of rows (id, labels per dimension); `lines` are their line numbers.

    `unnormalized`, `predicted` and `typed` name the dimensions that are so (see `LabelColumn`).
    """

    def __init__(
        self,
        labels: Mapping[str, Sequence[str] | None],
        unnormalized: Collection[str] = (),
        predicted: Collection[str] = (),
        typed: Collection[str] = (),
    ) -> None:
        self.ids = IdBuffer()
        self.lines = array("I")
        self.columns = {
            name: ColumnBuffer(known, name not in unnormalized, name in predicted, name in typed)
            for name, known in labels.items()
        }

    def add(self, id: str, labels: Mapping[str, Labels], line: int, types: Collection[str] = ()) -> None:
        """Append one row; `types` are the typed dimensions of whose type the document is.

        Raises ValueError, naming each dimension, where labels or weights cannot be.
        """
        messages = []
        if unknown := labels.keys() - self.columns.keys():
            messages.append(f"no dimension {listed(sorted(unknown))}; there are: {listed(list(self.columns))}")
        for name, column in self.columns.items():
            try:
                column.add(labels.get(name))
            except ValueError as error:
                messages.append(f"{name}: {error}")
            if column.types is not None:
                column.types.append(name in types)
        self.ids.add(id)
        self.lines.append(line)
        if messages:
            raise ValueError("; ".join(messages))

    def check(self, path: Path, faults: Faults) -> None:
        """Add a fault for each id that came before, or where there is no row at all."""
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
        return ids, {name: column.finish(order) for name, column in self.columns.items()}

    @cached_property
    def _sorted(self) -> tuple[AnyArray, IntArray]:
        """The ids in the order of their keys, and the row (from 0) of each; equal ids keep their order."""
        ids = self.ids.finish()
        order = np.argsort(keys(ids), kind="stable")
        return ids[order], order


def keys(ids: AnyArray) -> AnyArray:
    """What the ids are sorted by: themselves, or where 8 bytes hold them the same bits as integers.

    Integers are compared several times faster, and any total order serves a look-up.
    """
    return ids.view("<u8") if ids.dtype.itemsize == 8 else ids


def fixed_width(text: AnyArray, lengths: AnyArray, width: int) -> AnyArray:
    """Strings that stand one after another in `text` (uint8) as an array of `width` bytes each."""
    cells = np.zeros((lengths.size, width), np.uint8)
    cells[np.arange(width) < lengths[:, np.newaxis]] = text
    return cells.view(f"S{width}")[:, 0]


def _shares(labels: Iterable[str] | Mapping[str, float] | None) -> dict[str, float]:
    """Distinct label -> weight > 0; unknown alone where there is none."""
    if labels is None:
        return {UNKNOWN: 1.0}
    if not isinstance(labels, Mapping):
        return {label: 1.0 for label in labels if label} or {UNKNOWN: 1.0}
    for label, weight in labels.items():
        number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not number or not 0.0 <= weight <= HEAVIEST:
            raise ValueError(f"the weight of {shown(label)} is {shown(weight)}, expected a number >= 0")
    return {label: float(weight) for label, weight in labels.items() if weight} or {UNKNOWN: 1.0}


def _check_adds_up(probabilities: Mapping[str, float]) -> None:
    total = math.fsum(probabilities.values())
    if abs(total - 1.0) > ADDS_UP:
        shares = listed([f"{label} {share:g}" for label, share in probabilities.items()])
        raise ValueError(f"predicted labels that do not add up: {shares} make {total:.6g}, expected 1")


def _narrow(weights: AnyArray) -> AnyArray:
    """As 32-bit floats where that loses nothing (counts do not), so that measures stay exact."""
    single = weights.astype(np.float32)
    return single if bool((single == weights).all()) else weights
