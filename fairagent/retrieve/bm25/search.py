"""BM25 over a sparse matrix: ranked search, scores of a given pool, stored texts, terms of documents.

The matrix is on disk twice, mapped: columns serve queries (the documents of a term, rising), rows serve feedback (the
terms of a document, rising), both with counts. Terms are numbered in the order of their UTF-8 bytes, documents in the
order of the collection, so that the files of an index depend on its documents alone, and not on how it was built. The
documents themselves are stored as a JSON array each.
"""

import json
import math
from bisect import bisect_left
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from operator import index
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import UsageError
from fairagent.retrieve.base import check_length, engine_time, term_weights
from fairagent.retrieve.bm25.analysis import forms, open_analyzer
from fairagent.retrieve.catalog import IdTable, Strings, both, encoded, mapped
from fairagent.retrieve.manifest import Indexable, Manifest
from fairagent.retrieve.relevance_model import Postings
from fairagent.retrieve.where import StoredColumn
from fairagent.storage.readers import parse_json
from fairagent.types import Document, FloatArray, Query, Ranking

TEXTS = "texts"


def stored(document: Document) -> bytes:
    """A document as it is stored; raises DataError where it holds half of a surrogate pair."""
    fields = [document.id, document.title, document.text, dict(document.extra)]
    return encoded(document.id, json.dumps(fields, ensure_ascii=False))


def read_stored(texts: Strings, number: int) -> Document:
    """The stored document of this number; ValueError where what is there is none."""
    id, title, text, extra = parse_json(texts[number])
    return Document(id, text, title, extra)


@dataclass(frozen=True, slots=True, eq=False)
class Sparse:
    """Lists of numbers with counts: list i is `numbers[starts[i]:starts[i + 1]]`, rising, with the `counts` there."""

    starts: NDArray[np.int64]
    numbers: NDArray[np.int32]
    counts: NDArray[np.uint16]

    @classmethod
    def load(cls, folder: Path, name: str) -> Self:
        """Map the files of this name; raises OSError or ValueError where sizes do not fit."""
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


class TermMatrix:
    """The matrix of an index: its vocabulary, columns (by term), rows (by document) and the documents' lengths."""

    def __init__(self, folder: Path) -> None:
        """Map the files in `folder`; raises OSError or ValueError where they are damaged."""
        self._folder = folder
        self.columns, self.rows = Sparse.load(folder, "columns"), Sparse.load(folder, "rows")
        self.lengths: NDArray[np.int32] = mapped(folder / "lengths.npy")
        self._terms, self._words = Strings(folder, "terms"), Strings(folder, "words")
        if not len(self.columns) == len(self._terms) == len(self._words) or len(self.rows) != len(self.lengths):
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

    def number(self, term: str) -> int:
        """The number of a term, -1 where no document holds it."""
        size = len(self._terms)
        with Manifest.reading(self._folder):
            # Code points are in the order of their UTF-8 bytes.
            at = bisect_left(range(size), term, key=self._terms.__getitem__)
            return at if at < size and self._terms[at] == term else -1

    def words(self, vocabulary: NDArray[np.intp]) -> list[str]:
        """A word for each term number: one that the analyzer turns into the term, "" where none is known."""
        with Manifest.reading(self._folder):
            return [self._words[number] for number in vocabulary.tolist()]

    def column(self, number: int) -> tuple[NDArray[np.int32], NDArray[np.uint16]]:
        """The documents that hold a term, and how often; IndexMismatch where that cannot be."""
        start, stop = self.columns.starts[number : number + 2].tolist()
        self._check(0 <= start < stop <= min(start + len(self.rows), len(self.columns.numbers)), "columns.starts.npy")
        documents, counts = self.columns.numbers[start:stop], self.columns.counts[start:stop]
        self._check(0 <= documents.min() <= documents.max() < len(self.rows) and bool(counts.min()), "columns")
        return documents, counts

    def postings(self, numbers: NDArray[np.intp]) -> Postings:
        """The terms of the documents with these numbers; IndexMismatch where what is there cannot be."""
        with Manifest.reading(self._folder):
            at, sizes = self.rows.entries(numbers)
        terms, size = self.rows.numbers[at], len(self.columns)
        self._check(not len(terms) or 0 <= terms.min() <= terms.max() < size, "rows.numbers.npy")
        self._check(bool(self.rows.counts[at].all()), "rows.counts.npy")
        if size > 4 * len(terms):
            distinct, term = np.unique(terms, return_inverse=True)
            vocabulary = distinct.astype(np.intp)
        else:
            # Marking is ten times faster than sorting, as long as the vocabulary is not much larger than the list.
            marks = np.zeros(size, dtype=np.intp)
            marks[terms] = 1
            vocabulary = np.flatnonzero(marks)
            marks[vocabulary] = np.arange(len(vocabulary))
            term = marks[terms]
        share = self.frequencies_of(vocabulary) / max(1, len(self.rows))
        row = np.repeat(np.arange(len(numbers)), sizes)
        count, length = self.rows.counts[at].astype(np.float64), self.lengths[numbers].astype(np.float64)
        return Postings(row, term, count, length, vocabulary, share)

    def frequencies_of(self, vocabulary: NDArray[np.intp]) -> NDArray[np.int64]:
        """In how many documents each of these terms is; IndexMismatch where that cannot be."""
        sizes: NDArray[np.int64] = self.columns.starts[vocabulary + 1] - self.columns.starts[vocabulary]
        self._check(not len(sizes) or 0 < sizes.min() <= sizes.max() <= len(self.rows), "columns.starts.npy")
        return sizes

    def _check(self, holds: bool, name: str) -> None:
        if not holds:
            raise Manifest.damaged(self._folder, f"{name} holds what cannot be")


def stored_lengths() -> NDArray[np.int64]:
    """The 256 lengths that Lucene stores in a byte (`SmallFloat.byte4ToInt`): exact to 40, then four binary digits.

    >>> stored_lengths()[[0, 39, 40, 41, 48, 255]].tolist()
    [0, 39, 40, 42, 56, 2013265944]
    """
    free = 24
    codes = np.arange(256 - free)
    bits, shift = codes & 7, (codes >> 3) - 1
    above = np.where(shift < 0, bits, (bits | 8) << np.maximum(shift, 0))
    return np.concatenate([np.arange(free), free + above]).astype(np.int64)


class BM25Retriever:
    """BM25 (Robertson & Zaragoza 2009) with weighted query terms, as Lucene scores it, to the last digit.

    A document's length counts as Lucene stores it, in one byte. Scores are sums of 32-bit floats, rounded to such at
    the end. Ties are ordered by document id, at the cut as well. Threads may share it.
    """

    def __init__(
        self,
        folder: Path,
        collection: Indexable | None = None,
        analyzer: str = "english",
        k1: float = 0.9,
        b: float = 0.4,
    ) -> None:
        """Open the index in `folder`; with `collection`, only if the index was built from it as it is now.

        Raises BackendUnavailable where there is no index, IndexMismatch where it is another one or damaged.
        """
        if not (0 <= k1 < math.inf and 0 <= b <= 1):
            raise UsageError(f"BM25 needs k1 >= 0 and b from 0 to 1, not k1={k1:g} and b={b:g}")
        with Manifest.opening(folder, collection, analyzer=analyzer) as manifest:
            self.folder, self.manifest = folder, manifest
            self.ids, self.matrix, self._texts = IdTable.load(folder), TermMatrix(folder), Strings(folder, TEXTS)
            if not len(self.ids) == len(self.matrix.lengths) == len(self._texts):
                raise ValueError(f"{len(self.ids)} ids, {len(self.matrix.lengths)} lengths, {len(self._texts)} texts")
        self.analyzer = open_analyzer(manifest.analyzer)
        lengths = self.matrix.lengths
        self._with_terms = int(np.count_nonzero(lengths))
        average = np.float32(lengths.sum(dtype=np.int64) / max(1, self._with_terms))
        # The weight of repeated words by the byte of the length, in 32-bit floats as in BM25Similarity.
        table = stored_lengths()
        with np.errstate(divide="ignore"):
            relative = np.float32(b) * table.astype(np.float32) / max(average, np.float32(1e-9))
            self._repetition = np.float32(1) / (np.float32(k1) * (np.float32(1 - np.float32(b)) + relative))
        self._byte = (np.searchsorted(table, lengths, side="right") - 1).astype(np.uint8)
        # Many queries have the same words.
        self.number = lru_cache(maxsize=100_000)(self._number)
        # The loop needs the terms of the same deep list once an iteration.
        self._postings = lru_cache(maxsize=8)(lambda ids: self.matrix.postings(self.ids.known(ids)))
        # The first time all documents are looked through, which takes as long as a hundred searches.
        every = range(len(self))
        self.column = lru_cache(maxsize=8)(lambda name: StoredColumn.read(name, self.ids, map(self._stored, every)))
        self._among: NDArray[np.intp] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @engine_time("matrix")
    def search(self, query: Query, n: int) -> Ranking:
        """The best `n` documents with a score above 0; empty where no query term occurs in the index."""
        check_length(n)
        return self.ids.best(self._scores(query), min(index(n), len(self)), self._among)

    @engine_time("matrix")
    def among(self, numbers: NDArray[np.intp]) -> Self:
        """The same engine over the documents with these `numbers`, which rise; scores are those of the whole index."""
        restricted = copy(self)
        restricted._among = both(numbers, self._among)
        return restricted

    def _stored(self, number: int) -> Document:
        with Manifest.reading(self.folder):
            return read_stored(self._texts, number)

    @engine_time("matrix")
    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """BM25 of each of the documents `ids` for `query`; 0 where no term matches, DataError for unknown ids."""
        return self._scores(query)[self.ids.known(ids)] if len(ids) else np.zeros(0)

    @engine_time("matrix")
    def bound(self, query: Query) -> float:
        """What no score for `query` reaches: that of its terms without end, those that no document has included."""
        terms = term_weights(query, self.analyzer.terms).items()
        return sum(boost * float(self.idf(self._frequency(term))) for term, boost in terms)

    def _number(self, term: str) -> int:
        """The number of a term, or where no document has it of the first of its other `forms` that one has; else -1."""
        return next((number for form in forms(term) if (number := self.matrix.number(form)) >= 0), -1)

    def _frequency(self, term: str) -> int:
        return len(self.matrix.column(number)[0]) if (number := self.number(term)) >= 0 else 0

    def document(self, id: str) -> Document:
        return self.documents([id])[0]

    @engine_time("texts")
    def documents(self, ids: Sequence[str]) -> list[Document]:
        """The stored documents; raises DataError naming ids that are not in the index."""
        return [self._stored(number) for number in self.ids.known(ids).tolist()]

    @engine_time("terms")
    def document_frequency(self, word: str) -> int:
        """How many documents hold `word` (of several words, the rarest); 0 where none does or it is a stop word."""
        return min(map(self._frequency, self.analyzer.terms(word)), default=0)

    @engine_time("terms")
    def postings(self, ids: Sequence[str]) -> Postings:
        return self._postings(tuple(ids))

    @engine_time("terms")
    def words(self, vocabulary: NDArray[np.intp]) -> list[str]:
        return self.matrix.words(vocabulary)

    def analyze(self, text: str) -> list[str]:
        return self.analyzer.terms(text)

    def idf(self, frequency: int) -> np.float32:
        """How much a term in so many documents counts."""
        return np.float32(math.log(1 + (self._with_terms - frequency + 0.5) / (frequency + 0.5)))

    def saturation(self, documents: NDArray[np.integer[Any]], counts: NDArray[np.uint16]) -> NDArray[np.float32]:
        """What so many repetitions of a word count for in these documents, 0 to 1, (n,)."""
        return np.asarray(1 - 1 / (1 + self._repeated(documents, counts)), np.float32)

    def _repeated(self, documents: NDArray[np.integer[Any]], counts: NDArray[np.uint16]) -> NDArray[np.float32]:
        return np.asarray(counts.astype(np.float32) * self._repetition[self._byte[documents]], np.float32)

    def _scores(self, query: Query) -> FloatArray:
        """The score of every document, (n,)."""
        total = np.zeros(len(self))
        for term, boost in term_weights(query, self.analyzer.terms).items():
            if (number := self.number(term)) >= 0:
                documents, counts = self.matrix.column(number)
                weight = np.float32(boost) * self.idf(len(documents))
                total[documents] += weight - weight / (np.float32(1) + self._repeated(documents, counts))
        # Lucene adds in 64 bits, and rounds the sum.
        return total.astype(np.float32).astype(np.float64)
