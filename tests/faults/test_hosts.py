"""Cases 230 to 232 of docs/reliability.md: hits and databases of others."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any

import pytest

from fairagent import BackendUnavailable, DataError, FairHits, SettingsError, UsageError, fair_rerank
from fairagent.guests.stores.milvus import MilvusConfig
from fairagent.guests.stores.postgres import PostgresConfig
from fairagent.guests.stores.store import Store

EVEN = {"female": 0.5, "male": 0.5}


def test_230_a_newer_version_s_objects_are_told_by_what_they_have() -> None:
    moved = [SimpleNamespace(uid=str(place), relevance=1.0, values={"sex": "male"}) for place in range(3)]
    with pytest.raises(UsageError) as raised:
        fair_rerank(moved, "gender", EVEN)
    assert "there are: uid, relevance, values.sex" in str(raised.value)
    assert "in their _source, fields, entity, payload, attributes, meta, metadata, groups" in str(raised.value)
    with pytest.raises(UsageError, match=r"hit 1 has no id, .* ids are in ref_doc_id, id, _id, node_id"):
        fair_rerank(moved, {"gender": {"0": "male"}}, EVEN)
    with pytest.raises(
        UsageError, match=r"\(SimpleNamespace\) is no list of hits, and holds none in body, hits, points"
    ):
        fair_rerank(SimpleNamespace(found=moved), "gender", EVEN)


def test_231_hits_without_texts_scores_or_groups() -> None:
    hits: list[dict[str, Any]] = [{"sex": "male"}, {"sex": "male"}, {"sex": "female"}, {"sex": "male"}]
    assert fair_rerank(hits, "sex", EVEN, n=2, fairness=10).hits == [hits[0], hits[2]]
    some = [hit | ({"score": 9.0} if place else {}) for place, hit in enumerate(hits)]
    assert fair_rerank(some, "sex", EVEN, n=2, fairness=10).hits == [some[0], some[2]]
    with pytest.raises(DataError, match="no hit has a label of 'sex': there is nothing to be fair to"):
        fair_rerank([{"sex": None}, {"sex": ""}], "sex", EVEN)
    assert fair_rerank([], "sex", EVEN) == FairHits([], (), ())


def test_232_a_database_that_cannot_be_reached() -> None:
    """With a real server that refuses a password: tests/retrieve/stores."""
    pytest.importorskip("psycopg")
    pytest.importorskip("pymilvus")
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    environ = {"SECRET": "correct-horse-battery"}
    postgres = PostgresConfig(url=f"postgresql://me@127.0.0.1:{port}/data", table="t", password_env="SECRET")
    milvus = MilvusConfig(url=f"http://127.0.0.1:{port}", entities="t", token_env="SECRET", timeout=1)
    stores: list[Store] = [postgres.connect(environ), milvus.connect(environ)]
    for store in stores:
        with pytest.raises(BackendUnavailable, match=f"127.0.0.1:{port}") as raised:
            store.count()
        seen = f"{raised.value!r} {raised.value.__context__!r} {raised.value.__cause__!r} {store!r}"
        assert "correct-horse" not in seen
    for changed in (
        postgres.model_copy(update={"url": "postgresql://me:correct-horse@host/data"}),
        milvus.model_copy(update={"url": "http://me:correct-horse@host"}),
    ):
        with pytest.raises(SettingsError, match=r"engine\.url of host") as refused:
            changed.connect(environ)
        assert "correct-horse" not in str(refused.value)
