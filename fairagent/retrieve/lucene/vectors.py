"""Which terms each document holds: a forward index beside Lucene's inverted one.

Feedback, text MMR and the like need the terms of hundreds of documents a query. Reading Lucene's term vectors
from Python costs 0.1 to 2 ms a document; these arrays cost microseconds and are mapped from disk.
"""

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import IndexMismatch
from fairagent.retrieve.lucene.strings import Strings, mapped
from fairagent.retrieve.relevance_model import Postings

COMMON = 1 << 16
"""Terms below this number are kept in 16 bits; they are the commonest, and come first in each document."""
FEW = 255
"""Counts from here on are kept apart."""


class TermVectors:
    """Terms and counts of every document by its number, each term's document frequency, and a word for it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._starts = mapped(folder / "vectors.starts.npy")
        self._low, self._counts = mapped(folder / "vectors.low.npy"), mapped(folder / "vectors.counts.npy")
        self._high_starts, self._high = mapped(folder / "vectors.high.starts.npy"), mapped(folder / "vectors.high.npy")
        self._many, self._many_counts = mapped(folder / "vectors.many.npy"), mapped(folder / "vectors.many.counts.npy")
        self._lengths = mapped(folder / "vectors.lengths.npy")
        self._document_frequency = mapped(folder / "vectors.df.npy")
        # The same words are asked for again and again.
        self._word = lru_cache(maxsize=100_000)(Strings.load(folder, "words").__getitem__)

    @staticmethod
    def there(folder: Path) -> bool:
        """Whether there are any in `folder`."""
        return (folder / "vectors.starts.npy").is_file()

    def postings(self, numbers: NDArray[np.intp]) -> Postings:
        """The terms of the documents with these numbers; IndexMismatch where what is found cannot be."""
        starts, sizes, at = self._entries(numbers, self._starts, "vectors.starts.npy", len(self._low))
        row = np.repeat(np.arange(len(numbers)), sizes)
        terms = self._low[at].astype(np.uint32)
        _, rare, high_at = self._entries(numbers, self._high_starts, "vectors.high.starts.npy", len(self._high))
        self._expect(bool((rare <= sizes).all()), "vectors.high.starts.npy")
        # The rare terms are the last of each document.
        is_rare = at >= np.repeat(starts + sizes - rare, sizes)
        terms[is_rare] |= self._high[high_at].astype(np.uint32) << np.uint32(16)
        self._expect(not len(terms) or terms.max() < len(self._document_frequency), "vectors.low.npy")
        vocabulary, term = self._renumbered(terms)
        share = self._document_frequency[vocabulary] / max(1, len(self._lengths))
        self._expect(bool(((share > 0) & (share <= 1)).all()), "vectors.df.npy")
        lengths = self._lengths[numbers]
        counts = self._counts[at].astype(np.float64)
        many = np.flatnonzero(counts == FEW)
        place = np.searchsorted(self._many, at[many])
        self._expect(
            bool((place < len(self._many)).all() and (self._many[place] == at[many]).all()), "vectors.many.npy"
        )
        counts[many] = self._many_counts[place]
        return Postings(row, term, counts, lengths.astype(np.float64), vocabulary.astype(np.intp), share)

    def words(self, vocabulary: NDArray[np.intp]) -> list[str]:
        """A word for each term number: one that the analyzer turns into the term, "" where none was found."""
        try:
            return [self._word(number) for number in vocabulary.tolist()]
        except UnicodeDecodeError:
            raise self._damaged("words.bytes.npy") from None

    def _entries(
        self, numbers: NDArray[np.intp], ends: NDArray[np.int64], name: str, entries: int
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """Where the entries of these documents start in an array of so many, how many each has, and every place."""
        starts, stops = ends[numbers].astype(np.intp), ends[numbers + 1].astype(np.intp)
        self._expect(not len(numbers) or 0 <= starts.min() <= stops.max() <= entries, name)
        sizes = stops - starts
        self._expect(not len(sizes) or sizes.min() >= 0, name)
        # Position of every entry: its row's start plus its place within the row.
        behind = np.cumsum(sizes)
        at = np.arange(behind[-1] if len(behind) else 0) + np.repeat(starts - (behind - sizes), sizes)
        return starts, sizes, at

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
