"""Anserini's indexes opened: ids, commits, what an index must have, and that nothing is written into it."""

from __future__ import annotations

from pathlib import Path

import pytest
from anserini_indexes import texts, written

from fairagent.errors import IndexMismatch
from fairagent.guests.lucene.bm25 import AnseriniRetriever
from fairagent.types import Query


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_ids_of_any_length_and_script(tmp_path):
    names = ["a", "ключ", "b" * 255, "id with blanks", 'a "quoted" one']
    folder = texts(tmp_path / "index", [{"id": name, "contents": "word"} for name in names])
    engine = AnseriniRetriever(folder)
    assert engine.search(Query("word"), 9).ids == tuple(sorted(names, key=str.encode))
    assert (engine.score(Query("word"), names) > 0).all()


def test_nothing_is_written_into_the_index(built):
    before = contents(built / "full")
    engine = AnseriniRetriever(built / "full")
    engine.postings(engine.search(Query("judge"), 3).ids)
    engine.close()
    assert contents(built / "full") == before


def test_documents_without_ids_in_docvalues_are_refused(tmp_path):
    rows = [{"id": "b", "contents": "a judge"}, {"contents": "another judge"}]
    with pytest.raises(IndexMismatch, match="has no ids of its documents"):
        AnseriniRetriever(written(tmp_path / "old", rows, by_column=False))
    engine = AnseriniRetriever(written(tmp_path / "mixed", rows))
    with pytest.raises(IndexMismatch, match="have no id"):
        engine.search(Query("judge"), 3)
