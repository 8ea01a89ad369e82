"""Cases 121 to 124 of docs/reliability.md: threads of Java that fail, terms that are missing, pyserini looking in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from retrieve.conftest import MADE, Made

from fairagent import BackendUnavailable, Query, build_index
from fairagent.digests import RECORD, differences
from fairagent.errors import IndexMismatch
from fairagent.retrieve.bm25 import build as building
from fairagent.retrieve.bm25 import index as indexing
from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.retrieve.java import using_java

MANY = Made(MADE.made[:40])


def arrays(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.npy")}


# Case 121


@pytest.mark.parametrize("fails", [1, 3])
def test_121_a_shard_that_dies_is_an_error_and_no_smaller_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: int
) -> None:
    adding, begun = building.adding, []

    def dying(writer: Any, lines: list[str]) -> Any:
        begun.append(lines)
        if len(begun) == fails:
            # What Java's thread meets then: a writer that somebody has closed.
            with using_java():
                writer.rollback()
        return adding(writer, lines)

    monkeypatch.setattr(building, "adding", dying)
    folder = tmp_path / "index"
    with pytest.raises(BackendUnavailable, match=r"Java gave up building .*index\.partial \(.*what it had committed"):
        build_index(MANY, folder, commit_every=10)
    assert not folder.exists()
    monkeypatch.setattr(building, "adding", adding)
    done: list[int] = []
    build_index(MANY, folder, progress=done.append, commit_every=10)
    # What was joined before the shard that died is kept; what came behind it is not.
    assert done[0] == (1 if fails == 1 else 20)
    assert len(BM25Retriever(folder, MANY)) == len(MANY.made)
    assert BM25Retriever(folder).document("tie00") == next(one for one in MANY.made if one.id == "tie00")


# Case 122


def test_122_an_index_without_terms_searches_and_says_how_to_add_them(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    build_index(MADE, folder, terms=False)
    assert not list(folder.glob("vectors*"))
    retriever = BM25Retriever(folder, MADE)
    ranking = retriever.search(Query("lawyer court"), 10)
    assert ranking.ids[0] == "law1"
    with pytest.raises(BackendUnavailable, match=r"without the terms of documents.*`fairagent index` with the same"):
        retriever.postings(ranking.ids)
    lucene = {path.name: path.stat().st_ino for path in (folder / "lucene").iterdir()}
    indexing.add_terms(MADE, folder)
    # Added beside Lucene's files, which are the same ones; even an engine that is open finds them.
    assert {path.name: path.stat().st_ino for path in (folder / "lucene").iterdir()} == lucene
    assert len(retriever.postings(ranking.ids).vocabulary)
    assert differences(folder, whole=True) == []
    build_index(MADE, tmp_path / "both")
    assert arrays(folder) == arrays(tmp_path / "both")


def test_122_terms_are_not_added_to_an_index_of_something_else(tmp_path: Path) -> None:
    build_index(MADE, tmp_path / "index", terms=False)
    with pytest.raises(IndexMismatch, match="fingerprint: index as made, now edited"):
        indexing.add_terms(Made(MADE.made, "edited"), tmp_path / "index")


# Case 123


def interrupted(done: int) -> None:
    raise KeyboardInterrupt


def test_123_terms_that_are_not_finished_leave_the_index_as_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    build_index(MADE, folder, terms=False)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(KeyboardInterrupt):
        indexing.add_terms(MADE, folder, interrupted)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


# Case 124

PYSERINI = """
    import json, sys
    from fairagent.retrieve.java import start_java
    start_java()
    from pyserini.search.lucene import LuceneSearcher
    searcher = LuceneSearcher(sys.argv[1])
    searcher.set_bm25(0.9, 0.4)
    hits = searcher.search("lawyer court", k=50)
    print(json.dumps({
        "documents": searcher.num_docs,
        "ids": [hit.docid for hit in hits],
        "scores": [hit.score for hit in hits],
        "raw": searcher.doc("law1").raw(),
        "shown": searcher.doc(hits[0].docid).docid(),
    }))
"""


@pytest.mark.slow
def test_124_pyserini_opens_the_index_and_finds_the_same(tmp_path: Path) -> None:
    """As docs/collections.md shows it, in a process of its own; pyserini asks for a key of OpenAI's when imported."""
    build_index(MADE, tmp_path / "index", terms=False)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PYSERINI), str(tmp_path / "index" / "lucene")],
        env={**os.environ, "OPENAI_API_KEY": "unused", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    ours = BM25Retriever(tmp_path / "index").search(Query("lawyer court"), 50)
    assert found["documents"] == len(MADE.made)
    assert sorted(found["ids"]) == sorted(ours.ids)
    scores = dict(zip(found["ids"], found["scores"], strict=True))
    # It takes a millionth off for each of equal scores, and rounds to four digits.
    assert np.allclose([scores[id] for id in ours.ids], ours.scores, atol=2e-4)
    law = next(one for one in MADE.made if one.id == "law1")
    assert json.loads(found["raw"]) == {
        "id": "law1",
        "title": law.title,
        "contents": law.text,
        "extra": dict(law.extra),
    }
    assert found["shown"] == found["ids"][0]
    assert RECORD in {path.name for path in (tmp_path / "index").iterdir()}
