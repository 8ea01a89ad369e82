"""Which terms each document holds: a forward index beside Lucene's inverted one.

Feedback, text MMR and the like need the terms of hundreds of documents a query. Reading Lucene's term vectors
from Python costs 0.1 to 2 ms a document; these arrays cost microseconds and are mapped from disk.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fairagent.retrieve.lucene.strings import Strings, mapped
from fairagent.retrieve.relevance_model import Postings

WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")


class TermVectors:
    """Terms and counts of every document by its number, each term's document frequency, and a word for it."""

    def __init__(self, folder: Path) -> None:
        self._starts = mapped(folder / "vectors.starts.npy")
        self._terms = mapped(folder / "vectors.terms.npy")
        self._counts = mapped(folder / "vectors.counts.npy")
        self._lengths = mapped(folder / "vectors.lengths.npy")
        self._document_frequency = mapped(folder / "vectors.df.npy")
        self._words = Strings.load(folder, "words")

    def postings(self, numbers: NDArray[np.intp]) -> Postings:
        """The terms of the documents with these numbers."""
        starts = self._starts[numbers]
        sizes = (self._starts[numbers + 1] - starts).astype(np.intp)
        row = np.repeat(np.arange(len(numbers)), sizes)
        # Position of every entry: its row's start plus its place within the row.
        ends = np.cumsum(sizes)
        at = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts.astype(np.intp) - (ends - sizes), sizes)
        vocabulary, term = np.unique(self._terms[at], return_inverse=True)
        share = self._document_frequency[vocabulary] / max(1, len(self._lengths))
        counts = self._counts[at].astype(np.float64)
        return Postings(row, term, counts, self._lengths[numbers], vocabulary.astype(np.intp), share)

    def words(self, vocabulary: NDArray[np.intp]) -> list[str]:
        """A word for each term number: one that the analyzer turns into the term, "" where none was found."""
        return [self._words[number] for number in vocabulary.tolist()]


class TermVectorsWriter:
    """Collects the forward index while documents are indexed; `analyze` turns a word into its terms."""

    def __init__(self, analyze: Callable[[str], list[str]]) -> None:
        self._analyze = analyze
        self._number: dict[str, int] = {}
        self._words: list[str] = []
        self._starts = array("Q", [0])
        self._terms = array("I")
        self._counts = array("H")
        self._lengths = array("I")

    def add(self, terms: Sequence[str], text: str) -> None:
        """Add the next document: its analyzed terms and the text that they come from."""
        counts = Counter(terms)
        new = [term for term in counts if term not in self._number]
        if new:
            self._learn(new, text)
        self._terms.extend(self._number[term] for term in counts)
        self._counts.extend(min(count, 65535) for count in counts.values())
        self._starts.append(len(self._terms))
        self._lengths.append(len(terms))

    def _learn(self, new: list[str], text: str) -> None:
        """Number the new terms, each with a word of the text that is analyzed to it ("" where none is)."""
        words = sorted({word.lower() for word in WORD.findall(text)}, key=lambda word: (len(word), word))
        for term in new:
            self._number[term] = len(self._number)
            stem = term[: max(1, len(term) - 1)]
            near = [*(word for word in words if word.startswith(stem)), term]
            self._words.append(next((word for word in near if self._analyze(word) == [term]), ""))

    def save(self, folder: Path) -> None:
        """Write everything that TermVectors maps."""
        terms = np.frombuffer(self._terms, dtype=np.uint32) if self._terms else np.zeros(0, np.uint32)
        counts = np.frombuffer(self._counts, dtype=np.uint16) if self._counts else np.zeros(0, np.uint16)
        size = len(self._number)
        np.save(folder / "vectors.starts.npy", np.frombuffer(self._starts, dtype=np.uint64).astype(np.int64))
        np.save(folder / "vectors.terms.npy", terms)
        np.save(folder / "vectors.counts.npy", counts)
        lengths = np.frombuffer(self._lengths, dtype=np.uint32) if self._lengths else np.zeros(0, np.uint32)
        np.save(folder / "vectors.lengths.npy", lengths.astype(np.float64))
        np.save(folder / "vectors.df.npy", np.bincount(terms, minlength=size).astype(np.int64))
        Strings.save(folder, "words", self._words)
