"""Building a Lucene index of a collection, and the fingerprint that says what it was built from.

A document's text is analyzed once; Lucene receives the resulting terms, the forward index counts them. Documents
keep the order of the collection (merges join neighbors only), so Lucene's document number is the position in the
collection, and arrays beside the index need no translation.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

from fairagent.errors import BackendUnavailable, DataError, IndexMismatch, UsageError
from fairagent.retrieve.java import java_class, using_java
from fairagent.retrieve.lucene.analysis import Analyzer
from fairagent.retrieve.lucene.strings import IdTable, encode_id
from fairagent.retrieve.lucene.vectors import TermVectorsWriter
from fairagent.types import Document

FORMAT = 1
MANIFEST = "fairagent.json"


class Indexable(Protocol):
    """What can be indexed: a name, a stream of documents and a hash of where they come from."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    def documents(self) -> Iterator[Document]:
        """Every document once, in a fixed order."""
        ...

    def fingerprint(self) -> str:
        """A hash that changes whenever the documents do."""
        ...


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an index was built from; any difference makes it another index."""

    collection: str
    fingerprint: str
    documents: int
    analyzer: str
    pyserini: str
    format: int = FORMAT

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """The manifest in `folder`; raises BackendUnavailable where there is no (finished) index."""
        try:
            return cls(**json.loads((folder / MANIFEST).read_text(encoding="utf-8")))
        except (FileNotFoundError, NotADirectoryError):
            raise BackendUnavailable(f"no index at {folder}; build it with `fairagent index`") from None
        except (ValueError, TypeError):
            raise IndexMismatch(f"{folder / MANIFEST} cannot be read; build the index again") from None

    def check(self, collection: Indexable | None, analyzer: str, folder: Path) -> None:
        """Raise IndexMismatch, naming every difference, where the index was built from or by something else.

        Without a `collection` only what it was built by is compared.
        """
        wanted: dict[str, object] = {"pyserini": version("pyserini"), "format": FORMAT}
        if collection is not None:
            wanted = {"fingerprint": collection.fingerprint(), "analyzer": analyzer, **wanted}
        have = asdict(self)
        differ = [f"{key}: index {have[key]}, now {value}" for key, value in wanted.items() if have[key] != value]
        if differ:
            name = self.collection if collection is None else collection.name
            raise IndexMismatch(
                f"the index at {folder} does not belong to collection {name!r} as it is now "
                f"({'; '.join(differ)}); build it again with `fairagent index --force`"
            )


def build_index(
    collection: Indexable,
    folder: Path,
    analyzer: str = "english",
    progress: Callable[[int], None] = lambda done: None,
    memory: str = "2g",
) -> Manifest:
    """Index every document of `collection` into `folder`, which appears only when the index is complete.

    `progress` is called with the number of documents done. An index that was at `folder` is replaced at the very
    end. Raises DataError with every fault of the document files (nothing is left behind then), UsageError where
    something else is at `folder`, BackendUnavailable where another process or thread is building it.
    """
    # Java resolves relative paths against the folder in which it was started.
    folder = folder.absolute()
    if folder.exists() and not (folder / MANIFEST).is_file() and not (folder.is_dir() and not any(folder.iterdir())):
        raise UsageError(f"{folder} is there and is no index of fairagent; name a new or an empty folder")
    analyze = Analyzer(analyzer, memory).terms
    # Before the documents are read: what changes in the meantime must not pass for what was indexed.
    fingerprint = collection.fingerprint()
    partial = folder.with_name(f"{folder.name}.partial")
    partial.mkdir(parents=True, exist_ok=True)
    writer = _open_writer(partial)
    try:
        documents = _write(collection, partial, writer, analyze, progress)
        manifest = Manifest(collection.name, fingerprint, documents, analyzer, version("pyserini"))
        (partial / MANIFEST).write_text(json.dumps(asdict(manifest), indent=2) + "\n", encoding="utf-8")
        with using_java():
            writer.close()
        _replace(folder, partial)
    except BaseException:
        with using_java():
            writer.rollback()
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return manifest


def _write(
    collection: Indexable,
    folder: Path,
    writer: Any,
    analyze: Callable[[str], list[str]],
    progress: Callable[[int], None],
) -> int:
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

    vectors = TermVectorsWriter(analyze)
    ids: list[bytes] = []
    for document in collection.documents():
        text = f"{document.title} {document.text}"
        terms = analyze(text)
        id = encode_id(document.id)
        stored = json.dumps([document.title, document.text, dict(document.extra)])
        with using_java():
            name.setStringValue(document.id)
            number.setIntValue(len(ids))
            contents.setStringValue(" ".join(terms))
            raw.setStringValue(stored)
            writer.addDocument(lucene_document)
        vectors.add(terms, text)
        ids.append(id)
        progress(len(ids))
    if not ids:
        raise DataError(f"collection {collection.name!r} has no documents")
    IdTable.save(folder, ids)
    vectors.save(folder)
    return len(ids)


def _open_writer(folder: Path) -> Any:
    """A writer for a new Lucene index; it holds Lucene's lock, which ends with the process, until it is closed."""
    import jnius

    with using_java():
        # The terms arrive ready-made, separated by blanks.
        config = java_class("org.apache.lucene.index.IndexWriterConfig")(
            java_class("org.apache.lucene.analysis.core.WhitespaceAnalyzer")()
        )
        merge_neighbors = java_class("org.apache.lucene.index.LogDocMergePolicy")()
        anew = java_class("org.apache.lucene.index.IndexWriterConfig$OpenMode").CREATE
        config.setMergePolicy(merge_neighbors)
        config.setOpenMode(anew)
        config.setRAMBufferSizeMB(256.0)
        path = java_class("java.nio.file.Paths").get(str(folder / "lucene"))
        directory = java_class("org.apache.lucene.store.FSDirectory").open(path)
        try:
            return java_class("org.apache.lucene.index.IndexWriter")(directory, config)
        except jnius.JavaException as error:
            if "LockObtainFailedException" not in str(error):
                raise
            raise BackendUnavailable(f"{folder} is being built already, here or by another process") from None


def _replace(folder: Path, partial: Path) -> None:
    """Put the finished index in its place; the old one is whole until the new one is there."""
    replaced = folder.with_name(f"{folder.name}.replaced")
    shutil.rmtree(replaced, ignore_errors=True)
    if folder.exists():
        folder.rename(replaced)
    partial.rename(folder)
    shutil.rmtree(replaced, ignore_errors=True)
