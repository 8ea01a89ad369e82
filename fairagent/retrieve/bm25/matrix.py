"""The matrix of terms and documents on disk: counts by term (columns) and by document (rows), mapped.

Columns serve queries: the documents of a term, rising. Rows serve feedback: the terms of a document, rising. Terms are
numbered in the order of their UTF-8 bytes, documents in the order of the collection, so that the files of an index
depend on its documents alone, and not on how it was built. The documents themselves are stored as a JSON array each.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import IndexMismatch
from fairagent.retrieve.catalog import Strings, encoded, mapped
from fairagent.retrieve.manifest import Manifest
from fairagent.retrieve.relevance_model import Postings
from fairagent.storage.readers import parse_json
from fairagent.types import Document

PARTS = ("starts", "numbers", "counts")
TEXTS = "texts"


@dataclass(frozen=True, slots=True, eq=False)
class Sparse:
    """Lists of numbers with counts: list i is `numbers[starts[i]:starts[i + 1]]`, rising, with the `counts` there."""

    starts: NDArray[np.int64]
    numbers: NDArray[np.int32]
    counts: NDArray[np.uint16]

    @classmethod
    def load(cls, folder: Path, name: str) -> Sparse:
        """Map the files of this name; raises OSError or ValueError where sizes do not fit."""
        starts, numbers, counts = (mapped(folder / f"{name}.{part}.npy") for part in PARTS)
        if not len(starts) or starts[0] or not len(numbers) == len(counts) == int(starts[-1]):
            raise ValueError(f"{name}: {len(starts)} starts, {len(numbers)} numbers, {len(counts)} counts do not fit")
        return cls(starts, numbers, counts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def entries(self, lists: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The places of all entries of these lists, one list after the other, and the size of each list.

        Raises ValueError where the starts are not those of an index.
        """
        starts, stops = self.starts[lists].astype(np.intp), self.starts[lists + 1].astype(np.intp)
        sizes = stops - starts
        if len(lists) and not (starts.min() >= 0 and stops.max() <= len(self.numbers) and sizes.min() >= 0):
            raise ValueError("the starts of lists are not in their order")
        ends = np.cumsum(sizes)
        return np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - sizes), sizes), sizes


class TermMatrix:
    """The matrix of an index: its vocabulary, columns (by term), rows (by document) and the documents' lengths."""

    def __init__(self, folder: Path) -> None:
        """Map the files in `folder`; raises OSError or ValueError where they are damaged."""
        self._folder = folder
        self.columns, self.rows = Sparse.load(folder, "columns"), Sparse.load(folder, "rows")
        self.lengths: NDArray[np.int32] = mapped(folder / "lengths.npy")
        self._terms, self._words = Strings.load(folder, "terms"), Strings.load(folder, "words")
        if not (len(self.columns) == len(self._terms) == len(self._words) and len(self.rows) == len(self.lengths)):
            raise ValueError(
                f"{len(self.columns)} columns for {len(self._terms)} terms, {len(self.rows)} rows for "
                f"{len(self.lengths)} documents"
            )
        if self.lengths.min(initial=0) < 0:
            raise ValueError("lengths.npy: a document cannot have fewer than 0 terms")

    @property
    def frequencies(self) -> NDArray[np.int64]:
        """In how many documents each term is, (v,)."""
        return np.diff(self.columns.starts)

    def term(self, number: int) -> str:
        """The term of this number."""
        with Manifest.reading(self._folder):
            return self._terms[number]

    def number(self, term: str) -> int:
        """The number of a term, -1 where no document holds it."""
        size = len(self._terms)
        # Code points are in the order of their UTF-8 bytes.
        at = bisect_left(range(size), term, key=self.term)
        return at if at < size and self.term(at) == term else -1

    def words(self, vocabulary: NDArray[np.intp]) -> list[str]:
        """A word for each term number: one that the analyzer turns into the term, "" where none is known."""
        with Manifest.reading(self._folder):
            return [self._words[number] for number in vocabulary.tolist()]

    def column(self, number: int) -> tuple[NDArray[np.int32], NDArray[np.uint16]]:
        """The documents that hold a term, and how often; IndexMismatch where that cannot be."""
        start, stop = self.columns.starts[number : number + 2].tolist()
        if not 0 <= start < stop <= min(start + len(self.rows), len(self.columns.numbers)):
            raise self._damaged("columns.starts.npy")
        documents, counts = self.columns.numbers[start:stop], self.columns.counts[start:stop]
        if not (0 <= documents.min() <= documents.max() < len(self.rows) and counts.min()):
            raise self._damaged("columns")
        return documents, counts

    def postings(self, numbers: NDArray[np.intp]) -> Postings:
        """The terms of the documents with these numbers; IndexMismatch where what is there cannot be."""
        with Manifest.reading(self._folder):
            at, sizes = self.rows.entries(numbers)
        terms = self.rows.numbers[at]
        if len(terms) and not 0 <= terms.min() <= terms.max() < len(self.columns):
            raise self._damaged("rows.numbers.npy")
        if not self.rows.counts[at].all():
            raise self._damaged("rows.counts.npy")
        vocabulary, term = self._renumbered(terms)
        share = self.frequencies_of(vocabulary) / max(1, len(self.rows))
        row = np.repeat(np.arange(len(numbers)), sizes)
        count, length = self.rows.counts[at].astype(np.float64), self.lengths[numbers].astype(np.float64)
        return Postings(row, term, count, length, vocabulary, share)

    def frequencies_of(self, vocabulary: NDArray[np.intp]) -> NDArray[np.int64]:
        """In how many documents each of these terms is; IndexMismatch where that cannot be."""
        sizes: NDArray[np.int64] = self.columns.starts[vocabulary + 1] - self.columns.starts[vocabulary]
        if len(sizes) and not 0 < sizes.min() <= sizes.max() <= len(self.rows):
            raise self._damaged("columns.starts.npy")
        return sizes

    def _damaged(self, name: str) -> IndexMismatch:
        return Manifest.damaged(self._folder, f"{name} holds what cannot be")

    def _renumbered(self, terms: NDArray[np.int32]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The distinct terms in order, and each term's place among them."""
        size = len(self.columns)
        if size > 4 * len(terms):
            few, place = np.unique(terms, return_inverse=True)
            return few.astype(np.intp), place
        # Marking is ten times faster than sorting, as long as the vocabulary is not much larger than the list.
        marks = np.zeros(size, dtype=np.intp)
        marks[terms] = 1
        distinct = np.flatnonzero(marks)
        marks[distinct] = np.arange(len(distinct))
        return distinct, marks[terms]


def stored(document: Document) -> bytes:
    """A document as it is stored; raises DataError where it holds half of a surrogate pair."""
    fields = [document.id, document.title, document.text, dict(document.extra)]
    return encoded(document.id, json.dumps(fields, ensure_ascii=False))


class Texts:
    """The stored documents of an index by their numbers."""

    def __init__(self, folder: Path) -> None:
        """Map the files in `folder`; raises OSError or ValueError where they are damaged."""
        self._folder, self._lines = folder, Strings.load(folder, TEXTS)

    def __len__(self) -> int:
        return len(self._lines)

    def document(self, number: int) -> Document:
        """The document of this number; IndexMismatch where what is there is none."""
        with Manifest.reading(self._folder):
            id, title, text, extra = parse_json(self._lines[number])
            return Document(id, text, title, extra)
