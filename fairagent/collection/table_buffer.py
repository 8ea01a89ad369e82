"""One dimension of a group table as compact arrays, and the buffers from which tables are built row by row."""

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

from fairagent.collection.bounds import error_text
from fairagent.collection.records import Faults, listed, shown
from fairagent.errors import UsageError
from fairagent.settings.faults import no_such
from fairagent.types import UNKNOWN, FloatArray
from fairagent.types.clean import label_text

IntArray = NDArray[np.int64]
AnyArray = NDArray[Any]
Labels = str | Iterable[str] | Mapping[str, float] | None
"""What a document is in one dimension: nothing, a label, several (equal shares), or label -> weight."""

MOST_LABELS = 65_535
HEAVIEST = 1e300
"""Larger weights could add up to infinity."""
ADDS_UP = 1e-3
"""How far from 1 predicted probabilities may add up: they are written with few digits."""


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

    def relabeled(self, labels: Sequence[str]) -> LabelColumn:
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
    """The concatenated ranges starts[i] .. starts[i] + counts[i] - 1.

    >>> _ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = np.cumsum(counts)
    offsets: IntArray = np.repeat(starts - (ends - counts), counts)
    return offsets + np.arange(offsets.size)


def _code_type(labels: int) -> type[np.uint8] | type[np.uint16]:
    return np.uint8 if labels < 256 else np.uint16


class _ColumnBuffer:
    """The labels of one dimension, row by row, and where they are `typed`, whether a document is of its type."""

    def __init__(self, labels: Sequence[str] | None, normalize: bool, predicted: bool, typed: bool) -> None:
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
        shares = _weights(labels, self.predicted)
        if self.weights is None and any(weight != 1.0 for weight in shares.values()):
            self.weights = array("d", [1.0]) * len(self.codes)
        self.codes.extend([self._code(label) for label in shares])
        self.counts.append(len(shares))
        if self.weights is not None:
            self.weights.extend(shares.values())

    def finish(self, order: IntArray) -> LabelColumn:
        """The column with its rows in `order`, and the row of absent documents after them."""
        labels = [label for label in self.code if label != UNKNOWN]
        codes = np.frombuffer(self.codes, np.uint16).astype(_code_type(len(labels)))
        counts = np.frombuffer(self.counts, np.uint16).astype(np.int64)
        weights: AnyArray | None = None if self.weights is None else np.frombuffer(self.weights, np.float64)
        types = None if self.types is None else np.append(np.frombuffer(self.types, np.bool_)[order], False)
        indptr = None
        if bool((counts == 1).all()) and (weights is None or self.normalize):
            entries, weights = order, None
        else:
            entries = _ranges((np.cumsum(counts) - counts)[order], counts[order])
            indptr = np.zeros(counts.size + 2, np.uint32)
            np.cumsum(np.append(counts[order], 1), out=indptr[1:])
        if weights is not None:
            weights = np.append(weights[entries], 1.0)
            # 32 bits where nothing is lost (counts lose nothing), so that measures stay exact.
            single = weights.astype(np.float32)
            weights = single if bool((single == weights).all()) else weights
        codes = np.append(codes[entries], codes.dtype.type(0))
        column = LabelColumn(tuple(labels), codes, indptr, weights, self.normalize, types, self.predicted)
        return column if self.closed else column.relabeled(sorted(labels))

    def _code(self, label: str) -> int:
        code = self.code.get(label)
        if code is None:
            code = len(self.code)
            if self.closed:
                raise ValueError(f"{shown(label)} is none of its labels ({listed(list(self.code)[1:])})")
            if code > MOST_LABELS:
                raise ValueError(f"more than {MOST_LABELS} labels; is this the right column?")
            self.code[label] = code
        return code


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
        self._ids = bytearray()
        self._lengths = array("H")
        self.lines = array("I")
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
        ids = fixed_width(np.frombuffer(self._ids, np.uint8), lengths, max(8, int(lengths.max())))
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


def _weights(labels: Labels, predicted: bool) -> dict[str, float]:
    """Distinct label -> weight > 0; unknown alone where there is none."""
    if labels is None or isinstance(labels, str):
        return {labels or UNKNOWN: 1.0}
    if not isinstance(labels, Iterable):
        return {label_text(labels): 1.0}
    weights = labels if isinstance(labels, Mapping) else {label: 1.0 for label in labels if label not in (None, "")}
    for label, weight in weights.items():
        number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not number or not 0.0 <= weight <= HEAVIEST:
            raise ValueError(f"the weight of {shown(label)} is {shown(weight)}, expected a number >= 0")
    if predicted and weights and abs((total := math.fsum(weights.values())) - 1.0) > ADDS_UP:
        shares = listed([f"{label} {share:g}" for label, share in weights.items()])
        raise ValueError(f"predicted labels that do not add up: {shares} make {total:.6g}, expected 1")
    return {label_text(label): float(weight) for label, weight in weights.items() if weight} or {UNKNOWN: 1.0}
