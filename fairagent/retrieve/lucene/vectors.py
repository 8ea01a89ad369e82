"""Which terms each document holds: a forward index beside Lucene's inverted one.

Feedback, text MMR and the like need the terms of hundreds of documents a query. Reading Lucene's term vectors
from Python costs 0.1 to 2 ms a document; these arrays cost microseconds and are mapped from disk.
"""

import re
import sys
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import IndexMismatch
from fairagent.retrieve.lucene.growing import GrowingArrays
from fairagent.retrieve.lucene.strings import Strings, mapped
from fairagent.retrieve.relevance_model import Postings

WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
ARRAYS = {
    "vectors.starts.npy": np.int64,
    "vectors.terms.npy": np.uint32,
    "vectors.counts.npy": np.uint16,
    "vectors.lengths.npy": np.float64,
    "words.bytes.npy": np.uint8,
    "words.starts.npy": np.int64,
}
"""The files that grow with the documents; `vectors.df.npy` is counted at the end."""
CHUNK = 1 << 24
"""Entries that are counted at a time."""


class TermVectors:
    """Terms and counts of every document by its number, each term's document frequency, and a word for it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._starts = mapped(folder / "vectors.starts.npy")
        self._terms = mapped(folder / "vectors.terms.npy")
        self._counts = mapped(folder / "vectors.counts.npy")
        self._lengths = mapped(folder / "vectors.lengths.npy")
        self._document_frequency = mapped(folder / "vectors.df.npy")
        # The same words are asked for again and again.
        self._word = lru_cache(maxsize=100_000)(Strings.load(folder, "words").__getitem__)

    def postings(self, numbers: NDArray[np.intp]) -> Postings:
        """The terms of the documents with these numbers; IndexMismatch where what is found cannot be."""
        starts, stops = self._starts[numbers], self._starts[numbers + 1]
        self._expect(not len(numbers) or 0 <= starts.min() <= stops.max() <= len(self._terms), "vectors.starts.npy")
        sizes = (stops - starts).astype(np.intp)
        self._expect(not len(sizes) or sizes.min() >= 0, "vectors.starts.npy")
        row = np.repeat(np.arange(len(numbers)), sizes)
        # Position of every entry: its row's start plus its place within the row.
        ends = np.cumsum(sizes)
        at = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts.astype(np.intp) - (ends - sizes), sizes)
        terms = self._terms[at]
        self._expect(not len(terms) or terms.max() < len(self._document_frequency), "vectors.terms.npy")
        vocabulary, term = self._renumbered(terms)
        share = self._document_frequency[vocabulary] / max(1, len(self._lengths))
        self._expect(bool(((share > 0) & (share <= 1)).all()), "vectors.df.npy")
        lengths = self._lengths[numbers]
        self._expect(bool((lengths >= 0).all() and np.isfinite(lengths).all()), "vectors.lengths.npy")
        counts = self._counts[at].astype(np.float64)
        return Postings(row, term, counts, lengths, vocabulary.astype(np.intp), share)

    def words(self, vocabulary: NDArray[np.intp]) -> list[str]:
        """A word for each term number: one that the analyzer turns into the term, "" where none was found."""
        try:
            return [self._word(number) for number in vocabulary.tolist()]
        except UnicodeDecodeError:
            raise self._damaged("words.bytes.npy") from None

    def _expect(self, possible: bool, name: str) -> None:
        if not possible:
            raise self._damaged(name)

    def _damaged(self, name: str) -> IndexMismatch:
        return IndexMismatch(
            f"the index at {self._folder} is damaged ({name} holds what cannot be); build it again with "
            "`fairagent index --force`"
        )

    def _renumbered(self, terms: NDArray[np.uint32]) -> tuple[NDArray[Any], NDArray[np.intp]]:
        """The distinct terms in order, and each term's place among them."""
        size = len(self._document_frequency)
        if size > 4 * len(terms):
            return np.unique(terms, return_inverse=True)
        # Marking is ten times faster than sorting, as long as the vocabulary is not much larger than the list.
        place = np.zeros(size, dtype=np.intp)
        place[terms] = 1
        vocabulary = np.flatnonzero(place)
        place[vocabulary] = np.arange(len(vocabulary))
        return vocabulary, place[terms]


class TermVectorsWriter:
    """Collects the forward index while documents are indexed; `analyze` turns a word into its terms."""

    def __init__(self, analyze: Callable[[str], list[str]], vocabulary: Iterable[str] = ()) -> None:
        """Take the terms that have numbers already, in their order."""
        self._analyze = analyze
        self._number = {term: number for number, term in enumerate(vocabulary)}
        self._new: list[str] = []
        self._words: list[str] = []
        self._sizes = array("I")
        self._terms = array("I")
        self._counts = array("H")
        self._lengths = array("I")

    @property
    def terms(self) -> int:
        """The number of distinct terms."""
        return len(self._number)

    def add(self, terms: Sequence[str], text: str) -> None:
        """Add the next document: its analyzed terms and the text that they come from."""
        counts = Counter(terms)
        new = [term for term in counts if term not in self._number]
        if new:
            self._learn(new, text)
        self._terms.extend(self._number[term] for term in counts)
        self._counts.extend(min(count, 65535) for count in counts.values())
        self._sizes.append(len(counts))
        self._lengths.append(len(terms))

    def _learn(self, new: list[str], text: str) -> None:
        """Number the new terms, each with a word of the text that is analyzed to it ("" where none is)."""
        words = sorted({word.lower() for word in WORD.findall(text)})
        for term in new:
            self._number[term] = len(self._number)
            stem = term[: max(1, len(term) - 1)]
            # Words with the same start are neighbors: trying them all for each term took half the time of indexing.
            near = words[bisect_left(words, stem) : bisect_left(words, stem + chr(sys.maxunicode))]
            near = [*sorted(near, key=len), term]
            self._words.append(next((word for word in near if self._analyze(word) == [term]), ""))
        self._new.extend(new)

    def flush(self, arrays: GrowingArrays) -> list[str]:
        """Move what was added to the end of `arrays`, and return the terms that are new since the last time."""
        words = [word.encode() for word in self._words]
        _append_starts(arrays, "vectors.starts.npy", arrays["vectors.terms.npy"].size, self._sizes)
        _append_starts(arrays, "words.starts.npy", arrays["words.bytes.npy"].size, [len(word) for word in words])
        arrays["vectors.terms.npy"].append(self._terms)
        arrays["vectors.counts.npy"].append(self._counts)
        arrays["vectors.lengths.npy"].append(self._lengths)
        arrays["words.bytes.npy"].append(np.frombuffer(b"".join(words), np.uint8))
        new, self._new = self._new, []
        for buffer in (self._words, self._sizes, self._terms, self._counts, self._lengths):
            del buffer[:]
        return new

    def save(self, folder: Path) -> None:
        """Write everything that TermVectors maps."""
        arrays = GrowingArrays(folder, ARRAYS)
        self.flush(arrays)
        save_document_frequency(folder, arrays["vectors.terms.npy"].read(), self.terms)
        arrays.finish()


def save_document_frequency(folder: Path, entries: NDArray[np.uint32], terms: int) -> None:
    """Count how many documents hold each of `terms` terms, from all entries of all documents."""
    counts = np.zeros(terms, np.int64)
    # Not all at once: counting makes 64-bit numbers of them.
    for start in range(0, len(entries), CHUNK):
        counts += np.bincount(entries[start : start + CHUNK], minlength=terms)
    np.save(folder / "vectors.df.npy", counts)


def _append_starts(arrays: GrowingArrays, name: str, base: int, sizes: Sequence[int]) -> None:
    """Append where each piece ends, which is where the next one starts; the first starts at 0."""
    if not arrays[name].size:
        arrays[name].append([0])
    arrays[name].append(base + np.cumsum(np.array(sizes, np.int64)))
