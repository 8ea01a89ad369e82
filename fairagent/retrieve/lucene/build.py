"""One build of a Lucene index: documents in, commits on the way, and where an earlier build of the same came to.

A document's text is analyzed once; Lucene receives the resulting terms, the forward index counts them. Documents
keep the order of the collection (merges join neighbors only), so Lucene's document number is the position in the
collection, and arrays beside the index need no translation.

How far a build has come is written into Lucene's own commit, which is there as a whole or not at all: the arrays are
flushed before it, and whatever they hold beyond it is cut off by whoever takes them up.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from fairagent.errors import BackendUnavailable, DataError
from fairagent.retrieve.java import java_class, using_java
from fairagent.retrieve.lucene.forward import ForwardFiles
from fairagent.retrieve.lucene.strings import encode_id
from fairagent.types import Document

STATE = "fairagent"
"""The key of a build's state in Lucene's commit data."""


class Named(Protocol):
    """A stream of documents with a name."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    def documents(self) -> Iterator[Document]:
        """Every document once, in a fixed order."""
        ...


class Build:
    """An index that is being built in `folder`; `committed` documents of it are safe."""

    def __init__(
        self,
        folder: Path,
        writer: Any,
        origin: Mapping[str, object],
        analyze: Callable[[str], list[str]],
        resume: bool,
    ) -> None:
        """Go on from the last commit in `folder` if it has the same `origin` and `resume` allows it."""
        self.folder, self._writer, self._origin, self._analyze = folder, writer, origin, analyze
        state = _read_state(folder)
        if not (resume and state and state["origin"] == origin and ForwardFiles.there(folder, state["sizes"])):
            if state is not None:
                # At once: the arrays that the old state speaks of are about to be cut.
                with using_java():
                    writer.deleteAll()
                self._commit(None)
            state = None
        self.committed: int = state["documents"] if state else 0
        self.files = ForwardFiles(folder, analyze, state["sizes"] if state else None)

    def run(self, collection: Named, commit_every: int, progress: Callable[[int], None]) -> int:
        """Add the documents that are still to be added; return how many there are in all."""
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
            self.files.add(id, terms, text)
            done += 1
            progress(done)
            if not done % commit_every:
                self._commit({"origin": self._origin, "documents": done, "sizes": self.files.flush()})
                self.committed = done
        if not done:
            raise DataError(f"collection {collection.name!r} has no documents")
        return done

    def finish(self) -> None:
        """Complete all files."""
        self.files.finish()
        with using_java():
            self._writer.setLiveCommitData(_entries(None))
            self._writer.close()
        # Only now: until Lucene's last commit the state before it may be needed again.
        ForwardFiles.clear(self.folder)

    def _commit(self, state: Mapping[str, object] | None) -> None:
        with using_java():
            self._writer.setLiveCommitData(_entries(state))
            self._writer.commit()


def open_writer(folder: Path) -> Any:
    """A writer for the Lucene index in `folder`; it holds Lucene's lock, which ends with the process, until closed.

    An index that Lucene cannot read is begun anew.
    """
    import jnius

    with using_java():
        try:
            return _writer(folder, "CREATE_OR_APPEND")
        except jnius.JavaException as error:
            if "LockObtainFailedException" not in str(error):
                return _writer(folder, "CREATE")
            raise BackendUnavailable(f"{folder} is being built already, here or by another process") from None


def _writer(folder: Path, mode: str) -> Any:
    # The terms arrive ready-made, separated by blanks.
    config = java_class("org.apache.lucene.index.IndexWriterConfig")(
        java_class("org.apache.lucene.analysis.core.WhitespaceAnalyzer")()
    )
    merge_neighbors = java_class("org.apache.lucene.index.LogDocMergePolicy")()
    open_mode = getattr(java_class("org.apache.lucene.index.IndexWriterConfig$OpenMode"), mode)
    config.setMergePolicy(merge_neighbors)
    config.setOpenMode(open_mode)
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
    state: dict[str, Any] = json.loads(text) if text else {}
    return state


def _entries(state: Mapping[str, object] | None) -> Any:
    """The commit data for `state`, as Lucene takes them."""
    entries = java_class("java.util.HashMap")()
    if state is not None:
        entries.put(STATE, json.dumps(state))
    return entries.entrySet()
