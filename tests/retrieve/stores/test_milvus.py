"""`engine: milvus` over a real file of Milvus Lite, which is its own server in this process."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairagent import BackendUnavailable, DataError
from fairagent.guests.stores.milvus import MilvusConfig
from fairagent.guests.stores.store import StoreVectors, read_groups
from fairagent.types import Query

from .conftest import COLUMNS, WordEncoder


def part(milvus: Path, **changed: Any) -> MilvusConfig:
    return MilvusConfig(**{"url": str(milvus), "entities": "articles", "columns": COLUMNS, **changed})


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    pytest.importorskip("milvus_lite")
    with pytest.raises(BackendUnavailable, match=r"there is no file .*nothing.db \(engine.url\)"):
        part(tmp_path / "nothing.db").connect({})
    assert not (tmp_path / "nothing.db").exists()


def test_nothing_is_written(milvus: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.db"
    shutil.copytree(milvus, own)
    before, engine = contents(own), part(own)
    store = engine.connect({})
    vectors = StoreVectors(store, engine.columns, (), WordEncoder())
    assert len(vectors.documents(vectors.search(Query("jazz"), 5).ids)) == 5
    read_groups(store, {"gender": "sex"}, {})
    assert contents(own) == before


@pytest.mark.parametrize(("metric", "cosine"), [("IP", False), ("L2", None)])
def test_what_scores_mean(metric: str, cosine: bool | None, tmp_path: Path) -> None:
    client_of = pytest.importorskip("pymilvus")
    path = tmp_path / "other.db"
    client = client_of.MilvusClient(str(path))
    client.create_collection("numbers", dimension=2, metric_type=metric)
    client.insert("numbers", [{"id": 7, "vector": [3.0, 0.0]}, {"id": 8, "vector": [1.0, 1.0]}])
    client.close()
    store = part(path, entities="numbers", columns={"vector": "vector", "text": ""}).connect({})
    assert store.rows(["7", "x", "-1", "9" * 30], ("vector",)) == [("7", {"id": 7, "vector": [3.0, 0.0]})]
    if cosine is None:
        with pytest.raises(DataError, match="compares embeddings by L2, and scores of that are no inner products"):
            _ = store.by_cosine
        return
    assert store.by_cosine == cosine
    assert list(store.near(np.array([2.0, 1.0], np.float32), 5)) == ["7", "8"]


def contents(folder: Path) -> dict[str, bytes]:
    """What the folder of Milvus Lite holds; its lock aside."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock" and path.name != "LOCK")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}
