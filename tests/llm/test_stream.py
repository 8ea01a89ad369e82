"""Answers that are heard while they come: what is told, what is counted, and what becomes of one that breaks off."""

from __future__ import annotations

import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from fairagent.errors import (
    FatalModelError,
    ModelError,
    TransientModelError,
)
from fairagent.guests.testing import ScriptedModel, ServerReply, completion, error, streamed
from fairagent.llm import ModelRequest, StreamingModel
from fairagent.llm.budget import Budget, Ledger
from fairagent.llm.cache import ReplyCache
from fairagent.llm.models import CachingModel
from fairagent.llm.request import ModelReply
from fairagent.settings import BudgetSettings, Price

from .conftest import MakeModel
from .server import Server

ASKED = ModelRequest((("user", "Which color?"),))


@pytest.fixture
def told() -> list[str]:
    return []


def test_the_pieces_are_told_as_they_are_and_counted(server: Server, make_model: MakeModel, told: list[str]) -> None:
    server.script = [streamed("red", " and", " blue")]
    reply = make_model(price=Price(input=1, output=10)).stream(ASKED, told.append)
    assert told == ["red", " and", " blue"]
    assert (reply.text, reply.model, reply.finish) == ("red and blue", "tiny-2026", "stop")
    assert (reply.input_tokens, reply.output_tokens, reply.estimated, reply.calls) == (11, 7, False, 1)
    assert reply.cost == pytest.approx(81e-6)
    (sent,) = server.requests
    assert (sent["stream"], sent["stream_options"]) == (True, {"include_usage": True})


@pytest.mark.parametrize(
    ("name", "left"), [("stream_options", {"stream"}), ("stream", set())], ids=["its options", "a stream"]
)
def test_a_server_that_takes_no(
    name: str, left: set[str], server: Server, make_model: MakeModel, told: list[str]
) -> None:
    def script(request: dict[str, Any]) -> ServerReply:
        if name in request:
            return error(400, f"Unrecognized request argument supplied: {name}")
        return streamed("red", usage=None) if "stream" in request else completion("red")

    server.script = script
    model = make_model()
    for _ in range(2):
        assert model.stream(ASKED, told.append).text == "red"
    assert len(server.requests) == 3
    assert {"stream", "stream_options"} & server.requests[-1].keys() == left
    assert model.complete(ASKED).notes == ()


# --- what goes wrong --------------------------------------------------------------------------------------------


def test_what_fails_before_the_first_piece_is_tried_again(
    server: Server, make_model: MakeModel, told: list[str], slept: list[float]
) -> None:
    server.script = [error(503), ServerReply("", content_type="text/event-stream"), streamed("red")]
    reply = make_model().stream(ASKED, told.append)
    assert (reply.text, reply.calls, told, len(slept)) == ("red", 3, ["red"], 2)
    assert reply.notes == ("2 retries",)


BEGUN = streamed("red", " and", finish=None, usage=None, done=False)


@pytest.mark.parametrize(
    "broken",
    [
        BEGUN,
        replace(streamed("red", " and"), cut=200),
        replace(BEGUN, body=BEGUN.body + 'data: {"choices": [{"del\n\n'),
        replace(BEGUN, body=BEGUN.body + 'data: {"error": {"message": "overloaded", "code": 503}}\n\n'),
    ],
    ids=["no end", "connection cut", "half a chunk", "an error"],
)
def test_what_breaks_off_after_a_piece_is_an_error_and_no_retry(
    broken: ServerReply, server: Server, make_model: MakeModel, told: list[str], slept: list[float]
) -> None:
    server.script = [broken, streamed("blue")]
    with pytest.raises(ModelError, match="not asked for again, since part of it was shown") as caught:
        make_model().stream(ASKED, told.append)
    assert not isinstance(caught.value, TransientModelError | FatalModelError)
    assert (told, len(server.requests), slept) == (["red", " and"], 1, [])
    assert (caught.value.usage.calls, caught.value.usage.output_tokens, caught.value.usage.estimated) == (1, 2, True)


def test_the_deadline_holds_for_a_stream_that_drips(server: Server, make_model: MakeModel, told: list[str]) -> None:
    server.script = [streamed(*"abcdefgh")]
    model = make_model(deadline=5.0)
    now = [0.0]

    def clock() -> float:
        now[0] += 1
        return now[0]

    model._clock = clock
    with pytest.raises(ModelError, match="did not finish in time"):
        model.stream(ASKED, told.append)
    assert 0 < len(told) < 8


def test_a_listener_that_has_gone_ends_it_and_the_budget_knows_what_came(server: Server, make_model: MakeModel) -> None:
    server.script = [streamed("red and green and", " blue")]
    budget = Budget(BudgetSettings(tokens=1000))

    def gone(piece: str) -> None:
        raise BrokenPipeError

    model = make_model(budget)
    with pytest.raises(BrokenPipeError):
        model.stream(ASKED, gone)
    assert budget.used["tokens"] == 3 + 5
    assert budget.reserved["tokens"] == 0
    assert model.stream(ASKED, lambda piece: None).text == "red and green and blue"


# --- while it comes ---------------------------------------------------------------------------------------------


def test_a_piece_is_told_before_the_next_one_is_written(make_model: MakeModel) -> None:
    heard = threading.Event()

    class Slow(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            first, _, rest = streamed("red", " and blue").body.partition("\n\n")
            self.wfile.write(f"{first}\n\n".encode())
            self.wfile.flush()
            if heard.wait(250):
                self.wfile.write(rest.encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        model = make_model(base_url=f"http://127.0.0.1:{http.server_address[1]}/v1")
        # The server waits until the first piece is heard.
        assert model.stream(ASKED, lambda piece: heard.set()).text == "red and blue"
    finally:
        http.shutdown()
        http.server_close()


# --- through the door -------------------------------------------------------------------------------------------


class Stream(ScriptedModel):
    """Streams its scripted answers word by word."""

    def identity(self, request: ModelRequest) -> dict[str, Any]:
        return {"messages": request.messages}

    def hide(self, text: str) -> str:
        return text

    def cost(self, input_tokens: int, output_tokens: int) -> float | None:
        return 0.0

    def stream(self, request: ModelRequest, on_text: Any) -> ModelReply:
        reply = self.complete(request)
        for word in reply.text.split(" "):
            on_text(word)
        return reply


def test_a_finished_stream_is_kept_and_a_hit_yields_its_text(tmp_path: Path, told: list[str]) -> None:
    cache, tally = ReplyCache(tmp_path / "cache"), Ledger()
    model = Stream(["red and blue"])
    door = CachingModel(model, cache, tally)
    assert isinstance(door, StreamingModel)
    assert not door.stream(ASKED, told.append).cached
    assert told == ["red", "and", "blue"]
    told.clear()
    again = door.stream(ASKED, told.append)
    assert (again.cached, again.text, told) == (True, "red and blue", ["red and blue"])
    assert door.complete(ASKED).cached
    assert len(model.requests) == 1
    assert (tally.usage.calls, tally.usage.saved and tally.usage.saved.calls) == (1, 2)
    cache.close()
