"""Building an index: the documents are read once, and their terms counted, into a new folder.

What is read is put together after every `TOGETHER` words: memory holds the numbers and counts of a document's terms,
6 bytes each, and its id; its text goes to the disk at once.
"""

from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from fairagent.errors import DataError
from fairagent.retrieve.base import full_text, ignore
from fairagent.retrieve.bm25.analysis import WordAnalyzer, open_analyzer, readable_words
from fairagent.retrieve.bm25.search import TEXTS, Sparse, read_stored, stored
from fairagent.retrieve.catalog import ArrayWriter, IdTable, Strings, encode_id, starts_of
from fairagent.retrieve.manifest import Indexable, Manifest, chunks_of
from fairagent.storage.arrays import write_array
from fairagent.storage.digests import RECORD
from fairagent.storage.folders import workshop

COUNT = np.uint16
MOST = int(np.iinfo(COUNT).max)
"""A word that a document holds more often counts as so many."""
NO_TERM = -1
"""The number of a word that is no term."""
TOGETHER = 1 << 22
"""Words, of all documents read, in memory one by one before they are counted."""


def build_index(
    collection: Indexable, folder: Path, analyzer: str = "english", progress: Callable[[int], None] = ignore
) -> Manifest:
    """Index every document of `collection` into `folder`, which appears, or is replaced, when the index is complete.

    `progress` is called with the number of documents done. Raises DataError with every fault of the document files,
    UsageError where something else is at `folder` or in the way at `<folder>.partial`, BackendUnavailable where another
    process or thread is building it, and where the disk is full or read-only. What was at `folder` is as it was then.
    """
    opened = open_analyzer(analyzer)
    with workshop(folder, (Manifest.FILE, RECORD)) as shop:
        new = shop.new
        # Before the documents are read: what changes in the meantime must not pass for what was indexed.
        fingerprint = collection.fingerprint()
        ids, terms = list[bytes](), Terms(opened)

        def read() -> Iterator[bytes]:
            for document in collection.documents():
                ids.append(encode_id(document.id))
                terms.add(full_text(document))
                yield stored(document)
                if len(ids) % 1_000 == 0:
                    progress(len(ids))

        Strings.save(new, TEXTS, read())
        if not ids:
            raise DataError(f"collection {collection.name!r} has no documents")
        progress(len(ids))
        IdTable.save(new, ids)
        vocabulary = terms.write(new)
        # The words of 20,000 documents at most, evenly spread, are counted.
        texts, step = Strings(new, TEXTS), -(-len(ids) // 20_000)
        some = (full_text(read_stored(texts, number)) for number in range(0, len(ids), step))
        words = readable_words(some, vocabulary, opened)
        for name, strings in (("terms", vocabulary), ("words", words)):
            Strings.save(new, name, (string.encode() for string in strings))
        manifest = Manifest(collection.name, fingerprint, len(ids), analyzer, chunks_of(collection))
        manifest.save(new)
        shop.put()
    return manifest


class Terms:
    """The terms of documents as they are read, in `lengths` (n,) their number for each; terms are numbered as met."""

    def __init__(self, analyzer: Any) -> None:
        split, term = (analyzer.split, analyzer.term) if isinstance(analyzer, WordAnalyzer) else (analyzer.terms, str)
        self.lengths = array("i")
        self._split: Callable[[str], list[str]] = split
        self._numbers = TermNumbers(term)
        self._tokens, self._sizes = array("i"), array("q")
        self._parts: list[csr_array] = []

    def add(self, text: str) -> None:
        before = len(self._tokens)
        self._tokens.extend(map(self._numbers.__getitem__, self._split(text)))
        self._sizes.append(len(self._tokens) - before)
        if len(self._tokens) >= TOGETHER:
            self._count()

    def _count(self) -> None:
        """Put together what came word by word: a row a document."""
        tokens = np.frombuffer(self._tokens, np.int32)
        counted = tokens != NO_TERM
        starts = starts_of(counted)[starts_of(np.frombuffer(self._sizes, np.int64))]
        self.lengths.frombytes(np.diff(starts).astype(np.int32).tobytes())
        terms, shape = tokens[counted], (len(starts) - 1, len(self._numbers.terms))
        rows = csr_array((np.ones(len(terms), np.int32), terms, starts.astype(np.int32)), shape=shape)
        rows.sum_duplicates()
        # Copied: what was summed up is a part of a larger array.
        counts, numbers = np.minimum(rows.data, MOST).astype(COUNT), rows.indices.copy()
        self._parts.append(csr_array((counts, numbers, rows.indptr), shape))
        self._tokens, self._sizes = array("i"), array("q")

    def write(self, folder: Path) -> list[str]:
        """Write the matrix, rows piece by piece, columns as a whole; all terms in the order of their bytes."""
        self._count()
        write_array(folder / "lengths.npy", np.frombuffer(self.lengths, np.int32))
        met = list(self._numbers.terms)
        self._numbers.clear()
        order = sorted(range(len(met)), key=met.__getitem__)
        place = np.empty(len(met), np.int32)
        place[order] = np.arange(len(met), dtype=np.int32)
        starts = starts_of(np.concatenate([np.diff(part.indptr) for part in self._parts]))
        write_array(folder / "rows.starts.npy", starts)
        with (
            ArrayWriter(folder / "rows.numbers.npy", np.int32) as numbers,
            ArrayWriter(folder / "rows.counts.npy", COUNT) as counts,
        ):
            for part in self._parts:
                rows = csr_array((part.data, place[part.indices], part.indptr), shape=(part.shape[0], len(met)))
                rows.sort_indices()
                numbers.add(rows.indices)
                counts.add(rows.data)
        self._parts.clear()
        # Starts and numbers of one width, or both become the wider one.
        width = np.int32 if starts[-1] < 1 << 31 else np.int64
        written = Sparse.load(folder, "rows")
        shape = (len(starts) - 1, len(met))
        columns = csr_array((written.counts, written.numbers, starts.astype(width)), shape=shape).tocsc()
        write_array(folder / "columns.starts.npy", columns.indptr.astype(np.int64))
        write_array(folder / "columns.numbers.npy", columns.indices.astype(np.int32))
        write_array(folder / "columns.counts.npy", columns.data)
        return [met[number] for number in order]


class TermNumbers(dict[str, int]):
    """Word -> the number of its term, `NO_TERM` for a stop word; terms are numbered as they are met."""

    def __init__(self, term: Callable[[str], str]) -> None:
        super().__init__()
        self._term, self.terms = term, dict[str, int]()

    def __missing__(self, word: str) -> int:
        term = self._term(word)
        number = self.terms.setdefault(term, len(self.terms)) if term else NO_TERM
        self[word] = number
        return number
