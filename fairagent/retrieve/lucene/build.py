"""One build of a Lucene index: documents in, commits on the way, and where an earlier build of the same came to.

A document's text is analyzed once; Lucene receives the resulting terms, the forward index counts them. Documents
keep the order of the collection (merges join neighbors only), so Lucene's document number is the position in the
collection, and arrays beside the index need no translation.

How far a build has come is written into Lucene's own commit, which is there as a whole or not at all: the arrays are
flushed before it, and whatever they hold beyond it is cut off by whoever takes them up.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from fairagent.errors import DataError
from fairagent.files import cannot_write
from fairagent.intake.json_text import parse_json
from fairagent.retrieve.java import java_class, using_java
from fairagent.retrieve.lucene.forward import ForwardFiles
from fairagent.retrieve.lucene.strings import encode_id
from fairagent.types import Document

STATE = "fairagent"
"""The key of a build's state in Lucene's commit data."""
DAMAGE = ("CorruptIndexException", "IndexFormatTooOld", "IndexFormatTooNew", "NoSuchFileException", "EOFException")
"""Java's exceptions for an index that cannot be gone on with."""
DISK = ("java.io.IOException", "java.io.FileNotFoundException", "java.nio.file.")
"""How Java's exceptions begin that a full or read-only disk is to blame for."""


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
        self, folder: Path, writer: Any, origin: Mapping[str, object], analyze: Callable[[str], list[str]]
    ) -> None:
        """Take the folder, the open `writer` of its Lucene index, and what the index is built from."""
        self.folder, self._writer, self._origin, self._analyze = folder, writer, origin, analyze
        self.committed = 0
        self._sizes: dict[str, int] | None = None
        self._files: ForwardFiles | None = None

    def take_up(self, resume: bool) -> None:
        """Find the last commit, to go on from it if it has the same origin and `resume` allows it; else clear it."""
        state = _read_state(self.folder)
        if resume and state and state["origin"] == self._origin and ForwardFiles.there(self.folder, state["sizes"]):
            self.committed, self._sizes = state["documents"], state["sizes"]
        elif state is not None:
            # At once: the arrays that the old state speaks of are about to be cut.
            with using_java():
                self._writer.deleteAll()
            self._commit(None)

    def run(self, collection: DocumentStream, commit_every: int, progress: Callable[[int], None]) -> int:
        """Add the documents that are still to be added and complete the arrays; return how many there are in all."""
        with using_java():
            store_text = java_class("org.apache.lucene.document.Field$Store")
            # The fields of one Lucene document, refilled for each of ours: creating Java objects is what costs.
            name = java_class("org.apache.lucene.document.StringField")("id", "", store_text.YES)
            number = java_class("org.apache.lucene.document.IntPoint")("number", 0)
            contents = java_class("org.apache.lucene.document.TextField")("contents", "", store_text.NO)
            raw = java_class("org.apache.lucene.document.StoredField")("raw", "")
            lucene_document = java_class("org.apache.lucene.document.Document")()
            for field in (name, number, contents, raw):
                lucene_document.add(field)

        files = self._files = ForwardFiles(self.folder, self._analyze, self._sizes)
        done = self.committed
        if done:
            progress(done)
        for document in islice(collection.documents(), done, None):
            text = f"{document.title} {document.text}"
            terms = self._analyze(text)
            id = encode_id(document.id)
            stored = json.dumps([document.title, document.text, dict(document.extra)])
            with using_java():
                name.setStringValue(document.id)
                number.setIntValue(done)
                contents.setStringValue(" ".join(terms))
                raw.setStringValue(stored)
                self._writer.addDocument(lucene_document)
            files.add(id, terms, text)
            done += 1
            progress(done)
            if not done % commit_every:
                self._commit({"origin": self._origin, "documents": done, "sizes": files.flush()})
                self.committed = done
        if not done:
            raise DataError(f"collection {collection.name!r} has no documents")
        files.finish()
        return done

    def finish(self) -> None:
        """Complete the Lucene index; the folder then holds what an index keeps and nothing else."""
        with using_java():
            self._writer.setLiveCommitData(_entries(None))
            self._writer.close()
        # Only now: until Lucene's last commit the state before it may be needed again.
        ForwardFiles.clear(self.folder)

    def abandon(self) -> None:
        """Leave the folder as the last commit made it."""
        import jnius

        # A full disk may refuse this as well.
        with suppress(OSError, jnius.JavaException):
            if self._files:
                self._files.close()
            with using_java():
                self._writer.rollback()

    def _commit(self, state: Mapping[str, object] | None) -> None:
        with using_java():
            self._writer.setLiveCommitData(_entries(state))
            self._writer.commit()


def open_writer(folder: Path) -> Any:
    """A writer for the Lucene index in `folder`; one that Lucene cannot read is begun anew."""
    import jnius

    with using_java():
        try:
            return _writer(folder)
        except jnius.JavaException as error:
            if not any(damage in str(error) for damage in DAMAGE):
                raise
        shutil.rmtree(folder / "lucene")
        return _writer(folder)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn what Java says of a full or read-only disk, met while writing `path`, into a message with the way out."""
    import jnius

    try:
        yield
    except jnius.JavaException as error:
        said = [str(error), *(error.stacktrace or ())]
        if not any(kind in line for kind in DISK for line in said):
            raise
        raise cannot_write(path, error.innermessage or said[0]) from None


def _writer(folder: Path) -> Any:
    # The terms arrive ready-made, separated by blanks.
    config = java_class("org.apache.lucene.index.IndexWriterConfig")(
        java_class("org.apache.lucene.analysis.core.WhitespaceAnalyzer")()
    )
    merge_neighbors = java_class("org.apache.lucene.index.LogDocMergePolicy")()
    config.setMergePolicy(merge_neighbors)
    config.setRAMBufferSizeMB(256.0)
    directory = _directory(folder)
    return java_class("org.apache.lucene.index.IndexWriter")(directory, config)


def _directory(folder: Path) -> Any:
    path = java_class("java.nio.file.Paths").get(str(folder / "lucene"))
    return java_class("org.apache.lucene.store.FSDirectory").open(path)


def _read_state(folder: Path) -> dict[str, Any] | None:
    """What the last commit says; {} where it is not one of an unfinished build, None where there is none."""
    with using_java():
        directory = _directory(folder)
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
