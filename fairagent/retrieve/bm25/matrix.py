"""The matrix of terms and documents on disk: counts by term (columns) and by document (rows), mapped.

Columns serve queries: the documents of a term, rising. Rows serve feedback: the terms of a document, rising. Terms are
numbered in the order of their UTF-8 bytes, documents in the order of the collection, so that the files of an index
depend on its documents alone, and not on how it was built.

The documents as an index stores them: a JSON object each, one after the other in one mapped array of bytes.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import IndexMismatch
from fairagent.retrieve.bm25.manifest import REMEDY
from fairagent.retrieve.catalog import ArrayWriter, Strings, mapped
from fairagent.retrieve.relevance_model import Postings
from fairagent.storage.arrays import write_array
from fairagent.storage.readers import parse_json
from fairagent.types import Document

COUNT = np.uint16
MOST = int(np.iinfo(COUNT).max)
"""A word that a document holds more often counts as so many."""


@dataclass(frozen=True, slots=True, eq=False)
class Sparse:
    """Lists of numbers with counts: list i is `numbers[starts[i]:starts[i + 1]]`, rising, with the `counts` there."""

    starts: NDArray[np.int64]
    numbers: NDArray[np.int32]
    counts: NDArray[np.uint16]

    @classmethod
    def load(cls, folder: Path, name: str) -> Sparse:
        """Map what `write_sparse` wrote; raises OSError or ValueError where sizes do not fit."""
        starts, numbers, counts = (mapped(folder / f"{name}.{part}.npy") for part in ("starts", "numbers", "counts"))
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


def write_sparse(folder: Path, name: str, pieces: Iterator[Sparse]) -> None:
    """Write lists, which come in pieces one after the other, into `folder` for `Sparse.load`."""
    with (
        ArrayWriter(folder / f"{name}.starts.npy", np.int64) as starts,
        ArrayWriter(folder / f"{name}.numbers.npy", np.int32) as numbers,
        ArrayWriter(folder / f"{name}.counts.npy", COUNT) as counts,
    ):
        at = 0
        starts.add(np.zeros(1, np.int64))
        for piece in pieces:
            starts.add(piece.starts[1:] + at)
            numbers.add(piece.numbers)
            counts.add(piece.counts)
            at += int(piece.starts[-1])


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
        return self._term_at(number)

    def number(self, term: str) -> int:
        """The number of a term, -1 where no document holds it."""
        size = len(self._terms)
        # Code points are in the order of their UTF-8 bytes.
        at = bisect_left(range(size), term, key=self._term_at)
        return at if at < size and self._term_at(at) == term else -1

    def words(self, vocabulary: NDArray[np.intp]) -> list[str]:
        """A word for each term number: one that the analyzer turns into the term, "" where none is known."""
        return [self._read(self._words, number, "words") for number in vocabulary.tolist()]

    def column(self, number: int) -> tuple[NDArray[np.int32], NDArray[np.uint16]]:
        """The documents that hold a term, and how often; IndexMismatch where that cannot be."""
        start, stop = self.columns.starts[number : number + 2].tolist()
        if not 0 <= start < stop <= min(start + len(self.rows), len(self.columns.numbers)):
            raise self.damaged("columns.starts.npy")
        documents, counts = self.columns.numbers[start:stop], self.columns.counts[start:stop]
        if not (0 <= documents.min() <= documents.max() < len(self.rows) and counts.min()):
            raise self.damaged("columns")
        return documents, counts

    def postings(self, numbers: NDArray[np.intp]) -> Postings:
        """The terms of the documents with these numbers; IndexMismatch where what is there cannot be."""
        try:
            at, sizes = self.rows.entries(numbers)
        except ValueError:
            raise self.damaged("rows.starts.npy") from None
        terms = self.rows.numbers[at]
        if len(terms) and not 0 <= terms.min() <= terms.max() < len(self.columns):
            raise self.damaged("rows.numbers.npy")
        if not self.rows.counts[at].all():
            raise self.damaged("rows.counts.npy")
        vocabulary, term = self._renumbered(terms)
        share = self.frequencies_of(vocabulary) / max(1, len(self.rows))
        row = np.repeat(np.arange(len(numbers)), sizes)
        count, length = self.rows.counts[at].astype(np.float64), self.lengths[numbers].astype(np.float64)
        return Postings(row, term, count, length, vocabulary, share)

    def frequencies_of(self, vocabulary: NDArray[np.intp]) -> NDArray[np.int64]:
        """In how many documents each of these terms is; IndexMismatch where that cannot be."""
        found: NDArray[np.int64] = self.columns.starts[vocabulary + 1] - self.columns.starts[vocabulary]
        if len(found) and not 0 < found.min() <= found.max() <= len(self.rows):
            raise self.damaged("columns.starts.npy")
        return found

    def damaged(self, name: str) -> IndexMismatch:
        """The error for a file that holds what cannot be."""
        return IndexMismatch(f"the index at {self._folder} is damaged ({name} holds what cannot be); {REMEDY}")

    def _renumbered(self, terms: NDArray[np.int32]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The distinct terms in order, and each term's place among them."""
        size = len(self.columns)
        if size > 4 * len(terms):
            distinct, place = np.unique(terms, return_inverse=True)
            return distinct.astype(np.intp), place
        # Marking is ten times faster than sorting, as long as the vocabulary is not much larger than the list.
        marks = np.zeros(size, dtype=np.intp)
        marks[terms] = 1
        held = np.flatnonzero(marks)
        marks[held] = np.arange(len(held))
        return held, marks[terms]

    def _term_at(self, number: int) -> str:
        return self._read(self._terms, number, "terms")

    def _read(self, strings: Strings, number: int, name: str) -> str:
        try:
            return strings[number]
        except ValueError:
            raise self.damaged(name) from None


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some documents after another, analyzed: the `columns` of their own `terms`, which are in order.

    Documents are numbered from 0; `lengths` (n,) are their numbers of terms.
    """

    terms: Sequence[str] | Strings
    columns: Sparse
    lengths: NDArray[np.int32]

    @classmethod
    def of_tokens(
        cls,
        terms: Sequence[str],
        documents: NDArray[np.int64],
        numbers: NDArray[np.int64],
        lengths: NDArray[np.int32],
    ) -> Block:
        """The block of words in any order, each with its document and the number of its term in `terms`."""
        ones = np.ones(len(documents), COUNT)
        return cls.of_entries(terms, documents, numbers, ones, lengths)

    @classmethod
    def of_entries(
        cls,
        terms: Sequence[str],
        documents: NDArray[np.integer[Any]],
        numbers: NDArray[np.integer[Any]],
        counts: NDArray[np.integer[Any]],
        lengths: NDArray[np.int32],
    ) -> Block:
        """The block of entries in any order: document, number of the term in `terms` (distinct), and count.

        Those of one document and term are added up.
        """
        order = sorted(range(len(terms)), key=terms.__getitem__)
        place = np.empty(len(terms), np.int64)
        place[order] = np.arange(len(terms))
        size = max(1, len(lengths))
        key = place[numbers] * size + documents
        by_term = np.argsort(key, kind="stable")
        key = key[by_term]
        first = np.flatnonzero(np.diff(key, prepend=-1))
        summed = np.add.reduceat(counts[by_term], first, dtype=np.int64) if len(first) else np.zeros(0, np.int64)
        starts = np.zeros(len(terms) + 1, np.int64)
        np.cumsum(np.bincount(key[first] // size, minlength=len(terms)), out=starts[1:])
        columns = Sparse(starts, (key[first] % size).astype(np.int32), np.minimum(summed, MOST).astype(COUNT))
        return cls([terms[number] for number in order], columns, lengths)

    @property
    def entries(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.uint16]]:
        """Term, document and count of each entry, by terms."""
        term = np.repeat(np.arange(len(self.terms)), np.diff(self.columns.starts))
        return term, self.columns.numbers, self.columns.counts


class Blocks:
    """What the blocks of a build come to, written as the matrix of an index with as much memory as one block needs.

    `read` gives a block by its number; `firsts` (b + 1,) are the numbers of their first documents, and of all.
    """

    def __init__(self, read: Callable[[int], Block], firsts: Sequence[int], together: int, folder: Path) -> None:
        """`together` is how many entries are sorted at once; `folder` has room for a file that is needed until then."""
        self._read, self._firsts, self._together = read, firsts, together
        names: set[str] = set()
        for number in range(len(firsts) - 1):
            names.update(read(number).terms)
        self.vocabulary = sorted(names)
        places = {term: place for place, term in enumerate(self.vocabulary)}
        # Both are in order, so each block's terms rise in the whole vocabulary.
        ends = [0]
        with ArrayWriter(folder / "places.npy", np.int32) as writer:
            for number in range(len(firsts) - 1):
                writer.add(own := np.fromiter((places[term] for term in read(number).terms), np.int32))
                ends.append(ends[-1] + len(own))
        every: NDArray[np.int32] = mapped(folder / "places.npy")
        self._places = [every[start:stop] for start, stop in pairwise(ends)]

    def write(self, folder: Path) -> None:
        """Write columns, rows, lengths and terms."""
        write_sparse(folder, "rows", map(self._rows, range(len(self._places))))
        write_sparse(folder, "columns", self._columns())
        with ArrayWriter(folder / "lengths.npy", np.int32) as lengths:
            for number in range(len(self._places)):
                lengths.add(self._read(number).lengths)
        Strings.save(folder, "terms", self.vocabulary)

    def _rows(self, number: int) -> Sparse:
        """The rows of a block's documents, in the whole vocabulary."""
        block = self._read(number)
        term, documents, counts = block.entries
        by_document = np.argsort(documents, kind="stable")
        starts = np.zeros(len(block.lengths) + 1, np.int64)
        np.cumsum(np.bincount(documents, minlength=len(block.lengths)), out=starts[1:])
        numbers = self._places[number][term[by_document]]
        return Sparse(starts, numbers, counts[by_document])

    def _columns(self) -> Iterator[Sparse]:
        """The columns of all terms, a range of terms after another."""
        sizes = np.zeros((len(self.vocabulary),), np.int64)
        for number, places in enumerate(self._places):
            sizes[places] += np.diff(self._read(number).columns.starts)
        ends = np.cumsum(sizes)
        first = 0
        while first < len(sizes):
            before = ends[first] - sizes[first]
            last = max(first + 1, int(np.searchsorted(ends, before + self._together, side="right")))
            yield self._range(first, last, sizes[first:last])
            first = last

    def _range(self, first: int, last: int, sizes: NDArray[np.int64]) -> Sparse:
        """The columns of the terms from `first` to before `last`, which have these sizes."""
        starts = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=starts[1:])
        documents, counts = np.empty(starts[-1], np.int32), np.empty(starts[-1], COUNT)
        free = starts[:-1].copy()
        for number, places in enumerate(self._places):
            columns = self._read(number).columns
            begin, end = np.searchsorted(places, (first, last)).tolist()
            own = places[begin:end] - first
            held = np.diff(columns.starts[begin : end + 1])
            offset = int(columns.starts[begin])
            at = np.arange(int(held.sum())) + np.repeat(free[own] - (columns.starts[begin:end] - offset), held)
            part = slice(offset, int(columns.starts[end]))
            documents[at] = columns.numbers[part] + self._firsts[number]
            counts[at] = columns.counts[part]
            free[own] += held
        return Sparse(starts, documents, counts)


BYTES, STARTS = "texts.bytes.npy", "texts.starts.npy"


def stored(document: Document) -> bytes:
    """A document as it is stored."""
    fields = [document.id, document.title, document.text, dict(document.extra)]
    return json.dumps(fields, ensure_ascii=False).encode()


class Texts:
    """The stored documents of an index by their numbers."""

    def __init__(self, folder: Path) -> None:
        """Map what `join` wrote; raises OSError or ValueError where it is damaged."""
        self._folder = folder
        self._bytes, self._starts = mapped(folder / BYTES), mapped(folder / STARTS)
        if not len(self._starts) or self._starts[0] or self._starts[-1] != len(self._bytes):
            raise ValueError(f"{BYTES} has {len(self._bytes):,} bytes, which {STARTS} says otherwise")

    def __len__(self) -> int:
        return len(self._starts) - 1

    def document(self, number: int) -> Document:
        """The document of this number; IndexMismatch where what is there is none."""
        start, stop = self._starts[number : number + 2].tolist()
        try:
            id, title, text, extra = parse_json(self._bytes[start:stop].tobytes().decode())
            return Document(id, text, title, extra)
        except (ValueError, TypeError) as error:
            raise IndexMismatch(f"the index at {self._folder} is damaged; {REMEDY} ({BYTES}: {error})") from None

    @staticmethod
    def save(folder: Path, lines: Sequence[bytes]) -> None:
        """Write the stored documents of a block into its folder."""
        starts = np.zeros(len(lines) + 1, np.int64)
        np.cumsum([len(line) for line in lines], out=starts[1:])
        write_array(folder / BYTES, np.frombuffer(b"".join(lines), np.uint8))
        write_array(folder / STARTS, starts)

    @staticmethod
    def join(blocks: Sequence[Path], folder: Path) -> None:
        """Write the documents of all blocks, in their order, into the folder of an index."""
        with ArrayWriter(folder / BYTES, np.uint8) as contents, ArrayWriter(folder / STARTS, np.int64) as starts:
            starts.add(np.zeros(1, np.int64))
            at = 0
            for block in blocks:
                own, ends = mapped(block / BYTES), mapped(block / STARTS)
                contents.add(own)
                starts.add(ends[1:] + at)
                at += len(own)
