"""Building an index, and bringing it up to date: documents are read here, and analyzed in blocks by processes.

A block is cut where so many characters are together, always at the same places. What has come of it is safe on the disk
before the next one counts as done, and a build that ends early goes on after the last one. At the end the blocks are
joined to the matrix of the index, a range of terms after another, so that the memory that a build takes follows from
the size of a block and not from that of the collection (but for its vocabulary and ids).
"""

from __future__ import annotations

import json
import shutil
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import DataError, IndexMismatch, UsageError
from fairagent.retrieve.base import full_text
from fairagent.retrieve.bm25.analysis import WordAnalyzer, open_analyzer
from fairagent.retrieve.bm25.manifest import FORMAT, MANIFEST, REMEDY, Indexable, Manifest
from fairagent.retrieve.bm25.matrix import Block, Blocks, Sparse, TermMatrix, Texts, stored
from fairagent.retrieve.catalog import DIGESTS, Catalog, IdTable, Strings, digest, mapped
from fairagent.retrieve.forecast import FirstBlock
from fairagent.retrieve.local import ENOUGH, CommonWords
from fairagent.storage.arrays import write_array
from fairagent.storage.digests import RECORD, differences, record_files
from fairagent.storage.files import force, write_whole
from fairagent.storage.folders import Workshop, workshop
from fairagent.storage.processes import Crew, cores
from fairagent.storage.readers import file_text, parse_json
from fairagent.types import Document

MEMORY = 1 << 28
"""Bytes that a build takes, about."""
PER_CHARACTER = 64
"""Bytes of memory for each character of a block: its text, its words as numbers, and all of that for several blocks."""
STATE, BLOCKS = "build.json", "blocks"
OPEN = 5_000
"""Blocks that are mapped at once, of seven files each: Linux lets a process map some 65,000."""
NONE = -1
"""The number of a word that is no term."""


@dataclass(frozen=True, slots=True)
class Changes:
    """How many documents an update has added, changed, removed, and left as they were."""

    added: int
    changed: int
    removed: int
    kept: int

    def __str__(self) -> str:
        things = "document" if self.added == 1 else "documents"
        return f"{self.added:,} {things} added, {self.changed:,} changed, {self.removed:,} removed; {self.kept:,} kept"


def build_index(
    collection: Indexable,
    folder: Path,
    analyzer: str = "english",
    progress: Callable[[int], None] = lambda done: None,
    resume: bool = True,
    workers: int = 1,
    memory: int = MEMORY,
    first: Callable[[FirstBlock], None] = lambda block: None,
) -> Manifest:
    """Index every document of `collection` into `folder`, which appears only when the index is complete.

    `progress` is called with the number of documents done. `workers` processes analyze blocks of documents (0: one a
    core; 1: this process does; a script that asks for more needs the guard `if __name__ == "__main__":`); `memory` is
    how many bytes a build takes, about. The index depends on neither. `first` is told what the first block was, before
    the second is made. An index that was at `folder` is replaced at the very end. Raises DataError with every fault of
    the document files (nothing is left behind then), UsageError where something else is at `folder` or in the way at
    `<folder>.partial`, BackendUnavailable where another process or thread is building it, and where the disk is full or
    may not be written to.

    After each block what is done is safe in `<folder>.partial`. A build that ends early, by Ctrl-C, kill -9 or a full
    disk, leaves that behind, and the next one of the same documents goes on from there (unless `resume` is False) to
    the same index; documents before it are read again, but not analyzed.
    """
    with workshop(folder, (MANIFEST, RECORD)) as shop:
        return _Build(collection, shop, analyzer, progress, workers, memory, first).run(None, resume)[0]


def update_index(
    collection: Indexable,
    folder: Path,
    analyzer: str = "english",
    progress: Callable[[int], None] = lambda done: None,
    workers: int = 1,
    memory: int = MEMORY,
) -> Changes:
    """Bring the index in `folder` up to date with the documents of `collection`, and tell what has changed.

    The collection is read, and documents whose digests are not in the index are analyzed; of the others the rows of the
    index are taken over. What comes out is, byte for byte, the index that `build_index` makes of the documents as they
    are now. The old one is whole, and searched, until then; an update that ends early goes on as a build does.

    Raises IndexMismatch where the index is of another collection, analyzer or version, where it is damaged (every byte
    is compared), or where the collection has none of its documents; and what `build_index` raises.
    """
    if not _outdated(collection, folder, analyzer):
        return Changes(0, 0, 0, Manifest.read(folder).documents)
    with workshop(folder, (MANIFEST, RECORD)) as shop:
        # Again: another process may have replaced it until now.
        if not _outdated(collection, folder, analyzer):
            shop.clear()
            return Changes(0, 0, 0, Manifest.read(folder).documents)
        build = _Build(collection, shop, analyzer, progress, workers, memory)
        return build.run(_Earlier(folder), resume=True)[1]


def _outdated(collection: Indexable, folder: Path, analyzer: str) -> bool:
    """Whether the index is of this collection as it was before; IndexMismatch where it is of something else."""
    manifest = Manifest.read(folder)
    outdated = manifest.outdated(collection, analyzer)
    if not outdated:
        manifest.check(collection, analyzer, folder)
    return outdated


class _Earlier:
    """The index that is brought up to date: the digests of its documents, and their rows."""

    def __init__(self, folder: Path) -> None:
        if faults := differences(folder, whole=True):
            raise IndexMismatch(f"the index at {folder}: damaged; {REMEDY}", faults)
        try:
            self.folder, self.ids = folder, IdTable.load(folder)
            self.digests, self.matrix = mapped(folder / DIGESTS), TermMatrix(folder)
        except (OSError, ValueError) as error:
            raise IndexMismatch(f"the index at {folder} is damaged; {REMEDY} ({error})") from None

    def numbers(self, documents: Sequence[Document], digests: NDArray[np.uint64]) -> NDArray[np.intp]:
        """The number of each of these documents that the index has as it is now, else -1; and of its id."""
        numbers = self.ids.numbers([document.id for document in documents])
        same = (numbers >= 0) & (self.digests[numbers] == digests).all(axis=1)
        return np.stack([np.where(same, numbers, NONE), numbers])


class _Build:
    """One build, in `shop`."""

    def __init__(
        self,
        collection: Indexable,
        shop: Workshop,
        analyzer: str,
        progress: Callable[[int], None],
        workers: int,
        memory: int,
        first: Callable[[FirstBlock], None] = lambda block: None,
    ) -> None:
        if workers < 0:
            raise UsageError(f"an index is built by {workers} workers; expected 1 or more, or 0 for one a core")
        open_analyzer(analyzer)
        self._collection, self._shop, self._analyzer, self._progress = collection, shop, analyzer, progress
        self._workers, self._first = workers or cores(), first
        # Before the documents are read: what changes in the meantime must not pass for what was indexed.
        self._fingerprint = collection.fingerprint()
        self._characters = max(1 << 10, memory // PER_CHARACTER)

    def run(self, earlier: _Earlier | None, resume: bool) -> tuple[Manifest, Changes]:
        """Make the index and put it in its place."""
        state = {
            "fingerprint": self._fingerprint,
            "analyzer": self._analyzer,
            "format": FORMAT,
            "characters": self._characters,
        }
        new = self._shop.new
        if not resume or _read_state(new) != state:
            self._shop.begin()
            (new / BLOCKS).mkdir()
            write_whole(new / STATE, json.dumps(state) + "\n")
        else:
            for path in new.iterdir():
                if path.name not in (STATE, BLOCKS):
                    path.unlink()
        try:
            catalog, changes, firsts = self._blocks(earlier)
            catalog.save(new)
        except BaseException as error:
            # There is nothing to go on from.
            if isinstance(error, DataError) or not any((new / BLOCKS).iterdir()):
                self._shop.clear()
            raise
        self._join(firsts)
        manifest = Manifest(self._collection.name, self._fingerprint, len(catalog), self._analyzer)
        # First what says that there are blocks to go on from: some of them would pass for all.
        (new / STATE).unlink()
        shutil.rmtree(new / BLOCKS)
        write_whole(new / MANIFEST, json.dumps(asdict(manifest), indent=2) + "\n")
        self._shop.put()
        return manifest, changes

    def _blocks(self, earlier: _Earlier | None) -> tuple[Catalog, Changes, list[int]]:
        """Read all documents and have those blocks made that are not there."""
        catalog, firsts, fresh, known = Catalog(), [0], 0, 0
        kept = np.zeros(len(earlier.ids) if earlier else 0, np.bool_)
        making = _Making(self._shop.new / BLOCKS, self._analyzer, self._workers, self._progress, self._first)
        with closing(making):
            for documents in self._cut():
                first = len(catalog)
                for document in documents:
                    catalog.add(document.id, digest(document))
                rows = np.full((2, len(documents)), NONE)
                if earlier:
                    rows = earlier.numbers(documents, catalog.digests(first))
                kept[rows[0][rows[0] >= 0]] = True
                fresh, known = fresh + int((rows[0] < 0).sum()), known + int((rows[1] >= 0).sum())
                making.add(documents, rows[0], earlier)
                firsts.append(len(catalog))
            if not len(catalog):
                raise DataError(f"collection {self._collection.name!r} has no documents")
            if earlier and not kept.any():
                raise IndexMismatch(
                    f"collection {self._collection.name!r} has none of the documents of the index at {earlier.folder} "
                    f"as they were; {REMEDY}"
                )
            making.finish()
        same = len(catalog) - fresh
        return catalog, Changes(len(catalog) - known, known - same, len(kept) - known, same), firsts

    def _cut(self) -> Iterator[list[Document]]:
        """The documents in blocks; a longer one is a block."""
        block: list[Document] = []
        size = 0
        for document in self._collection.documents():
            block.append(document)
            size += len(document.title) + len(document.text)
            if size >= self._characters:
                yield block
                block, size = [], 0
        if block:
            yield block

    def _join(self, firsts: Sequence[int]) -> None:
        """Make the files of the index of its blocks."""
        new = self._shop.new
        places = [new / BLOCKS / f"{number:06d}" for number in range(len(firsts) - 1)]
        read = lru_cache(maxsize=OPEN)(lambda number: _load(places[number]))
        blocks = Blocks(read, firsts, self._characters, new / BLOCKS)
        blocks.write(new)
        Texts.join(places, new)
        words, texts = CommonWords(), Texts(new)
        for number in range(0, firsts[-1], -(-firsts[-1] // ENOUGH)):
            words.add(full_text(texts.document(number)))
        Strings.save(new, "words", words.choose(blocks.vocabulary, open_analyzer(self._analyzer)))


class _Making:
    """Blocks that are being made, each in a folder of its own that appears when it is complete, in their order."""

    def __init__(
        self,
        folder: Path,
        analyzer: str,
        workers: int,
        progress: Callable[[int], None],
        first: Callable[[FirstBlock], None],
    ) -> None:
        self._folder, self._analyzer, self._workers, self._progress = folder, analyzer, workers, progress
        self._began, self._tell = monotonic(), first
        self._first: FirstBlock | None = None
        self._crew: Crew | None = None
        self._number = self._done = 0
        self._waiting: deque[tuple[Path, Future[Block], Callable[[Block], Block], list[bytes]]] = deque()

    def add(self, documents: Sequence[Document], rows: NDArray[np.intp], earlier: _Earlier | None) -> None:
        """Have the next block made, unless it is there, whole; `rows` (n,): in the earlier index, -1 for none."""
        place = self._folder / f"{self._number:06d}"
        self._number += 1
        self._done += len(documents)
        if differences(place, whole=True) == []:
            self._progress(self._done)
            return
        if self._first is not None:
            self._tell(self._first)
            self._first = None
        shutil.rmtree(place, ignore_errors=True)
        fresh = np.flatnonzero(rows < 0)
        contents = [full_text(documents[number]) for number in fresh.tolist()]

        def joined(block: Block) -> Block:
            return _with_rows(block, fresh, rows, earlier.matrix) if earlier and len(fresh) < len(rows) else block

        lines = [stored(document) for document in documents]
        if self._workers > 1 and self._number > 1 and self._crew is None:
            # A collection of one block is not worth a process.
            self._crew = Crew(self._workers, here=False)
        if self._crew is None:
            block = joined(analyzed(self._analyzer, contents))
            _save(place, block, lines)
            if self._number == 1:
                size = sum(path.stat().st_size for path in place.iterdir())
                self._first = FirstBlock(len(documents), len(block.terms), monotonic() - self._began, size)
            self._progress(self._done)
            return
        self._waiting.append((place, self._crew.submit(analyzed, self._analyzer, contents), joined, lines))
        self._settle(self._workers + 1)

    def finish(self) -> None:
        """Wait for all blocks."""
        self._settle(0)

    def close(self) -> None:
        """End the processes."""
        if self._crew is not None:
            if self._waiting:
                self._crew.abandon()
            self._crew.shutdown(cancel_futures=True)

    def _settle(self, most: int) -> None:
        while len(self._waiting) > most:
            place, future, joined, lines = self._waiting[0]
            _save(place, joined(future.result()), lines)
            self._waiting.popleft()
            self._progress(self._done)


class _Numbers(dict[str, int]):
    """Word -> the number of its term, `NONE` for a stop word; terms are numbered as they are met."""

    def __init__(self, term: Callable[[str], str]) -> None:
        super().__init__()
        self._term, self.terms = term, dict[str, int]()

    def __missing__(self, word: str) -> int:
        term = self._term(word)
        number = self.terms.setdefault(term, len(self.terms)) if term else NONE
        self[word] = number
        return number


def analyzed(name: str, contents: Sequence[str]) -> Block:
    """The block of these texts under the analyzer of this name."""
    analyzer = open_analyzer(name)
    words = analyzer.split if isinstance(analyzer, WordAnalyzer) else analyzer.terms
    numbers = _Numbers(analyzer.term if isinstance(analyzer, WordAnalyzer) else str)
    tokens, sizes = array("i"), array("q")
    for text in contents:
        before = len(tokens)
        tokens.extend(map(numbers.__getitem__, words(text)))
        sizes.append(len(tokens) - before)
    document = np.repeat(np.arange(len(contents)), np.array(sizes, np.int64))
    number = np.array(tokens, np.int64)
    document, number = document[number != NONE], number[number != NONE]
    lengths = np.bincount(document, minlength=len(contents)).astype(np.int32)
    return Block.of_tokens(list(numbers.terms), document, number, lengths)


def _with_rows(block: Block, fresh: NDArray[np.intp], rows: NDArray[np.intp], matrix: TermMatrix) -> Block:
    """The block with the rows of an earlier index between its documents, which are at the places `fresh`."""
    places = np.flatnonzero(rows >= 0)
    held = matrix.postings(rows[places])
    names = {term: number for number, term in enumerate(block.terms)}
    own = [names.setdefault(matrix.term(number), len(names)) for number in held.vocabulary.tolist()]
    term, document, count = block.entries
    lengths = np.zeros(len(rows), np.int32)
    lengths[fresh], lengths[places] = block.lengths, held.length.astype(np.int32)
    return Block.of_entries(
        list(names),
        np.concatenate([fresh[document], places[held.row]]),
        np.concatenate([term, np.array(own, np.int64)[held.term]]),
        np.concatenate([count, held.count.astype(count.dtype)]),
        lengths,
    )


def _save(place: Path, block: Block, lines: Sequence[bytes]) -> None:
    """Write a block with the stored documents, so that it is there as a whole or not at all."""
    beside = place.with_name(f"{place.name}.new")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir()
    Strings.save(beside, "terms", block.terms)
    for name, values in (
        ("starts", block.columns.starts),
        ("numbers", block.columns.numbers),
        ("counts", block.columns.counts),
        ("lengths", block.lengths),
    ):
        write_array(beside / f"{name}.npy", values)
    Texts.save(beside, lines)
    record_files(beside)
    for path in (*beside.iterdir(), beside):
        force(path)
    beside.rename(place)
    force(place.parent)


def _load(place: Path) -> Block:
    """A block, mapped."""
    starts, numbers, counts, lengths = (
        mapped(place / f"{name}.npy") for name in ("starts", "numbers", "counts", "lengths")
    )
    return Block(Strings.load(place, "terms"), Sparse(starts, numbers, counts), lengths)


def _read_state(new: Path) -> object:
    """What an earlier build in this place was of; None where there was none."""
    try:
        found: object = parse_json(file_text(new / STATE, 1 << 16))
    except (OSError, ValueError):
        return None
    return found if (new / BLOCKS).is_dir() else None
