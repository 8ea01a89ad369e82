"""One dimension of a group table as compact arrays, and its membership matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.types import FloatArray

IntArray = NDArray[np.int64]
AnyArray = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Column:
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

    def relabeled(self, labels: Sequence[str]) -> Column:
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
