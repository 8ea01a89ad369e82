"""Transcripts: what models were asked and what they said, each attempt of it, and nothing that is secret."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from fairagent.errors import (
    BackendUnavailable,
    ModelError,
    ReplyInvalid,
    TransientModelError,
    UsageError,
)
from fairagent.guests.testing import ScriptedModel, completion, error
from fairagent.llm import ModelReply, ModelRequest, Reply, ask
from fairagent.llm.budget import Ledger
from fairagent.llm.cache import ReplyCache
from fairagent.llm.exchange import Attempt, Exchange, Transcript, exchanges_to, read_transcript, transcript
from fairagent.llm.models import CachingModel
from fairagent.settings import Price

from .test_cache import Scripted


class Colors(Reply):
    colors: list[str]


SYSTEM = ("system", "You name colors.")
ASKED = ModelRequest((SYSTEM, ("user", "Which colors?")), max_tokens=50, seed=3, prompt="name_colors")
GOOD = '{"colors": ["red"]}'


@pytest.fixture
def heard() -> list[Exchange]:
    return []


def door(model, cache=None) -> CachingModel:
    return CachingModel(model, cache, Ledger(), name="tiny")


def test_an_exchange_has_all_that_was_asked_and_said(server, make_model, heard) -> None:
    server.script = [completion("red", usage=(11, 7))]
    with exchanges_to(heard.append):
        door(make_model(price=Price(input=1, output=10))).complete(ASKED)
    (one,) = heard
    assert one.messages == ASKED.messages == tuple((m["role"], m["content"]) for m in server.requests[0]["messages"])
    assert (one.prompt, one.reply, one.max_tokens, one.seed, one.temperature) == ("name_colors", "", 50, 3, None)
    assert (one.model, one.text, one.error, one.finish) == ("tiny-2026", "red", "", "stop")
    assert (one.calls, one.input_tokens, one.output_tokens, one.estimated) == (1, 11, 7, False)
    assert one.cost == pytest.approx(0.000081)
    assert not one.cached
    assert one.seconds > 0
    assert one.attempts == ()


def test_every_attempt_is_seen_retries_and_corrections(server, make_model, heard) -> None:
    """An overload, a reply of the wrong form, an overload again, and then a good one: four requests, one exchange."""
    server.script = [error(503, "busy"), completion('{"colors": "red"}', usage=(5, 2)), error(500), completion(GOOD)]
    with exchanges_to(heard.append):
        ask(door(make_model()), ASKED, Colors)
    (one,) = heard
    overload, wrong, fault = one.attempts
    assert "503" in overload.error
    assert "busy" in overload.error
    assert (overload.text, overload.correction) == ("", "")
    assert wrong.text == '{"colors": "red"}'
    assert "colors: expected a list" in wrong.error
    assert (wrong.input_tokens, wrong.output_tokens) == (5, 2)
    assert "500" in fault.error
    assert (one.reply, one.text, one.error, one.calls) == ("Colors", GOOD, "", 4)
    sent = [request["messages"][-1]["content"] for request in server.requests]
    assert sent == ["Which colors?"] * 2 + [f"Which colors?\n\n{wrong.correction}"] * 2


def test_what_comes_to_nothing_is_told_as_well(server, make_model, heard) -> None:
    server.script = [completion("no colors")]
    with exchanges_to(heard.append), pytest.raises(ReplyInvalid):
        ask(door(make_model()), ASKED, Colors)
    server.script = [error(500, "broken")]
    with exchanges_to(heard.append), pytest.raises(TransientModelError):
        door(make_model(attempts=2)).complete(ASKED)
    invalid, down = heard
    assert [one.text for one in invalid.attempts] == ["no colors"] * 2
    assert [bool(one.correction) for one in invalid.attempts] == [True, True]
    assert (invalid.text, invalid.calls) == ("no colors", 3)
    assert invalid.error.startswith("the reply is not the JSON object that was requested")
    assert ["broken" in one.error for one in down.attempts] == [True]
    assert "broken" in down.error
    assert (down.model, down.calls) == ("tiny", 2)


def test_a_reply_from_the_cache_says_so(tmp_path: Path, heard) -> None:
    cache = ReplyCache(tmp_path / "cache")
    asked = door(Scripted([ModelReply("red", 10, 1, calls=3, finish="stop")]), cache)
    with exchanges_to(heard.append):
        asked.complete(ASKED)
        asked.complete(ASKED)
    cache.close()
    assert [(one.text, one.cached, one.calls, one.attempts) for one in heard] == [
        ("red", False, 3, ()),
        ("red", True, 3, ()),
    ]


def test_a_file_is_continued_and_read_again(tmp_path: Path, heard) -> None:
    path = tmp_path / "asked.jsonl"
    model = ScriptedModel(["red", ModelError("no"), "blue"])
    with exchanges_to(heard.append):
        with transcript(path):
            model.complete(ASKED)
            with pytest.raises(ModelError):
                model.complete(ASKED)
        with transcript(path):
            model.complete(ASKED)
    assert list(read_transcript(path)) == heard
    assert [one.text or one.error for one in heard] == ["red", "no", "blue"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", ["# My thesis\n", "{}\n", '{"exchange":2,"at":""}\n', "x"])
def test_a_file_of_something_else_is_left_alone(tmp_path: Path, content: str) -> None:
    path = tmp_path / "thesis.md"
    path.write_text(content)
    with pytest.raises(UsageError, match=r"thesis\.md is there and is no transcript"), transcript(path):
        pytest.fail("something was asked")
    assert path.read_text() == content


EXCHANGE = Exchange(
    at="2026-01-01T00:00:00.000+00:00",
    prompt="p",
    messages=(("user", "?"),),
    reply="",
    temperature=0.5,
    max_tokens=None,
    seed=None,
    model="m",
    text="!",
    error="",
    finish="stop",
    calls=2,
    input_tokens=3,
    output_tokens=4,
    estimated=True,
    cost=None,
    seconds=1.5,
    cached=False,
    notes=("1 retry",),
    attempts=(Attempt("busy", seconds=0.5),),
    system="agent",
    topic="T1",
)


def test_who_comes_too_late_writes_into_no_other_file(tmp_path: Path) -> None:
    """After a second Ctrl-C threads go on that nobody waits for, while the tables are written."""
    with Transcript(tmp_path / "t.jsonl") as kept:
        kept.add(EXCHANGE)
        number = kept._descriptor
    with (tmp_path / "results.csv").open("wb") as other:
        # Under the number that the transcript had; a lower one may be free.
        os.dup2(other.fileno(), number)
        try:
            with pytest.raises(BackendUnavailable, match="cannot be written"):
                kept.add(EXCHANGE)
        finally:
            os.close(number)
    assert (tmp_path / "results.csv").read_bytes() == b""
    assert len(list(read_transcript(tmp_path / "t.jsonl"))) == 1


def test_a_damaged_line_is_none_and_the_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with Transcript(path) as kept:
        for _ in range(3):
            kept.add(EXCHANGE)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b'"text":"!"', b'"text":"?"')
    path.write_bytes(b"".join(lines) + b'{"exchange":1,"at"')
    assert list(read_transcript(path)) == [EXCHANGE, None, EXCHANGE]
