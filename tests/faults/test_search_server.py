"""Cases 88 to 107 of docs/reliability.md: a search server that fails; a list is whole, or there is an error."""

from __future__ import annotations

import json
import socket
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from fairagent import BackendUnavailable, DataError, GroupTable, UsageError, open_agent
from fairagent.collection import load_collection
from fairagent.llm.models import Models
from fairagent.retrieve.site import Site
from fairagent.settings import load_settings
from fairagent.types import Query

pytest.importorskip("opensearchpy")

from fairagent.guests.stores.opensearch import OpenSearchConfig, StoreWords

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
def serving(answer: Callable[[int], Any], **head: str) -> Iterator[tuple[StoreWords, list[str]]]:
    """An engine whose server answers the nth search so: a status, or the JSON or bytes of one; and what was asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            asked.append(f"{self.path} {self.headers.get('authorization', '')}")
            told = MAPPING if self.path == "/i/_mapping" else answer(len(asked))
            status, body = told if isinstance(told, tuple) else (200, told)
            sent = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in {"content-type": "application/json", "content-length": str(len(sent)), **head}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(sent)

        do_GET = do_POST

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        part = OpenSearchConfig(url=f"http://127.0.0.1:{server.server_address[1]}", index="i", api_key_env="KEY")
        yield StoreWords(part.connect({"KEY": KEY}), part.fields), asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


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


@pytest.mark.parametrize("mark", ["timed_out", "terminated_early"])
def test_91_a_search_that_was_broken_off_is_no_list(mark: str) -> None:
    with (
        serving(lambda number: found("a", "b", **{mark: True})) as (engine, _),
        pytest.raises(BackendUnavailable, match="broke a search off"),
    ):
        engine.search(LAW, 5)


def test_97_an_index_without_the_fields() -> None:
    with serving(lambda number: {}) as (engine, _), pytest.raises(DataError, match=r"no column 'x', 'y'.* has: text"):
        engine.store.check(("x", "_id", "text", "y"))


def test_98_an_index_that_is_not_there() -> None:
    with serving(lambda number: (404, refused("index_not_found_exception", "no such index [i]"))) as (engine, _):
        for ask in (lambda: engine.search(LAW, 5), lambda: len(engine)):
            with pytest.raises(DataError, match=r"there is no index i on 127\.0\.0\.1"):
                ask()


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


@pytest.mark.parametrize(
    "body", [b"", b"<html>hello</html>", b"{", b"[]", b"null", b"7", b"{}", b'{"hits": {"hits": [{}]}}', b"\xff\xfe"]
)
def test_100_an_answer_that_is_no_search_server_s(body: bytes) -> None:
    with serving(lambda number: body) as (engine, _), pytest.raises(BackendUnavailable, match="search server"):
        engine.search(LAW, 5)


def test_102_a_redirect_is_not_followed() -> None:
    with serving(lambda number: (302, {}), location="/elsewhere") as (engine, asked):
        with pytest.raises(BackendUnavailable):
            engine.search(LAW, 5)
        assert not any("elsewhere" in one for one in asked)


@pytest.mark.parametrize("status", [401, 403])
def test_103_a_key_that_is_refused_and_shown_nowhere(status: int) -> None:
    with serving(lambda number: (status, refused("security_exception", f"no {KEY}"))) as (engine, asked):
        with pytest.raises(BackendUnavailable, match=f"does not let this user read i .{status}.*api_key_env") as raised:
            engine.search(LAW, 5)
        assert len(asked) == 1
        assert f"ApiKey {KEY}" in asked[0]
        seen = "".join(traceback.format_exception(raised.value)) + repr(raised.value.__context__) + repr(engine.store)
        assert KEY not in seen


def test_104_a_list_that_is_longer_than_the_server_gives() -> None:
    with serving(found) as (engine, asked), pytest.raises(UsageError, match="10,000 documents were requested"):
        engine.search(LAW, 10_000)
    assert asked == []


def test_107_a_query_that_the_server_calls_wrong() -> None:
    wrong = (400, refused("too_many_nested_clauses", "maxClauseCount is set to 1024"))
    with serving(lambda number: wrong) as (engine, asked):
        with pytest.raises(BackendUnavailable, match="answered 400: too_many_nested_clauses, maxClauseCount is set"):
            engine.search(LAW, 5)
        assert len(asked) == 1
