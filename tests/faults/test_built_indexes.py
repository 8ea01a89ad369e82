"""Cases 125 to 133: indexes that somebody else has built, and what may be wrong with them."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from anserini_indexes import impacts, texts, vectors

from fairagent import open_agent
from fairagent.errors import BackendUnavailable, DataError, IndexMismatch, SettingsError
from fairagent.guests.lucene.bm25 import commit_file
from fairagent.guests.lucene.java import java_class, using_java

from .tiny import DOCUMENTS, write

ROWS = [{"id": id, "contents": text} for id, text in DOCUMENTS.items()]
HERE = "name: tiny\ntopics: {path: topics.jsonl}\ngroups: {path: groups.tsv, dimensions: {gender: {}}}\n"
ABOUT = len(b"\x3f\xd7\x6c\x17") + 1 + len(b"segments")
"""Where the version of the format is in a segments file: after a magic number, and the codec's name with its length."""

Opened = Callable[..., Any]


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`texts`, `bare` (nothing stored), `impact` and `hnsw` of the tiny collection."""
    folder = tmp_path_factory.mktemp("built")
    texts(folder / "texts", ROWS, "-storeRaw", "-storeDocvectors")
    texts(folder / "bare", ROWS)
    impacts(folder / "impact", [row | {"vector": {"law": 3, "court": 1 + n}} for n, row in enumerate(ROWS)])
    vectors(folder / "hnsw", list(DOCUMENTS), np.eye(6))
    return folder


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    """Searches the index in a folder, for a collection that names no documents."""
    write(tmp_path / "files", HERE)

    def opened(folder: Path, kind: str = "lucene", profile: str = "engine", loop: str = "", **settings: Any) -> Any:
        engine = {"kind": kind, "index": str(folder), **settings}
        looped = {"loop": loop} if loop else {}
        file = tmp_path / "files" / "collection.yaml"
        return open_agent(file, engine=engine, profile=profile, n=3, target="trec-estimated", **looped)

    return opened


def test_125_a_folder_that_is_no_index(opened: Opened, tmp_path: Path) -> None:
    pytest.importorskip("pyserini")
    with pytest.raises(BackendUnavailable, match=r"no Lucene index at .*none: name .*prebuilt"):
        opened(tmp_path / "none")
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "fairagent.json").touch()
    with pytest.raises(BackendUnavailable, match=r"one of fairagent's own, which `engine: bm25` searches"):
        opened(tmp_path / "ours")


def test_127_an_index_for_another_engine(indexes: Path, opened: Opened) -> None:
    kinds = {"texts": "lucene", "impact": "lucene-impact", "hnsw": "lucene-hnsw"}
    for name, kind in product(kinds, kinds.values()):
        if (meant := kinds[name]) != kind:
            said = rf"`engine: \{{kind: {meant}, index: \.\.\.\}}` searches; `{kind}` is for"
            with pytest.raises(IndexMismatch, match=said):
                opened(indexes / name, kind)


def test_132_an_index_that_tells_no_terms(indexes: Path, opened: Opened) -> None:
    with pytest.raises(SettingsError, match=r"stores neither .* -storeDocvectors or -storeRaw, .*`profile: engine`"):
        opened(indexes / "bare", profile="offline", loop="fair-qr")
    with pytest.raises(SettingsError, match="`texts:` of lucene-impact and lucene-hnsw"):
        opened(indexes / "impact", "lucene-impact", profile="offline", loop="fair-qr")
    # The loop that widens needs none.
    assert len(opened(indexes / "bare", profile="offline").search("court").hits) == 3


@pytest.fixture
def other(indexes: Path, tmp_path: Path) -> Path:
    """A copy of `texts`."""
    return Path(shutil.copytree(indexes / "texts", tmp_path / "other"))


@pytest.mark.parametrize(("version", "words"), [(1, "too old for this one"), (99, "update pyserini")])
def test_126_an_index_of_another_lucene(other: Path, opened: Opened, version: int, words: str) -> None:
    commit = commit_file(other)
    data = bytearray(commit.read_bytes())
    assert data[ABOUT - 8 : ABOUT] == b"segments"
    data[ABOUT : ABOUT + 4] = version.to_bytes(4, "big")
    commit.write_bytes(data)
    with pytest.raises(IndexMismatch, match=words):
        opened(other)


def test_129_an_empty_index_or_one_with_deleted_documents(other: Path, opened: Opened, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no documents"):
        opened(texts(tmp_path / "empty", []))
    with using_java():
        folder = java_class("java.nio.file.Paths").get(str(other))
        directory = java_class("org.apache.lucene.store.FSDirectory").open(folder)
        config = java_class("org.apache.lucene.index.IndexWriterConfig")()
        term = java_class("org.apache.lucene.index.Term")("id", "m1")
        writer = java_class("org.apache.lucene.index.IndexWriter")(directory, config)
        writer.deleteDocuments(java_class("org.apache.lucene.search.TermQuery")(term))
        writer.close()
    with pytest.raises(DataError, match="has 1 deleted documents"):
        opened(other)


def test_131_groups_of_documents_that_the_index_lacks(
    indexes: Path, opened: Opened, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    groups = tmp_path / "files" / "groups.tsv"
    groups.write_text(groups.read_text() + "".join(f"y{n}\tfemale\n" for n in range(7)))
    caplog.set_level(logging.WARNING)
    agent = opened(indexes / "texts")
    assert "7 of 13 documents with groups of gender are not in the index" in caplog.text
    assert "'y0', 'y1', 'y2', 'y3', 'y4' ..." in caplog.text
    assert len(agent.search("court").hits) == 3
    groups.write_text("id\tgender\nd-m1\tmale\nd-f1\tfemale\n")
    with pytest.raises(DataError, match=r"none of the 2 documents .* 'd-f1', 'd-m1', and those there 'm1'"):
        opened(indexes / "texts")


def test_133_a_damaged_index(other: Path, opened: Opened) -> None:
    (terms,) = other.glob("*.tim")
    terms.write_bytes(terms.read_bytes()[:40])
    with pytest.raises(IndexMismatch, match="is damaged"):
        opened(other)
