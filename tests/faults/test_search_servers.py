"""Cases 88 to 107 and 185 to 189: servers of searches and of embeddings that fail; a list is whole, or an error."""

from __future__ import annotations

import json
import socket
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llm.hostile import HostileServer, answer
from retrieve.test_dense import Made
from typer.testing import CliRunner

from fairagent import BackendUnavailable, DataError, GroupTable, UsageError, open_agent
from fairagent.cli import app
from fairagent.collection import load_collection
from fairagent.errors import BudgetExceeded, IndexMismatch, ReplyInvalid
from fairagent.guests.stores.opensearch import OpenSearchConfig, StoreWords
from fairagent.guests.testing import LoopbackServer, embeddings
from fairagent.llm.models import Models
from fairagent.retrieve.dense import DenseRetriever, build_dense_index
from fairagent.retrieve.encoders import EndpointEncoder, open_encoder
from fairagent.retrieve.site import Site
from fairagent.settings import BudgetSettings, ModelSettings, load_settings
from fairagent.types import Document, Query

from .tiny import write


@pytest.fixture
def server(no_variables: None) -> Iterator[LoopbackServer]:
    with LoopbackServer() as server:
        yield server


MADE = Made([Document(f"d{number:03}", f"judge {number} of the court {number % 7}") for number in range(300)])


def opened(server: LoopbackServer, cache: Path | str = "", **limits: Any) -> EndpointEncoder:
    models = Models(cache, BudgetSettings(**limits), environ={})
    found = open_encoder(
        "endpoint:small", served=lambda name: models.open_embeddings(ModelSettings(name=name, base_url=server.url))
    )
    assert isinstance(found, EndpointEncoder)
    return found


def asked(server: LoopbackServer) -> Counter[str]:
    return Counter(text for request in server.requests for text in request["input"])


def test_188_blank_texts_are_not_sent_and_like_nothing(server: LoopbackServer, tmp_path: Path) -> None:
    documents = [Document("a", "  "), Document("b", "judge"), Document("c", "")]
    build_dense_index(Made(documents), tmp_path / "index", opened(server))
    rows = np.load(tmp_path / "index" / "vectors.npy")
    assert np.linalg.norm(rows.astype(np.float32), axis=1).tolist() == pytest.approx([0, 1, 0])
    assert "" not in asked(server)
    assert DenseRetriever(tmp_path / "index", opened(server)).search(Query("judge"), 3).ids[0] == "b"


def test_189_search_asks_for_the_query_alone(server: LoopbackServer, tmp_path: Path) -> None:
    file = write(tmp_path / "files")
    engine = "engine={kind: dense, encoder: 'endpoint:small'}"
    options = ["-c", str(file), "--index", str(tmp_path / "index"), "--set", engine]
    options += ["--set", f"model.base_url={server.url}", "--set", f"cache={tmp_path / 'cache'}"]
    result = CliRunner().invoke(app, ["index", *options])
    assert result.exit_code == 0, result.stderr
    before = len(server.requests)
    found = CliRunner().invoke(app, ["search", "judge river", *options, "--set", "profile=engine"])
    assert found.exit_code == 0, found.stderr
    # The vector of the test text is in the cache.
    assert [request["input"] for request in server.requests[before:]] == [["judge river"]]


def test_185_and_186_a_budget_that_is_used_up_midway(server: LoopbackServer, tmp_path: Path) -> None:
    build_dense_index(MADE, tmp_path / "whole", opened(server))
    server.requests.clear()
    index, cache = tmp_path / "index", tmp_path / "cache"
    with pytest.raises(BudgetExceeded):
        build_dense_index(MADE, index, opened(server, cache, calls=3))
    assert len(server.requests) == 3
    build_dense_index(MADE, index, opened(server, cache))
    assert (index / "vectors.npy").read_bytes() == (tmp_path / "whole" / "vectors.npy").read_bytes()
    assert set(asked(server).values()) == {1}
    # The test text is asked for as well.
    assert len(asked(server)) == 300 + 1


def test_187_a_model_that_is_replaced_midway_is_not_mixed_in(server: LoopbackServer, tmp_path: Path) -> None:
    index = tmp_path / "index"
    server.script = lambda request: embeddings(request["input"], 8 if len(server.requests) > 2 else 16)
    with pytest.raises(ReplyInvalid, match="vectors of 8 numbers; 16 were expected"):
        build_dense_index(MADE, index, opened(server, tmp_path / "cache"))
    assert not index.exists()
    server.script = lambda request: embeddings(request["input"], 8)
    build_dense_index(MADE, index, opened(server))
    assert np.load(index / "vectors.npy").shape == (300, 8)
    server.script = lambda request: embeddings(request["input"], 16)
    with pytest.raises(IndexMismatch, match="makes others"):
        DenseRetriever(index, opened(server))


LAW = Query("law")
KEY = "not-a-real-key-0123456789"
SHARDS = {"total": 3, "successful": 3, "skipped": 0, "failed": 0}
MAPPING = {"i": {"mappings": {"properties": {"text": {"type": "text"}}}}}


def found(*ids: str, **more: Any) -> dict[str, Any]:
    """The answer to a search that found these, each with its place from the end as the score."""
    hits = [{"_id": id, "_score": float(len(ids) - place), "_source": {"text": id}} for place, id in enumerate(ids)]
    return {"timed_out": False, "_shards": SHARDS, "hits": {"hits": hits}, **more}


def refused(kind: str, reason: str) -> dict[str, Any]:
    cause = {"type": kind, "reason": reason}
    return {"error": {"root_cause": [cause], **cause}}


@contextmanager
def serving(answered: Callable[[int], Any], **head: str) -> Iterator[tuple[StoreWords, list[str]]]:
    """An engine whose server answers the nth search so: a status, or the JSON or bytes of one; and what was asked."""

    def plan() -> list[bytes]:
        if "/i/_mapping" in server.heads[-1]:
            del server.heads[-1]
            return [answer(json.dumps(MAPPING).encode())]
        told = answered(len(server.heads))
        status, body = told if isinstance(told, tuple) else (200, told)
        return [answer(body if isinstance(body, bytes) else json.dumps(body).encode(), status, **head)]

    with HostileServer(plan) as server:
        part = OpenSearchConfig(url=server.url.removesuffix("/v1"), index="i", api_key_env="KEY")
        store = part.connect({"KEY": KEY})
        yield StoreWords(store, part.fields), server.heads


def test_88_a_server_that_is_not_there(tiny: tuple[Path, Path]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    engine = {"kind": "opensearch", "url": f"http://127.0.0.1:{port}", "index": "i"}
    with pytest.raises(BackendUnavailable, match=f"no connection to 127.0.0.1:{port}.*engine.url") as caught:
        open_agent(*tiny, engine=engine)
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("status", [429, 503])
def test_89_a_busy_server_is_asked_again(status: int) -> None:
    with serving(lambda number: (status, {}) if number < 3 else found("a", "b")) as (engine, asked):
        assert engine.search(LAW, 5).ids == ("a", "b")
        assert len(asked) == 3
    with serving(lambda number: (status, {})) as (engine, asked):
        with pytest.raises(BackendUnavailable, match=f"answered {status}"):
            engine.search(LAW, 5)
        assert len(asked) == 3


FAILED = {"total": 3, "successful": 2, "failed": 1, "failures": [{"reason": {"type": "io", "reason": "disk on fire"}}]}


@pytest.mark.parametrize("shards", [FAILED, {**SHARDS, "successful": 2}])
def test_90_a_shard_that_fails_fails_the_search(shards: Any) -> None:
    with serving(lambda number: found("a", "b", _shards=shards, count=2)) as (engine, asked):
        for ask in (
            lambda: engine.search(LAW, 5),
            lambda: engine.score(LAW, ["a"]),
            lambda: engine.document("a"),
            lambda: len(engine),
        ):
            with pytest.raises(BackendUnavailable, match=r"1 of 3 shards on .* would be incomplete"):
                ask()
        assert all("allow_partial_search_results=false" in one for one in asked if "_search" in one)
        # The list and the pool; texts have no scores.
        exact = ["dfs_query_then_fetch" in one for one in asked if "_search" in one]
        assert exact == [True, True, False]


def test_99_ids_that_the_index_lacks_are_counted_and_named(tiny: tuple[Path, Path]) -> None:
    with serving(lambda number: found("m1", "m2", count=2)) as (engine, _):
        with pytest.raises(DataError, match=r"2 document id\(s\) are not in index i on .*'nobody', 'none'"):
            engine.documents(["m1", "nobody", "none"])
        url = f"http://{engine.store.name.rpartition(' ')[2]}"
        settings = load_settings(overrides={"engine": {"kind": "opensearch", "url": url, "index": "i"}}, environ={})
        site = Site(load_collection(tiny[0]), settings, Path(), Models.of(settings))
        groups = site.collection.groups
        assert isinstance(groups, GroupTable)
        *_, check = settings.engine.diagnose(site)
        assert check.status == "note"
        assert f"{len(groups) - 2} of {len(groups)} ids of the group table are not in index i" in check.detail


BROKEN: list[tuple[Any, type[Exception], str]] = [
    (found("a", "b", timed_out=True), BackendUnavailable, "broke a search off"),
    (found("a", "b", terminated_early=True), BackendUnavailable, "broke a search off"),
    ((404, refused("index_not_found_exception", "no such index [i]")), DataError, "there is no index i on"),
    *((body, BackendUnavailable, "search server") for body in (b"", b"<html>hello</html>", b"{", b"[]", b"7", b"{}")),
    (b'{"hits": {"hits": [{}]}}', BackendUnavailable, "search server"),
    ((400, refused("too_many_nested_clauses", "maxClauseCount is set to 1024")), BackendUnavailable, "maxClauseCount"),
]


@pytest.mark.parametrize(("told", "error", "words"), BROKEN)
def test_91_and_98_and_100_and_107_what_is_no_list_is_an_error(told: Any, error: type[Exception], words: str) -> None:
    with serving(lambda number: told) as (engine, asked):
        with pytest.raises(error, match=words):
            engine.search(LAW, 5)
        assert len(asked) == 1


def test_97_and_104_missing_fields_and_lists_longer_than_the_server_gives() -> None:
    with serving(found) as (engine, asked):
        with pytest.raises(UsageError, match="10,000 documents were requested"):
            engine.search(LAW, 10_000)
        assert asked == []
        with pytest.raises(DataError, match=r"no field 'x', 'y'.* has: text"):
            engine.store.check(("x", "_id", "text", "y"))


def test_102_and_103_a_redirect_is_not_followed_and_a_key_that_is_refused_shown_nowhere() -> None:
    with serving(lambda number: (302, {}), location="/elsewhere") as (engine, asked):
        with pytest.raises(BackendUnavailable):
            engine.search(LAW, 5)
        assert not any("elsewhere" in one for one in asked)
    with serving(lambda number: (401, refused("security_exception", f"no {KEY}"))) as (engine, asked):
        with pytest.raises(BackendUnavailable, match="api_key_env") as raised:
            engine.search(LAW, 5)
        assert len(asked) == 1
        assert f"ApiKey {KEY}" in asked[0]
        seen = "".join(traceback.format_exception(raised.value)) + repr(raised.value.__context__) + repr(engine.store)
        assert KEY not in seen
