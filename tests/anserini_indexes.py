"""Indexes that Anserini itself builds, tiny ones, for tests of engines that search what somebody else has built."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fairagent.guests.lucene.java import java_class, start_java, using_java

Rows = Iterable[Mapping[str, Any]]
INDEX = "org.apache.lucene.index."


def texts(folder: Path, rows: Rows, *options: str) -> Path:
    """A BM25 index of {id, contents, ...}; `options` are IndexCollection's, e.g. -storeRaw."""
    return _built(folder, "IndexCollection", "JsonCollection", "DefaultLuceneDocumentGenerator", rows, *options)


def impacts(folder: Path, rows: Rows) -> Path:
    """An impact index of {id, contents, vector: {term: weight}}."""
    options = ("-impact", "-pretokenized", "-storeRaw")
    return _built(folder, "IndexCollection", "JsonVectorCollection", "DefaultLuceneDocumentGenerator", rows, *options)


def vectors(folder: Path, ids: Sequence[str], rows: Iterable[Sequence[float]], *options: str) -> Path:
    """An HNSW index."""
    made = ({"docid": id, "contents": id, "vector": list(map(float, row))} for id, row in zip(ids, rows, strict=True))
    kind = ("IndexHnswDenseVectors", "JsonDenseVectorCollection", "DenseVectorDocumentGenerator")
    return _built(folder, *kind, made, "-M", "16", "-efC", "100", *options)


def _built(folder: Path, indexer: str, collection: str, generator: str, rows: Rows, *options: str) -> Path:
    source = folder.with_name(f"{folder.name}-source")
    source.mkdir()
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (source / "rows.jsonl").write_text("".join(lines), encoding="utf-8")
    arguments = ["-collection", collection, "-generator", generator, "-input", str(source), "-index", str(folder)]
    start_java()
    with using_java():
        java_class(f"io.anserini.index.{indexer}").main([*arguments, *options, "-threads", "1"])
    return folder


def joined(folder: Path, *parts: Path) -> Path:
    """The segments of several indexes as one index."""
    start_java()
    with using_java():
        directory, paths = java_class("org.apache.lucene.store.FSDirectory"), java_class("java.nio.file.Paths")
        config = java_class(f"{INDEX}IndexWriterConfig")()
        config.setMergePolicy(java_class(f"{INDEX}NoMergePolicy").INSTANCE)
        writer = java_class(f"{INDEX}IndexWriter")(directory.open(paths.get(str(folder))), config)
        for part in parts:
            writer.addIndexes(directory.open(paths.get(str(part))))
        writer.close()
    return folder


def written(folder: Path, rows: Rows, by_column: bool = True) -> Path:
    """An index that Lucene's own writer makes of {id, contents}; ids stand in docvalues where they are `by_column`."""
    start_java()
    with using_java():
        fields = "org.apache.lucene.document."
        stored, text_field = java_class(f"{fields}Field$Store").YES, java_class(f"{fields}TextField")
        paths, directories = java_class("java.nio.file.Paths"), java_class("org.apache.lucene.store.FSDirectory")
        analyzer = java_class("io.anserini.analysis.DefaultEnglishAnalyzer").newDefaultInstance()
        directory, config = directories.open(paths.get(str(folder))), java_class(f"{INDEX}IndexWriterConfig")(analyzer)
        writer = java_class(f"{INDEX}IndexWriter")(directory, config)
        for row in rows:
            made = [text_field("contents", row["contents"], stored)]
            if "id" in row:
                made.append(java_class(f"{fields}StringField")("id", row["id"], stored))
            if "id" in row and by_column:
                reference = java_class("org.apache.lucene.util.BytesRef")(row["id"].encode())
                made.append(java_class(f"{fields}BinaryDocValuesField")("id", reference))
            document = java_class(f"{fields}Document")()
            for field in made:
                document.add(field)
            writer.addDocument(document)
        writer.close()
    return folder
