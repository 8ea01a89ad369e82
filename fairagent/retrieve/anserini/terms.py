"""The terms of documents of an index of Anserini's: from its document vectors, or from its texts, analyzed again."""

import sys
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from fairagent.clean import logger
from fairagent.retrieve.anserini import loops
from fairagent.retrieve.anserini.opened import AnseriniIndex
from fairagent.retrieve.base import full_text
from fairagent.retrieve.java import using_java
from fairagent.retrieve.queries import CONTENTS
from fairagent.retrieve.relevance_model import Postings
from fairagent.retrieve.words import WORD
from fairagent.types import Document

Held = tuple[NDArray[np.uint32], NDArray[np.uint32]]
"""The terms of a document, by number, and how often each occurs."""
REMEMBERED = 20_000
"""Documents whose terms are remembered, since the lists of a search overlap: about 16 MB of 100 terms each."""

log = logger(__name__)


def has_vectors(index: AnseriniIndex) -> bool:
    """Whether an index stores the terms of each document (document vectors)."""
    return index.fields[CONTENTS].vectors


class IndexTerms:
    """What documents hold, by number; terms are numbered as they are met.

    Memory grows with the distinct terms met, by about 200 bytes each, and holds the terms of the last `REMEMBERED`
    documents. Threads may share it.
    """

    def __init__(
        self, index: AnseriniIndex, analyze: Callable[[str], list[str]], texts: Callable[[int], Document] | None
    ) -> None:
        """Take the index, its analyzer, and what tells a document by its number, where texts are stored."""
        self._index, self._analyze, self._texts = index, analyze, texts
        self._vectors = has_vectors(index)
        self._numbers: dict[str, int] = {}
        self._terms: list[str] = []
        self._frequencies: list[int] = []
        self._examples: list[int] = []
        """A document that holds the term."""
        self._words: dict[int, str] = {}
        self._held: dict[int, Held] = {}
        self._lock = threading.Lock()
        if not self._vectors:
            log.warning(
                "the index at %s has no document vectors: terms come from its stored texts, analyzed again, which is "
                "slower",
                index.folder,
            )

    def postings(self, documents: Sequence[int]) -> Postings:
        """The terms of the documents with these numbers."""
        with self._lock:
            held = {number: self._held[number] for number in documents if number in self._held}
        if missing := [number for number in dict.fromkeys(documents) if number not in held]:
            held |= self._read(missing)
        terms = np.concatenate([held[number][0] for number in documents] or [np.zeros(0, np.uint32)])
        counts = np.concatenate([held[number][1] for number in documents] or [np.zeros(0, np.uint32)])
        row = np.repeat(np.arange(len(documents)), [len(held[number][0]) for number in documents])
        vocabulary, term = np.unique(terms.astype(np.intp), return_inverse=True)
        count = counts.astype(np.float64)
        length = np.bincount(row, weights=count, minlength=len(documents)).astype(np.float64)
        shares = np.array([self._frequencies[number] for number in vocabulary.tolist()], np.float64) / len(self._index)
        return Postings(row, term, count, length, vocabulary, shares)

    def _read(self, documents: Sequence[int]) -> dict[int, Held]:
        """The terms of documents that are not remembered; they are from now on, in the place of the oldest."""
        terms, counts = self._stored(documents) if self._vectors else self._analyzed(documents)
        ends = counts == 0
        row = np.cumsum(ends)[~ends]
        numbers = self._numbered(terms, [documents[place] for place in row.tolist()]).astype(np.uint32)
        stops = np.searchsorted(row, np.arange(1, len(documents)))
        parts = zip(np.split(numbers, stops), np.split(counts[~ends].astype(np.uint32), stops), strict=True)
        found = dict(zip(documents, parts, strict=True))
        with self._lock:
            self._held |= found
            for number in list(self._held)[: max(0, len(self._held) - REMEMBERED)]:
                del self._held[number]
        return found

    def words(self, vocabulary: NDArray[np.intp]) -> list[str]:
        """A word for each term number: one of a stored text that is analyzed to it, or the term where it is one."""
        return [self._word(number) for number in vocabulary.tolist()]

    def _stored(self, documents: Sequence[int]) -> tuple[list[str], NDArray[np.int64]]:
        with using_java(), self._index.sound():
            return loops.term_vectors(self._index.reader, documents)

    def _analyzed(self, documents: Sequence[int]) -> tuple[list[str], NDArray[np.int64]]:
        assert self._texts is not None  # or the index has vectors
        terms: list[str] = []
        counts: list[int] = []
        for number in documents:
            found = Counter(self._analyze(full_text(self._texts(number))))
            terms += found
            counts += [*found.values(), 0]
        return terms, np.array(counts, dtype=np.int64)

    def _numbered(self, terms: Sequence[str], documents: Sequence[int]) -> NDArray[np.intp]:
        with self._lock:
            new = {term: document for term, document in zip(terms, documents, strict=True) if term not in self._numbers}
            if new:
                with using_java(), self._index.sound():
                    found = loops.document_frequencies(self._index.reader, list(new)).tolist()
                self._frequencies += [max(1, frequency) for frequency in found]
                self._examples += new.values()
                self._numbers.update(zip(new, range(len(self._terms), len(self._terms) + len(new)), strict=True))
                self._terms += new
            return np.array([self._numbers[term] for term in terms], dtype=np.intp)

    def _word(self, number: int) -> str:
        word = self._words.get(number)
        if word is None:
            term = self._terms[number]
            tried = (*self._near(term, self._examples[number]), term)
            word = next((one for one in tried if self._analyze(one) == [term]), "")
            self._words[number] = word
        return word

    def _near(self, term: str, document: int) -> list[str]:
        """The words of a document that begin as the term does, the shortest first."""
        if self._texts is None:
            return []
        words = sorted({word.lower() for word in WORD.findall(full_text(self._texts(document)))})
        stem = term[: max(1, len(term) - 1)]
        return sorted(words[bisect_left(words, stem) : bisect_left(words, stem + chr(sys.maxunicode))], key=len)
