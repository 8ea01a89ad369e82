"""Blocks of analyzed documents, which a build makes one by one, and joins to the matrix of an index at its end."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_array

from fairagent.retrieve.bm25.analysis import WordAnalyzer, open_analyzer
from fairagent.retrieve.bm25.matrix import PARTS, TEXTS, Sparse, TermMatrix
from fairagent.retrieve.catalog import ArrayWriter, Strings, mapped, write_lists
from fairagent.storage.arrays import write_array
from fairagent.storage.digests import record_files
from fairagent.storage.files import force, remove_folder

COUNT = np.uint16
MOST = int(np.iinfo(COUNT).max)
"""A word that a document holds more often counts as so many."""
NO_TERM = -1
"""The number of a word that is no term."""


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some documents after another, analyzed: the `columns` of their own `terms`, which are in order.

    Documents are numbered from 0; `lengths` (n,) are their numbers of terms.
    """

    terms: Sequence[str] | Strings
    columns: Sparse
    lengths: NDArray[np.int32]

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
        columns = _columns(documents, place[numbers], counts.astype(np.int64), (len(lengths), len(terms)))
        return cls([terms[number] for number in order], columns, lengths)

    @classmethod
    def load(cls, place: Path) -> Block:
        """Map what `save` wrote."""
        columns = Sparse(*(mapped(place / f"{part}.npy") for part in PARTS))
        return cls(Strings.load(place, "terms"), columns, mapped(place / "lengths.npy"))

    def save(self, place: Path, lines: Sequence[str]) -> None:
        """Write the block with the stored documents, so that it is there as a whole or not at all."""
        new = place.with_name(f"{place.name}.new")
        remove_folder(new)
        new.mkdir()
        Strings.save(new, "terms", self.terms)
        for part in PARTS:
            write_array(new / f"{part}.npy", getattr(self.columns, part))
        write_array(new / "lengths.npy", self.lengths)
        Strings.save(new, TEXTS, lines)
        record_files(new)
        for path in (*new.iterdir(), new):
            force(path)
        new.rename(place)
        force(place.parent)

    def with_rows(self, fresh: NDArray[np.intp], rows: NDArray[np.intp], matrix: TermMatrix) -> Block:
        """With the `rows` (n,) of an earlier index, where not -1, between its documents, at the places `fresh`."""
        places = np.flatnonzero(rows >= 0)
        of = matrix.postings(rows[places])
        names = {term: number for number, term in enumerate(self.terms)}
        own = [names.setdefault(matrix.term(number), len(names)) for number in of.vocabulary.tolist()]
        lengths = np.zeros(len(rows), np.int32)
        lengths[fresh], lengths[places] = self.lengths, of.length.astype(np.int32)
        term = np.repeat(np.arange(len(self.terms)), np.diff(self.columns.starts))
        return Block.of_entries(
            list(names),
            np.concatenate([fresh[self.columns.numbers], places[of.row]]),
            np.concatenate([term, np.array(own, np.int64)[of.term]]),
            np.concatenate([self.columns.counts, of.count.astype(COUNT)]),
            lengths,
        )


def _columns(
    documents: NDArray[np.integer[Any]],
    terms: NDArray[np.integer[Any]],
    counts: NDArray[np.integer[Any]],
    shape: tuple[int, int],
) -> Sparse:
    """The columns of a matrix of `shape` (documents, terms) with these entries; those of one place are added up."""
    matrix = coo_array((counts, (documents, terms)), shape=shape).tocsc()
    matrix.sort_indices()
    capped = np.minimum(matrix.data, MOST).astype(COUNT)
    return Sparse(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), capped)


class _Numbers(dict[str, int]):
    """Word -> the number of its term, `NO_TERM` for a stop word; terms are numbered as they are met."""

    def __init__(self, term: Callable[[str], str]) -> None:
        super().__init__()
        self._term, self.terms = term, dict[str, int]()

    def __missing__(self, word: str) -> int:
        term = self._term(word)
        number = self.terms.setdefault(term, len(self.terms)) if term else NO_TERM
        self[word] = number
        return number


def analyzed(name: str, contents: Sequence[str]) -> Block:
    """The block of these texts under the analyzer of this name."""
    analyzer = open_analyzer(name)
    words, term = (analyzer.split, analyzer.term) if isinstance(analyzer, WordAnalyzer) else (analyzer.terms, str)
    numbers = _Numbers(term)
    tokens, sizes = array("i"), array("q")
    for text in contents:
        before = len(tokens)
        tokens.extend(map(numbers.__getitem__, words(text)))
        sizes.append(len(tokens) - before)
    document = np.repeat(np.arange(len(contents)), np.array(sizes, np.int64))
    number = np.array(tokens, np.int64)
    document, number = document[number != NO_TERM], number[number != NO_TERM]
    lengths = np.bincount(document, minlength=len(contents)).astype(np.int32)
    return Block.of_entries(list(numbers.terms), document, number, np.ones(len(number), COUNT), lengths)


class Blocks:
    """What the blocks of a build come to, written as the matrix of an index with as much memory as one block needs.

    `read` gives a block by its number; `firsts` (b + 1,) are the numbers of their first documents, and of all.
    """

    def __init__(self, read: Callable[[int], Block], firsts: Sequence[int], together: int, folder: Path) -> None:
        """`together` is how many entries are sorted at once; `folder` has room for a file that is needed until then."""
        self._read, self._firsts, self._together = read, firsts, together
        count = len(firsts) - 1
        self.vocabulary = sorted(set().union(*(read(number).terms for number in range(count))))
        places = {term: place for place, term in enumerate(self.vocabulary)}
        # Both are in order, so each block's terms rise in the whole vocabulary.
        ends = [0]
        with ArrayWriter(folder / "places.npy", np.int32) as writer:
            for number in range(count):
                writer.add(own := np.fromiter((places[term] for term in read(number).terms), np.int32))
                ends.append(ends[-1] + len(own))
        every: NDArray[np.int32] = mapped(folder / "places.npy")
        self._places = [every[start:stop] for start, stop in pairwise(ends)]

    def write(self, folder: Path) -> None:
        """Write columns, rows, lengths and terms."""
        write_sparse(folder, "rows", map(self._rows, range(len(self._places))))
        write_sparse(folder, "columns", self._all_columns())
        with ArrayWriter(folder / "lengths.npy", np.int32) as lengths:
            for number in range(len(self._places)):
                lengths.add(self._read(number).lengths)
        Strings.save(folder, "terms", self.vocabulary)

    def _rows(self, number: int) -> Sparse:
        """The rows of a block's documents, in the whole vocabulary."""
        block = self._read(number)
        of = block.columns
        rows = csc_array((of.counts, of.numbers, of.starts), shape=(len(block.lengths), len(of))).tocsr()
        return Sparse(rows.indptr.astype(np.int64), self._places[number][rows.indices], rows.data)

    def _all_columns(self) -> Iterator[Sparse]:
        """The columns of all terms, a range of terms after another."""
        sizes = np.zeros(len(self.vocabulary), np.int64)
        for number, places in enumerate(self._places):
            sizes[places] += np.diff(self._read(number).columns.starts)
        ends = np.cumsum(sizes)
        first = 0
        while first < len(sizes):
            before = ends[first] - sizes[first]
            last = max(first + 1, int(np.searchsorted(ends, before + self._together, side="right")))
            yield self._range(first, last)
            first = last

    def _range(self, first: int, last: int) -> Sparse:
        """The columns of the terms from `first` to before `last`."""
        entries = []
        for number, places in enumerate(self._places):
            of = self._read(number).columns
            begin, end = np.searchsorted(places, (first, last)).tolist()
            part = slice(int(of.starts[begin]), int(of.starts[end]))
            terms = np.repeat(places[begin:end] - first, np.diff(of.starts[begin : end + 1]))
            entries.append((of.numbers[part] + self._firsts[number], terms, of.counts[part]))
        documents, terms, counts = map(np.concatenate, zip(*entries, strict=True))
        return _columns(documents, terms, counts, (self._firsts[-1], last - first))


def write_sparse(folder: Path, name: str, pieces: Iterable[Sparse]) -> None:
    """Write lists, which come in pieces one after the other, into `folder` for `Sparse.load`."""
    arrays = ((piece.starts, piece.numbers, piece.counts) for piece in pieces)
    write_lists(folder, name, {"numbers": np.int32, "counts": COUNT}, arrays)
