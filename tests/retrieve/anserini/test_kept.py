"""Ids are read once, kept outside the index, and hold for one commit of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import platformdirs
import pytest
from anserini_indexes import joined, texts

from fairagent.errors import IndexMismatch
from fairagent.retrieve.anserini.bm25 import AnseriniRetriever
from fairagent.retrieve.anserini.kept import cache_folder, commit_file
from fairagent.retrieve.java import java_class, start_java, using_java
from fairagent.types import Query

from .conftest import IDS


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_ids_are_in_the_order_of_the_documents_of_all_segments(built, kept):
    ids = AnseriniRetriever(built / "full", kept).index.ids
    assert [id.decode() for id in ids.names(np.arange(len(IDS))).tolist()] == list(IDS)


def test_ids_of_any_length_and_script(tmp_path, kept):
    names = ["a", "ключ", "b" * 255, "id with blanks"]
    folder = texts(tmp_path / "index", [{"id": name, "contents": "word"} for name in names])
    assert sorted(AnseriniRetriever(folder, kept).search(Query("word"), 9).ids) == sorted(names)


def test_they_are_read_once_and_nothing_is_written_into_the_index(built, kept, monkeypatch):
    before = contents(built / "full")
    read: list[int] = []
    AnseriniRetriever(built / "full", kept, progress=read.append).close()
    assert read == [7, 12]
    AnseriniRetriever(built / "full", kept, progress=read.append).close()
    assert read == [7, 12]
    assert contents(built / "full") == before


def test_two_indexes_of_one_name_are_two(built, kept, tmp_path):
    other = tmp_path / "full"
    texts(other, [{"id": "other", "contents": "judge"}])
    first, second = AnseriniRetriever(built / "full", kept), AnseriniRetriever(other, kept)
    assert (len(first), len(second)) == (12, 1)
    assert len(list(kept.iterdir())) == 2


def test_a_changed_index_is_read_again_which_is_said(built, kept, tmp_path, said):
    folder = Path(shutil.copytree(built / "full-0", tmp_path / "index"))
    assert len(AnseriniRetriever(folder, kept)) == 7
    joined(folder, built / "full-1")
    engine = AnseriniRetriever(folder, kept)
    assert "has changed since its ids were kept" in said.text
    assert engine.search(Query("quiet harbor"), 2).ids == ("d02", "d07")


def test_the_newest_commit_counts(tmp_path):
    for name in ("segments_9", "segments_a", "segments_10"):
        (tmp_path / name).touch()
    assert commit_file(tmp_path).name == "segments_10"


def test_the_users_cache_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: tmp_path / name)
    assert cache_folder() == tmp_path / "fairagent" / "lucene"


def rewritten(folder: Path, ids: bool) -> Path:
    """An index whose documents have no ids by column, as older Anserinis wrote them, or none at all."""
    start_java()
    with using_java():
        directory = java_class("org.apache.lucene.store.FSDirectory").open(
            java_class("java.nio.file.Paths").get(str(folder))
        )
        config = java_class("org.apache.lucene.index.IndexWriterConfig")()
        writer = java_class("org.apache.lucene.index.IndexWriter")(directory, config)
        stored = java_class("org.apache.lucene.document.Field$Store").YES
        for id in ("b", "ä", "c"):
            document = java_class("org.apache.lucene.document.Document")()
            document.add(java_class("org.apache.lucene.document.TextField")("contents", "a judge", stored))
            if ids:
                document.add(java_class("org.apache.lucene.document.StringField")("id", id, stored))
            writer.addDocument(document)
        writer.close()
    return folder


def test_ids_that_are_only_stored(tmp_path, kept):
    engine = AnseriniRetriever(rewritten(tmp_path / "old", ids=True), kept, "english-nostem")
    assert engine.search(Query("judge"), 3).ids == ("b", "c", "ä")
    assert engine.document("ä").text == "a judge"


def test_documents_without_ids_are_refused(tmp_path, kept):
    with pytest.raises(IndexMismatch, match="has no ids of its documents"):
        AnseriniRetriever(rewritten(tmp_path / "none", ids=False), kept)
