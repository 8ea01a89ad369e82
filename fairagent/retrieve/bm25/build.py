"""Building an index, and bringing it up to date: documents are read here, and analyzed in blocks by processes.

A block is cut where so many characters are together, always at the same places. What has come of it is safe on the disk
before the next one counts as done, and a build that ends early goes on after the last one. At the end the blocks are
joined to the matrix of the index, a range of terms after another, so that the memory that a build takes follows from
the size of a block and not from that of the collection (but for its vocabulary and ids).
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import DataError, IndexMismatch, UsageError
from fairagent.retrieve.base import full_text, ignore
from fairagent.retrieve.bm25.analysis import open_analyzer, readable_words
from fairagent.retrieve.bm25.blocks import Block, Blocks, analyzed
from fairagent.retrieve.bm25.matrix import TEXTS, TermMatrix, Texts, stored
from fairagent.retrieve.catalog import DIGESTS, Catalog, IdTable, Strings, digest, mapped
from fairagent.retrieve.manifest import Indexable, Manifest
from fairagent.storage.digests import RECORD, differences
from fairagent.storage.files import remove_folder, write_whole
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
COUNTED = 20_000
"""Documents whose words are counted; of more than that, as many, evenly spread."""
NONE = -1
"""The number of a document that an earlier index lacks."""


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
    progress: Callable[[int], None] = ignore,
    resume: bool = True,
    workers: int = 1,
    memory: int = MEMORY,
) -> Manifest:
    """Index every document of `collection` into `folder`, which appears, or is replaced, when the index is complete.

    `progress` is called with the number of documents done. `workers` processes analyze blocks of documents (0: one a
    core; 1: this process does; a script with more needs the guard `if __name__ == "__main__":`); `memory` is how many
    bytes a build takes, about. The index depends on neither.
    A build that ends early, by Ctrl-C, kill -9 or a full disk, leaves its blocks in `<folder>.partial`, and the next
    one of the same documents goes on from there, unless `resume` is False.

    Raises DataError with every fault of the document files (nothing is left behind then), UsageError where something
    else is at `folder` or in the way at `<folder>.partial`, BackendUnavailable where another process or thread is
    building it, and where the disk is full or read-only.
    """
    with workshop(folder, (Manifest.FILE, RECORD)) as shop:
        return _Build(collection, shop, analyzer, progress, workers, memory).run(None, resume)[0]


def update_index(
    collection: Indexable,
    folder: Path,
    analyzer: str = "english",
    progress: Callable[[int], None] = ignore,
    workers: int = 1,
    memory: int = MEMORY,
) -> Changes:
    """Bring the index in `folder` up to date with the documents of `collection`; what has changed.

    Documents whose digests are not in the index are analyzed; of the others the rows of the index are taken over. The
    index comes out, byte for byte, as `build_index` makes it. The old one is whole until then, and an update that ends
    early goes on as a build does.

    Raises IndexMismatch where the index is of another collection, analyzer or version, where it is damaged (every byte
    is compared), or where the collection has none of its documents; and what `build_index` raises.
    """
    if not _outdated(collection, folder, analyzer):
        return Changes(0, 0, 0, Manifest.read(folder).documents)
    with workshop(folder, (Manifest.FILE, RECORD)) as shop:
        # Again: another process may have replaced it until now.
        if not _outdated(collection, folder, analyzer):
            shop.clear()
            return Changes(0, 0, 0, Manifest.read(folder).documents)
        build = _Build(collection, shop, analyzer, progress, workers, memory)
        return build.run(_Earlier(folder), resume=True)[1]


def _outdated(collection: Indexable, folder: Path, analyzer: str) -> bool:
    """Whether the index is of this collection as it was before; IndexMismatch where it is of something else."""
    manifest = Manifest.read(folder)
    outdated = manifest.outdated(collection, analyzer=analyzer)
    if not outdated:
        manifest.check(collection, folder, analyzer=analyzer)
    return outdated


class _Earlier:
    """The index that is brought up to date: the digests of its documents, and their rows."""

    def __init__(self, folder: Path) -> None:
        Manifest.expect_every_byte(folder)
        with Manifest.reading(folder):
            self.folder, self.ids = folder, IdTable.load(folder)
            self.digests, self.matrix = mapped(folder / DIGESTS), TermMatrix(folder)

    def numbers(self, documents: Sequence[Document], digests: NDArray[np.uint64]) -> NDArray[np.intp]:
        """The number of each of these documents that the index has as it is now, else -1; and of its id."""
        numbers = self.ids.numbers([document.id for document in documents])
        same = (numbers >= 0) & (self.digests[numbers] == digests).all(axis=1)
        return np.stack([np.where(same, numbers, NONE), numbers])


class _Build:
    """One build, in `shop`: blocks, each in a folder that appears when it is complete, and then their sum."""

    def __init__(
        self,
        collection: Indexable,
        shop: Workshop,
        analyzer: str,
        progress: Callable[[int], None],
        workers: int,
        memory: int,
    ) -> None:
        if workers < 0:
            raise UsageError(f"an index is built by {workers} workers; expected 1 or more, or 0 for one a core")
        open_analyzer(analyzer)
        self._collection, self._shop, self._new = collection, shop, shop.new
        self._analyzer, self._progress, self._workers = analyzer, progress, workers or cores()
        # Before the documents are read: what changes in the meantime must not pass for what was indexed.
        self._fingerprint = collection.fingerprint()
        self._characters = max(1 << 10, memory // PER_CHARACTER)
        self._crew: Crew | None = None
        self._done = 0
        self._waiting: deque[tuple[Path, Future[Block], Callable[[Block], Block], list[str]]] = deque()

    def run(self, earlier: _Earlier | None, resume: bool) -> tuple[Manifest, Changes]:
        """Make the index and put it in its place."""
        new = self._new
        state: dict[str, object] = {"fingerprint": self._fingerprint, "analyzer": self._analyzer}
        state |= {"format": Manifest.FORMAT, "characters": self._characters}
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
        # First what says that there are blocks to go on from: some of them would pass for all.
        (new / STATE).unlink()
        remove_folder(new / BLOCKS, ignore_errors=False)
        manifest = Manifest(self._collection.name, self._fingerprint, len(catalog), self._analyzer)
        manifest.save(new)
        self._shop.put()
        return manifest, changes

    def _blocks(self, earlier: _Earlier | None) -> tuple[Catalog, Changes, list[int]]:
        """Read all documents and have those blocks made that are not there."""
        catalog, firsts, fresh, known = Catalog(), [0], 0, 0
        same = np.zeros(len(earlier.ids) if earlier else 0, np.bool_)
        try:
            for documents in self._cut():
                first = len(catalog)
                for document in documents:
                    catalog.add(document.id, digest(document))
                rows = np.full((2, len(documents)), NONE)
                if earlier:
                    rows = earlier.numbers(documents, catalog.digests(first))
                same[rows[0][rows[0] >= 0]] = True
                fresh, known = fresh + int((rows[0] < 0).sum()), known + int((rows[1] >= 0).sum())
                self._make(len(firsts) - 1, documents, rows[0], earlier)
                firsts.append(len(catalog))
            if not len(catalog):
                raise DataError(f"collection {self._collection.name!r} has no documents")
            if earlier and not same.any():
                raise IndexMismatch(
                    f"collection {self._collection.name!r} has none of the documents of the index at {earlier.folder} "
                    f"as they were; {Manifest.remedy(earlier.folder)}"
                )
            self._wait(0)
        finally:
            if self._crew is not None:
                if self._waiting:
                    self._crew.abandon()
                self._crew.shutdown(cancel_futures=True)
        unchanged = len(catalog) - fresh
        return catalog, Changes(len(catalog) - known, known - unchanged, len(same) - known, unchanged), firsts

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

    def _make(
        self, number: int, documents: Sequence[Document], rows: NDArray[np.intp], earlier: _Earlier | None
    ) -> None:
        """Have a block made, unless it is there, whole; `rows` (n,): in the earlier index, -1 for none."""
        place = self._new / BLOCKS / f"{number:06d}"
        self._done += len(documents)
        if differences(place, whole=True) == []:
            self._progress(self._done)
            return
        remove_folder(place)
        fresh = np.flatnonzero(rows < 0)
        contents = [full_text(documents[number]) for number in fresh.tolist()]

        def joined(block: Block) -> Block:
            return block.with_rows(fresh, rows, earlier.matrix) if earlier and len(fresh) < len(rows) else block

        lines = [stored(document) for document in documents]
        if self._workers > 1 and number and self._crew is None:
            # A collection of one block is not worth a process.
            self._crew = Crew(self._workers, here=False)
        if self._crew is not None:
            self._waiting.append((place, self._crew.submit(analyzed, self._analyzer, contents), joined, lines))
            self._wait(self._workers + 1)
            return
        block = joined(analyzed(self._analyzer, contents))
        block.save(place, lines)
        self._progress(self._done)

    def _wait(self, most: int) -> None:
        """Write the blocks that were submitted, until no more than `most` are waited for."""
        while len(self._waiting) > most:
            place, future, joined, lines = self._waiting[0]
            joined(future.result()).save(place, lines)
            self._waiting.popleft()
            self._progress(self._done)

    def _join(self, firsts: Sequence[int]) -> None:
        """Make the files of the index of its blocks."""
        new = self._new
        places = [new / BLOCKS / f"{number:06d}" for number in range(len(firsts) - 1)]
        read = lru_cache(maxsize=OPEN)(lambda number: Block.load(places[number]))
        blocks = Blocks(read, firsts, self._characters, new / BLOCKS)
        blocks.write(new)
        Strings.join(places, new, TEXTS)
        texts = Texts(new)
        contents = (full_text(texts.document(number)) for number in range(0, firsts[-1], -(-firsts[-1] // COUNTED)))
        Strings.save(new, "words", readable_words(contents, blocks.vocabulary, open_analyzer(self._analyzer)))


def _read_state(new: Path) -> object:
    """What an earlier build in this place was of; None where there was none."""
    try:
        state: object = parse_json(file_text(new / STATE, 1 << 16))
    except (OSError, ValueError):
        return None
    return state if (new / BLOCKS).is_dir() else None
