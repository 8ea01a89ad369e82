"""Cases 145 to 154 of docs/reliability.md: the studio, its API, and who asks them."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from browser import waited
from studio_server import Studio, desk_of, running, write_collection

from fairagent.guests.testing import LoopbackServer
from fairagent.guests.testing.server import ServerReply, streamed
from fairagent.studio.lanes import Lanes

PROGRAM = "from fairagent.cli import main; main()"
ASKED = {"query": "lawyer"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_collection(tmp_path_factory.mktemp("studio"))


@pytest.fixture(scope="module")
def studio(folder: Path) -> Iterator[Studio]:
    with running(desk_of(folder, cache="")) as studio:
        yield studio


def goes_on(studio: Studio) -> bool:
    """Whether a search is answered."""
    with studio.client() as client:
        return client.post("/api/search", json=ASKED).status_code == 200


def answering(folder: Path, model: LoopbackServer, **more: Any) -> Any:
    """A studio whose answers that model writes."""
    named = {"name": "tiny", "base_url": model.url, "attempts": 1, "deadline": 20, **more}
    return running(desk_of(folder, cache="", model=named, profile="offline", generate={"kind": "llm"}))


def events(studio: Studio) -> list[tuple[str, Any]]:
    with studio.client() as client:
        text = client.post("/api/answer", json=ASKED, headers={"accept": "text/event-stream"}).text
    parts = [part.split("\n") for part in text.removesuffix("\n\n").split("\n\n")]
    return [(kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for kind, data in parts]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch, no_variables: None) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-real-key")


def test_148_a_model_that_breaks_off_leaves_what_came(folder: Path) -> None:
    broken = streamed("A lawyer ", "pleaded [1]", finish=None, usage=None, done=False)
    with LoopbackServer([broken]) as model, answering(folder, model) as studio:
        *told, (last, found) = events(studio)
        assert last == "result"
        pieces = "".join(said["text"] for kind, said in told if kind == "text")
        assert pieces.startswith("A lawyer pleaded")
        assert found["truncated"]
        assert found["answer"] == pieces
        assert goes_on(studio)


def test_148_a_model_that_is_down_is_an_error_at_the_end_of_the_stream(folder: Path) -> None:
    with LoopbackServer([ServerReply(hang_up=True)]) as model, answering(folder, model) as studio:
        *told, (last, said) = events(studio)
        assert {kind for kind, _ in told} == {"step"}
        assert last == "error"
        assert said["error"]
        assert "not-a-real-key" not in said["error"]
        with studio.client() as client:
            assert client.post("/api/answer", json=ASKED).status_code == 502
        assert goes_on(studio)


def test_149_a_query_of_a_megabyte_is_refused_unread(studio: Studio) -> None:
    with studio.client() as client:
        large = client.post("/api/search", json={"query": "a" * 1_000_000})
        assert (large.status_code, large.json()) == (413, {"error": "the request is larger than 256 kB"})
        pieces = (b'{"query": "' if not n else b"a" * 10_000 for n in range(101))
        assert (
            client.post("/api/search", content=pieces, headers={"content-type": "application/json"}).status_code == 413
        )
        long = client.post("/api/search", json={"query": "a" * 2001})
    assert long.status_code == 400
    assert "at most 2000" in long.json()["error"]
    assert len(long.text) < 500
    assert goes_on(studio)


def test_151_fifty_at_once_are_answered_and_more_than_may_wait_are_told_so(folder: Path) -> None:
    held, begun = threading.Event(), threading.Event()
    desk = desk_of(folder, cache="")
    desk.document = lambda id: (begun.set(), held.wait(), {"id": id})[-1]  # type: ignore[assignment, method-assign]
    with (
        running(desk, lanes=Lanes(lanes=1, waiting=50)) as studio,
        ThreadPoolExecutor(61) as pool,
        studio.client() as client,
    ):
        first = pool.submit(client.get, "/api/document?id=d02")
        assert begun.wait(60)
        asked = [pool.submit(client.post, "/api/search", json=ASKED) for _ in range(60)]
        waited(lambda: sum(one.done() for one in asked) == 10)
        held.set()
        assert first.result().status_code == 200
        statuses = sorted(one.result().status_code for one in asked)
    assert statuses == [200] * 50 + [503] * 10


def test_153_a_fault_of_ours_is_told_without_its_story(studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("/secret/path")

    with monkeypatch.context() as patch:
        patch.setattr(studio.desk, "search", broken)
        # The server closes a connection after a fault: each request has its own.
        with studio.client() as client:
            plain = client.post("/api/search", json=ASKED)
        with studio.client() as client:
            stream = client.post("/api/search", json=ASKED, headers={"accept": "text/event-stream"})
    assert plain.status_code == 500
    assert "a fault of fairagent" in plain.json()["error"]
    assert re.match("event: error\n", stream.text)
    assert "/secret" not in plain.text + stream.text
    assert goes_on(studio)
