"""One build of a Lucene index: documents in, commits on the way, and where an earlier build of the same came to.

Python reads the documents and cuts them into shards, always at the same places. Java's threads make an index of each
shard, in memory and several at a time; one thread appends these to the index on disk, in order, and commits after
each. Documents keep the order of the collection (merges join neighbors only), so Lucene's document number is the
position in the collection, and arrays beside the index need no translation.

How far a build has come is written into Lucene's own commit, which is there as a whole or not at all.
"""

import json
import shutil
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from fairagent.errors import BackendUnavailable, DataError
from fairagent.files import cannot_write
from fairagent.intake.json_text import parse_json
from fairagent.retrieve.handles import as_function, bound, collected, method, typed, wait
from fairagent.retrieve.java import java_class, using_java
from fairagent.retrieve.lucene.catalog import Catalog
from fairagent.retrieve.lucene.documents import KEY, adding, digest, line_of
from fairagent.types import Document

LUCENE, STATE = "lucene", "fairagent"
"""The folder of Lucene's files in that of an index; the key of a build's state in Lucene's commit data."""
SHARD = 1 << 26
"""Characters of a shard, counting what is analyzed and what is stored; a longer document is a shard. Smaller shards
repeat more terms, which takes time, and keep more of them apart, which makes searching slower."""
SHARD_MEMORY = 400_000_000
"""Bytes of Java's memory for each shard that is made at a time, at two bytes a character, with those that wait."""
NEIGHBORS = 8
"""Segments of one size that are merged into one: fewer make searching faster and indexing slower."""
DAMAGE = ("CorruptIndexException", "IndexFormatTooOld", "IndexFormatTooNew", "NoSuchFileException", "EOFException")
"""Java's exceptions for an index that cannot be gone on with."""
DISK = ("java.io.IOException", "java.io.FileNotFoundException", "java.nio.file.")
"""How Java's exceptions begin that a full or read-only disk is to blame for."""
DIRECTORIES, ITERABLE = "[Lorg.apache.lucene.store.Directory;", "java.lang.Iterable"
MOST_DOCUMENTS = 2**31 - 1
TOGETHER = 10_000
"""Documents that are removed at once."""


class DocumentStream(Protocol):
    """A stream of documents with a name."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    def documents(self) -> Iterator[Document]:
        """Every document once, in a fixed order."""
        ...


class LuceneBuild:
    """An index that is being built in `folder`; `committed` documents of it are safe."""

    def __init__(
        self, folder: Path, analyzer: Any, origin: Mapping[str, object], workers: int, commit_every: int
    ) -> None:
        """Take the folder, Java's analyzer, and what the index is built from.

        `workers` shards are made at a time, of at most `commit_every` documents each.
        """
        self.folder, self._origin, self._analyzer = folder, origin, analyzer
        self._writer = open_writer(folder)
        self._room, self._most = workers + 2, commit_every
        with using_java():
            threads = java_class("java.util.concurrent.Executors")
            self._makers, self._joiner = threads.newFixedThreadPool(workers), threads.newFixedThreadPool(1)
            self._last = java_class("java.util.concurrent.CompletableFuture").completedFuture(None)
        self._begun: deque[tuple[Any, int]] = deque()
        self._shard: list[str] = []
        self._size = 0
        self.committed = 0

    def take_up(self, resume: bool) -> None:
        """Find the last commit, to go on from it if it has the same origin and `resume` allows it; else clear it."""
        state = _read_state(self.folder)
        if resume and state and state["origin"] == self._origin:
            self.committed = state["documents"]
        elif state is not None:
            with using_java():
                self._writer.deleteAll()
                self._writer.setLiveCommitData(_entries(None))
                self._writer.commit()

    def run(self, collection: DocumentStream, progress: Callable[[int], None]) -> int:
        """Add the documents that are still to be added and write their catalog; return how many there are in all."""
        catalog, start = Catalog(), self.committed
        if start:
            progress(start)
        for number, document in enumerate(collection.documents()):
            catalog.add(document.id, digest(document))
            if number >= start:
                progress(number + 1)
                self.add(line_of(document, number), number + 1)
        if not len(catalog):
            raise DataError(f"collection {collection.name!r} has no documents")
        self.settle(len(catalog))
        catalog.save(self.folder)
        return len(catalog)

    def add(self, line: str, done: int) -> None:
        """Add a document, the last of `done`."""
        self._shard.append(line)
        self._size += len(line)
        if self._size >= SHARD or len(self._shard) == self._most:
            self._begin(done)

    def settle(self, done: int) -> None:
        """Wait until all that was added is committed."""
        if self._shard:
            self._begin(done)
        self._join(0)

    def remove(self, keys: Sequence[int], done: int) -> int:
        """Remove the documents with these keys, and whatever Lucene counts of them; return how many it has then."""
        with using_java():
            points = java_class("org.apache.lucene.document.IntPoint")
            for start in range(0, len(keys), TOGETHER):
                gone = points.newSetQuery(KEY, *keys[start : start + TOGETHER])
                self._writer.deleteDocuments(gone)
            # What is only marked as deleted goes on counting in document frequencies and lengths.
            forget = _step(_of(self._writer, "forceMergeDeletes", "void"))
            commit = _step(_of(self._writer, "commit", "long"))
            self._last = self._last.thenRunAsync(forget, self._joiner).thenRunAsync(commit, self._joiner)
        self._begun.append((self._last, done))
        self._join(0)
        with using_java():
            counted: int = self._writer.getDocStats().maxDoc
        return counted

    def finish(self) -> None:
        """Complete the Lucene index; the folder then holds what an index keeps and nothing else."""
        with using_java():
            self._writer.setLiveCommitData(_entries(None))
            self._writer.close()
            self._stop()

    def abandon(self) -> None:
        """Finish the shards that are begun, and leave the folder as the last commit made it."""
        import jnius

        # A full disk, or what went wrong before, may refuse this as well.
        with suppress(OSError, jnius.JavaException):
            self._join(0)
        with suppress(OSError, jnius.JavaException), using_java():
            self._stop()
            self._writer.rollback()

    def _begin(self, done: int) -> None:
        """Have a shard made of the documents at hand, and joined to the index when all before it are."""
        lines, self._shard, self._size = self._shard, [], 0
        with using_java():
            directory = java_class("org.apache.lucene.store.ByteBuffersDirectory")()
            shard = _writer(directory, self._analyzer)
            made = java_class("java.util.concurrent.CompletableFuture").runAsync(adding(shard, lines), self._makers)
            closed = _step(_of(shard, "close", "void"))
            made = made.thenRun(closed)
            join = _step(collected(_of(self._writer, "addIndexes", "long", DIRECTORIES), DIRECTORIES), directory)
            tell = _step(_of(self._writer, "setLiveCommitData", "void", ITERABLE), _entries(self._state(done)))
            commit = _step(_of(self._writer, "commit", "long"))
            # Each in the joiner's only thread, and only after the one before; an error ends the chain.
            last = self._last.runAfterBothAsync(made, join, self._joiner)
            last = last.thenRunAsync(tell, self._joiner)
            self._last = last.thenRunAsync(commit, self._joiner)
        self._begun.append((self._last, done))
        self._join(self._room)

    def _join(self, room: int) -> None:
        """Wait until no more than `room` shards are begun and not yet committed."""
        while len(self._begun) > room:
            last, done = self._begun[0]
            wait(last)
            self.committed = done
            self._begun.popleft()

    def _state(self, done: int) -> dict[str, object]:
        return {"origin": self._origin, "documents": done}

    def _stop(self) -> None:
        self._makers.shutdown()
        self._joiner.shutdown()


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn what Java says of its work below `path` into a message with the way out: above all a full disk."""
    import jnius

    try:
        yield
    except jnius.JavaException as error:
        said = [str(error), *(error.stacktrace or ())]
        reason = error.innermessage or said[0]
        if any(kind in line for kind in DISK for line in said):
            raise cannot_write(path, reason) from None
        raise BackendUnavailable(
            f"Java gave up building {path} ({reason}); what it had committed is kept: repeat the command, with "
            "`--workers 1` or more memory (_JAVA_OPTIONS=-Xmx4g) where memory is what it lacked"
        ) from None


def open_writer(folder: Path) -> Any:
    """A writer for the Lucene index in `folder`; one that Lucene cannot read is begun anew."""
    import jnius

    with using_java():
        try:
            return _writer(directory_of(folder))
        except jnius.JavaException as error:
            if not any(damage in str(error) for damage in DAMAGE):
                raise
        shutil.rmtree(folder / LUCENE)
        return _writer(directory_of(folder))


def directory_of(folder: Path) -> Any:
    """The Lucene directory of the index in `folder`."""
    path = java_class("java.nio.file.Paths").get(str(folder / LUCENE))
    return java_class("org.apache.lucene.store.FSDirectory").open(path)


def _writer(directory: Any, analyzer: Any = None) -> Any:
    """A writer for a shard, which becomes one segment, or (without `analyzer`) for the whole that shards are joined to.

    Neither depends on how threads take turns: merges are done one after the other by the thread that joins.
    """
    settings = java_class("org.apache.lucene.index.IndexWriterConfig")
    config = settings(analyzer) if analyzer else settings()
    config.setUseCompoundFile(False)
    if analyzer:
        config.setMaxBufferedDocs(MOST_DOCUMENTS)
        config.setRAMBufferSizeMB(-1.0)
        merges = java_class("org.apache.lucene.index.NoMergePolicy").INSTANCE
    else:
        scheduler = java_class("org.apache.lucene.index.SerialMergeScheduler")()
        config.setMergeScheduler(scheduler)
        merges = java_class("org.apache.lucene.index.LogDocMergePolicy")()
        merges.setNoCFSRatio(0.0)
        merges.setMergeFactor(NEIGHBORS)
    config.setMergePolicy(merges)
    return java_class("org.apache.lucene.index.IndexWriter")(directory, config)


def _of(writer: Any, name: str, returns: str, *takes: str) -> Any:
    """A method of this IndexWriter."""
    return bound(method("org.apache.lucene.index.IndexWriter", name, returns, *takes), writer)


def _step(handle: Any, *values: Any) -> Any:
    """A call with these arguments, as Java's threads take it."""
    return as_function("java.lang.Runnable", typed(bound(handle, *values), "void"))


def _read_state(folder: Path) -> dict[str, Any] | None:
    """What the last commit says; {} where it is not one of an unfinished build, None where there is none."""
    with using_java():
        directory = directory_of(folder)
        if not java_class("org.apache.lucene.index.DirectoryReader").indexExists(directory):
            return None
        infos = java_class("org.apache.lucene.index.SegmentInfos").readLatestCommit(directory)
        text = infos.getUserData().get(STATE)
    state: dict[str, Any] = parse_json(text) if text else {}
    return state


def _entries(state: Mapping[str, object] | None) -> Any:
    """The commit data for `state`, as Lucene takes them."""
    entries = java_class("java.util.HashMap")()
    if state is not None:
        entries.put(STATE, json.dumps(state))
    return entries.entrySet()
