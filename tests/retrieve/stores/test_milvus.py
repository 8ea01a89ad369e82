"""`engine: milvus` over a real file of Milvus Lite, which is its own server in this process."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairagent import BackendUnavailable, DataError, SettingsError
from fairagent.guests.stores.milvus import MilvusConfig, MilvusEntities
from fairagent.guests.stores.store import Columns, StoreVectors, by_cosine, read_groups
from fairagent.search.pipeline import open_agent
from fairagent.types import Query

from .conftest import MADE, WordEncoder
from .test_postgres import cosines

COLUMNS = {"id": "key", "title": "headline", "text": "body", "vector": "near"}


def part(milvus: Path, **changed: Any) -> MilvusConfig:
    return MilvusConfig(**{"url": str(milvus), "entities": "articles", "columns": COLUMNS, **changed})


@pytest.fixture(scope="module")
def entities(milvus: Path) -> MilvusEntities:
    return part(milvus).connect({})


@pytest.fixture(scope="module")
def vectors(entities: MilvusEntities) -> StoreVectors:
    return StoreVectors(entities, Columns(**COLUMNS), ("sex", "places"), WordEncoder())


@pytest.mark.parametrize("n", [1, 7, 40, 100])
def test_the_nearest_are_those_computed_here(vectors: StoreVectors, n: int) -> None:
    found, exact = vectors.search(Query("jazz piano"), n), cosines("jazz piano")
    assert found.scores.tolist() == pytest.approx(sorted(exact.values(), reverse=True)[:n], abs=1e-6)
    assert found.scores.tolist() == pytest.approx([exact[id] for id in found.ids], abs=1e-6)
    assert vectors.score(Query("jazz piano"), found.ids).tolist() == pytest.approx(found.scores.tolist(), abs=1e-6)
    assert len(vectors) == len(MADE)


def test_texts_come_with_the_fields_of_groups(vectors: StoreVectors) -> None:
    one = MADE[6]
    document = vectors.document(one.id)
    assert (document.id, document.title, document.text) == (one.id, one.title, one.text)
    assert document.extra == {"sex": one.gender, "places": one.regions}
    with pytest.raises(
        DataError, match=r"2 document id\(s\) are not in collection articles on articles.db: 'none', 'x'"
    ):
        vectors.documents(["d00", "none", "x"])


@pytest.mark.parametrize("hostile", ['"] or key != "', "\\", "d00' or '1'='1", "{x}", "\0", "d00\n", "\ud800"])
def test_hostile_ids_are_texts(hostile: str, entities: MilvusEntities, vectors: StoreVectors) -> None:
    assert entities.rows([hostile.replace("\ud800", "")], ()) == []
    with pytest.raises(DataError, match=r"1 document id\(s\) are not in"):
        vectors.documents([hostile, "d00"])


def test_groups_are_read_from_fields_dynamic_ones_too(entities: MilvusEntities) -> None:
    groups = read_groups(entities, {"gender": "sex", "region": "places"}, {})
    assert groups.labels("gender") == ("female", "male")
    assert groups.memberships("region", ["d01", "d02"]).tolist() == [[0, 0.5, 0.5], [1, 0, 0]]
    assert groups.missing("gender") == sum(one.gender is None for one in MADE) / len(MADE)


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
            by_cosine(store)
        return
    assert by_cosine(store) == cosine
    assert list(store.near(np.array([2.0, 1.0], np.float32), 5)) == ["7", "8"]


def test_only_what_where_lets_through_is_in_a_list(milvus: Path) -> None:
    some = part(milvus, where={"sex": "female", "key": ("d02", "d03", "d07", '"')}).connect({})
    assert sorted(some.near(np.array(MADE[0].vector, np.float32), 40)) == ["d02", "d07"]
    assert some.count() == 2


def test_what_is_not_there(milvus: Path, tmp_path: Path) -> None:
    """A file that is not there is not made, as the client would."""
    with pytest.raises(BackendUnavailable, match=r"there is no file .*nothing.db \(engine.url\)"):
        part(tmp_path / "nothing.db").connect({})
    assert not (tmp_path / "nothing.db").exists()
    with pytest.raises(DataError, match=r"there is no collection nothing on articles.db \(engine.entities\)"):
        part(milvus, entities="nothing").connect({}).check(("key",))
    with pytest.raises(DataError, match=r"has no column 'nearr' \(engine.*; it has: key, near"):
        part(milvus, columns={**COLUMNS, "vector": "nearr"}).connect({}).check(("key", "nearr"))
    with pytest.raises(DataError, match="of type VARCHAR; expected FLOAT_VECTOR"):
        _ = part(milvus, columns={**COLUMNS, "vector": "body"}).connect({}).compared


def test_a_server_that_is_not_there_is_named_by_its_host_alone(milvus: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    engine = part(milvus, url=f"http://127.0.0.1:{port}", token_env="MILVUS_TOKEN", timeout=1)
    entities = engine.connect({"MILVUS_TOKEN": "root:correct-horse"})
    with pytest.raises(BackendUnavailable) as raised:
        entities.count()
    assert str(raised.value) == f"no connection to Milvus at 127.0.0.1:{port}; is it running there?"
    assert "correct-horse" not in repr(entities) + repr(raised.value.__context__)
    with pytest.raises(BackendUnavailable, match="is signed in to with MILVUS_TOKEN, which is not set"):
        engine.connect({})
    for url in ("http://root:correct-horse@localhost:19530", "http://localhost:19530?token=correct-horse"):
        with pytest.raises(SettingsError, match=r"engine\.token_env") as refused:
            part(milvus, url=url).connect({})
        assert "correct-horse" not in str(refused.value)
    with pytest.raises(SettingsError, match="is no address of a server"):
        part(milvus, url="ftp://x").connect({})


def test_an_agent_over_the_collection_is_fair(
    milvus: Path, tmp_path: Path, no_variables: None, monkeypatch: Any
) -> None:
    from fairagent.guests.testing import LoopbackServer

    (tmp_path / "collection.yaml").write_text("name: articles\n", encoding="utf-8")
    own = tmp_path / "own.db"
    shutil.copytree(milvus, own)
    before = contents(own)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with LoopbackServer() as server:
        chosen: dict[str, Any] = {
            "engine": {
                "kind": "milvus",
                "url": str(own),
                "entities": "articles",
                "columns": COLUMNS,
                "groups": {"gender": "sex"},
                "encoder": "endpoint:tiny",
            },
            "profile": "offline",
            "model": {"name": "tiny", "base_url": server.url},
            "target": {"gender": {"female": 0.5, "male": 0.5}},
            "n": 6,
        }
        found = open_agent(tmp_path / "collection.yaml", **chosen).search("jazz piano")
        plain = open_agent(tmp_path / "collection.yaml", **chosen, loop="none", rerank="none").search("jazz piano")
    assert len(found.hits) == 6
    assert found.trace.gap < plain.trace.gap
    assert found.hits[0].title.startswith("Person ")
    assert contents(own) == before


def contents(folder: Path) -> dict[str, bytes]:
    """What the folder of Milvus Lite holds; its lock aside."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock" and path.name != "LOCK")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}
