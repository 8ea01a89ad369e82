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

from fairagent.errors import BackendUnavailable, DataError, IndexMismatch
from fairagent.retrieve.java import java_class, using_java
from fairagent.retrieve.lucene.analysis import Analyzer
from fairagent.retrieve.lucene.strings import IdTable
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
        except FileNotFoundError:
            raise BackendUnavailable(f"no index at {folder}; build it with `fairagent index`") from None
        except (ValueError, TypeError):
            raise IndexMismatch(f"{folder / MANIFEST} cannot be read; build the index again") from None

    def check(self, collection: Indexable, analyzer: str, folder: Path) -> None:
        """Raise IndexMismatch, naming every difference, where the index was built from something else."""
        wanted = {
            "fingerprint": collection.fingerprint(),
            "analyzer": analyzer,
            "pyserini": version("pyserini"),
            "format": FORMAT,
        }
        have = asdict(self)
        differ = [f"{key}: index {have[key]}, now {value}" for key, value in wanted.items() if have[key] != value]
        if differ:
            raise IndexMismatch(
                f"the index at {folder} does not belong to collection {collection.name!r} as it is now "
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

    `progress` is called with the number of documents done. What was at `folder` is replaced at the very end.
    Raises DataError with every fault of the document files; nothing is left behind then.
    """
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        documents = _write(collection, partial, Analyzer(analyzer, memory), progress)
        manifest = Manifest(
            collection.name, collection.fingerprint(), documents, analyzer, version("pyserini")
        )
        (partial / MANIFEST).write_text(json.dumps(asdict(manifest), indent=2) + "\n", encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return manifest


def _write(collection: Indexable, folder: Path, analyzer: Analyzer, progress: Callable[[int], None]) -> int:
    store_text = java_class("org.apache.lucene.document.Field$Store")
    # The fields of one Lucene document, refilled for each of ours: creating Java objects is what costs.
    name = java_class("org.apache.lucene.document.StringField")("id", "", store_text.YES)
    number = java_class("org.apache.lucene.document.IntPoint")("number", 0)
    contents = java_class("org.apache.lucene.document.TextField")("contents", "", store_text.NO)
    raw = java_class("org.apache.lucene.document.StoredField")("raw", "")
    lucene_document = java_class("org.apache.lucene.document.Document")()
    for field in (name, number, contents, raw):
        lucene_document.add(field)

    vectors = TermVectorsWriter(analyzer.terms)
    ids: list[str] = []
    writer = _open_writer(folder)
    try:
        for document in collection.documents():
            text = f"{document.title} {document.text}"
            terms = analyzer.terms(text)
            name.setStringValue(document.id)
            number.setIntValue(len(ids))
            contents.setStringValue(" ".join(terms))
            raw.setStringValue(json.dumps([document.title, document.text, dict(document.extra)]))
            writer.addDocument(lucene_document)
            vectors.add(terms, text)
            ids.append(document.id)
            progress(len(ids))
        if not ids:
            raise DataError(f"collection {collection.name!r} has no documents")
        IdTable.save(folder, ids)
        vectors.save(folder)
        writer.commit()
    finally:
        writer.close()
    return len(ids)


def _open_writer(folder: Path) -> Any:
    # The terms arrive ready-made, separated by blanks.
    config = java_class("org.apache.lucene.index.IndexWriterConfig")(
        java_class("org.apache.lucene.analysis.core.WhitespaceAnalyzer")()
    )
    config.setMergePolicy(java_class("org.apache.lucene.index.LogDocMergePolicy")())
    config.setRAMBufferSizeMB(256.0)
    path = java_class("java.nio.file.Paths").get(str(folder / "lucene"))
    directory = java_class("org.apache.lucene.store.FSDirectory").open(path)
    return java_class("org.apache.lucene.index.IndexWriter")(directory, config)
