"""Checked replies: what is read from a text, what is corrected, what is raised, and that it is all counted."""

from __future__ import annotations

import json
import math
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from fairagent.errors import (
    BackendUnavailable,
    BudgetExceeded,
    FatalModelError,
    ModelError,
    ReplyInvalid,
    ReplyRefused,
    ReplyTruncated,
    TransientModelError,
    UsageError,
)
from fairagent.guests.testing import ScriptedModel, completion, error
from fairagent.llm import ModelReply, ModelRequest, Reply, ask
from fairagent.llm.budget import Ledger
from fairagent.llm.cache import ReplyCache
from fairagent.llm.exchange import (
    Attempt,
    Exchange,
    OnError,
    Transcript,
    exchanges_to,
    one_search,
    read_transcript,
    transcript,
    unless_failing,
)
from fairagent.llm.models import CachingModel
from fairagent.settings import Price
from fairagent.types import Usage


class Verdict(Reply):
    word: str
    fair: bool


ASKED = ModelRequest((("system", "Judge."), ("user", "Is it fair?")))
GOOD = '{"word": "a", "fair": true}'


@pytest.mark.parametrize("bad", ["no idea", '{"word": "a"}', '{"word": "a", "fair": tr', ReplyInvalid("it was empty")])
def test_one_correction_repeats_the_prompt_and_names_the_fault(bad):
    model = ScriptedModel([bad, *[ModelReply(GOOD, 5, 3, seconds=0.5)] * 2])
    verdict, usage = ask(model, ASKED, Verdict)
    assert (verdict, usage.calls) == (Verdict(word="a", fair=True), 1 if isinstance(bad, ReplyInvalid) else 2)
    assert model.requests[0] == ModelRequest(ASKED.messages, reply=Verdict)
    assert ask(model, ASKED, Verdict) == (verdict, Usage(1, 5, 3, None, 0.5))
    system, user = model.requests[1].messages
    assert system == ASKED.messages[0]
    assert user[1].startswith("Is it fair?\n\nYour previous reply could not be used: ")


def test_three_invalid_replies_are_an_error_with_text_and_usage():
    model = ScriptedModel([*(ModelReply(text, 6, 4) for text in ("first", "second", "third" * 1000)), GOOD])
    with pytest.raises(ReplyInvalid) as caught:
        ask(model, ASKED, Verdict)
    assert len(model.requests) == 3
    assert caught.value.raw == ("third" * 1000)[:2000]
    assert caught.value.usage == Usage(3, 18, 12, None, 0.0, unusable=3)
    # Where what was reached is served, one reply of all is corrected.
    model = ScriptedModel(["hm"] * 6)
    with one_search():
        for asked in (2, 3):
            with pytest.raises(ReplyInvalid):
                ask(model, ASKED, Verdict)
            assert len(model.requests) == asked


def test_a_reply_of_the_right_form_may_still_be_refused():
    def fair(verdict):
        if not verdict.fair:
            raise ReplyInvalid("fair: expected true")

    unfair = json.dumps({"word": "a", "fair": False})
    model = ScriptedModel([unfair, GOOD, *[unfair] * 3])
    assert ask(model, replace(ASKED, accept=fair), Verdict)[0].fair
    assert "fair: expected true" in model.requests[1].messages[-1][1]
    with pytest.raises(ReplyInvalid) as caught:
        ask(model, replace(ASKED, accept=fair), Verdict)
    assert caught.value.raw == unfair


def test_the_answer_of_an_example_is_requested_once_more_without_it():
    example = (("user", "And this?"), ("assistant", GOOD))
    request = replace(ASKED, messages=(ASKED.messages[0], *example, ASKED.messages[1]))
    other = '{"word": "b", "fair": true}'
    model = ScriptedModel([GOOD, other])
    verdict, usage = ask(model, request, Verdict)
    assert (verdict.word, usage.calls) == ("b", 2)
    assert [role for role, _ in model.requests[1].messages] == ["system", "user"]
    again = ScriptedModel([GOOD, GOOD, other])
    with pytest.raises(ReplyInvalid, match="repeats the answer of an example"):
        ask(again, request, Verdict)
    assert len(again.requests) == 2


@pytest.mark.parametrize("error", [ReplyRefused("no"), ReplyTruncated("cut off"), FatalModelError("no key")])
def test_other_errors_are_not_corrected_but_counted(error):
    model = ScriptedModel([ModelReply("?", 5, 3), error])
    with pytest.raises(type(error)) as caught:
        ask(model, ASKED, Verdict)
    assert len(model.requests) == 2
    assert caught.value.usage == Usage(1, 5, 3, None, 0.0, unusable=1)
    assert error.usage == Usage()


def tried(error: Exception | None, on_error: OnError, unpaid: bool = False) -> str:
    def asked() -> str:
        if error:
            raise error
        return "yes"

    return unless_failing(asked, on_error, lambda one: f"instead of {one}", unpaid)


USED_UP = BudgetExceeded("used up")


@pytest.mark.parametrize("on_error", get_args(OnError))
def test_a_stage_does_what_its_policy_says(on_error: OnError) -> None:
    assert tried(None, on_error) == "yes"
    for fault in (ModelError("a"), TransientModelError("b"), ReplyTruncated("c"), USED_UP):
        if on_error == "fail":
            with pytest.raises(type(fault)):
                tried(fault, on_error, unpaid=True)
        else:
            assert tried(fault, on_error, unpaid=True) == f"instead of {fault}"
    # What no call can mend ends everything.
    for fatal, unpaid in ((FatalModelError("no key"), True), (USED_UP, False)):
        with pytest.raises(type(fatal)):
            tried(fatal, on_error, unpaid)


class Colors(Reply):
    colors: list[str]


SYSTEM = ("system", "You name colors.")
COLORS_PLEASE = ModelRequest((SYSTEM, ("user", "Which colors?")), max_tokens=50, seed=3, prompt="name_colors")
RED = '{"colors": ["red"]}'


@pytest.fixture
def heard() -> list[Exchange]:
    return []


def door(model, cache=None) -> CachingModel:
    return CachingModel(model, cache, Ledger(), name="tiny")


def test_an_exchange_has_all_that_was_asked_and_said(server, make_model, cache: ReplyCache, heard) -> None:
    server.script = [completion("red", usage=(11, 7))]
    asked = door(make_model(price=Price(input=1, output=10)), cache)
    with exchanges_to(heard.append):
        asked.complete(COLORS_PLEASE)
        asked.complete(COLORS_PLEASE)
    sent = tuple((message["role"], message["content"]) for message in server.requests[0]["messages"])
    for one in heard:
        assert one.messages == COLORS_PLEASE.messages == sent
        assert (one.prompt, one.reply, one.max_tokens, one.seed, one.temperature) == ("name_colors", "", 50, 3, None)
        assert (one.model, one.text, one.error, one.finish) == ("tiny-2026", "red", "", "stop")
        assert (one.calls, one.input_tokens, one.output_tokens, one.estimated) == (1, 11, 7, False)
        assert (one.cost, one.attempts) == (pytest.approx(0.000081), ())
    assert [one.cached for one in heard] == [False, True]
    assert heard[0].seconds > 0


def test_every_attempt_is_seen_retries_and_corrections(server, make_model, heard) -> None:
    """An overload, a reply of the wrong form, an overload again, and then a good one: four requests, one exchange."""
    server.script = [error(503, "busy"), completion('{"colors": 3}', usage=(5, 2)), error(500), completion(RED)]
    with exchanges_to(heard.append):
        ask(door(make_model()), COLORS_PLEASE, Colors)
    (one,) = heard
    overload, wrong, fault = one.attempts
    assert "503" in overload.error
    assert "busy" in overload.error
    assert (overload.text, overload.correction) == ("", "")
    assert wrong.text == '{"colors": 3}'
    assert "colors: expected a list" in wrong.error
    assert (wrong.input_tokens, wrong.output_tokens) == (5, 2)
    assert "500" in fault.error
    assert (one.reply, one.text, one.error, one.calls) == ("Colors", RED, "", 4)
    sent = [request["messages"][-1]["content"] for request in server.requests]
    assert sent == ["Which colors?"] * 2 + [f"Which colors?\n\n{wrong.correction}"] * 2


def test_what_comes_to_nothing_is_told_as_well(server, make_model, heard) -> None:
    server.script = [completion("no colors")]
    with exchanges_to(heard.append), pytest.raises(ReplyInvalid):
        ask(door(make_model()), COLORS_PLEASE, Colors)
    server.script = [error(500, "broken")]
    with exchanges_to(heard.append), pytest.raises(TransientModelError):
        door(make_model(attempts=2)).complete(COLORS_PLEASE)
    invalid, down = heard
    assert [one.text for one in invalid.attempts] == ["no colors"] * 2
    assert [bool(one.correction) for one in invalid.attempts] == [True, True]
    assert (invalid.text, invalid.calls) == ("no colors", 3)
    assert invalid.error.startswith("the reply is not the JSON object that was requested")
    assert ["broken" in one.error for one in down.attempts] == [True]
    assert "broken" in down.error
    assert (down.model, down.calls) == ("tiny", 2)


def test_a_file_is_continued_and_read_again(tmp_path: Path, heard) -> None:
    path = tmp_path / "asked.jsonl"
    model = ScriptedModel(["red", ModelError("no"), "blue"])
    with exchanges_to(heard.append):
        with transcript(path):
            model.complete(COLORS_PLEASE)
            with pytest.raises(ModelError):
                model.complete(COLORS_PLEASE)
        with transcript(path):
            model.complete(COLORS_PLEASE)
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


@pytest.fixture
def one(heard) -> Exchange:
    with exchanges_to(heard.append):
        ScriptedModel([ModelReply("!", 3, 4, "m", cost=0.5, notes=("1 retry",))]).complete(COLORS_PLEASE)
    return replace(heard[0], attempts=(Attempt("busy", seconds=0.5),), system="agent", topic="T1")


def test_who_comes_too_late_writes_into_no_other_file(tmp_path: Path, one: Exchange) -> None:
    """After a second Ctrl-C threads go on that nobody waits for, while the tables are written."""
    with Transcript(tmp_path / "t.jsonl") as kept:
        kept.add(one)
        number = kept._descriptor
    with (tmp_path / "results.csv").open("wb") as other:
        # Under the number that the transcript had; a lower one may be free.
        os.dup2(other.fileno(), number)
        try:
            with pytest.raises(BackendUnavailable, match="cannot be written"):
                kept.add(one)
        finally:
            os.close(number)
    assert (tmp_path / "results.csv").read_bytes() == b""
    assert len(list(read_transcript(tmp_path / "t.jsonl"))) == 1


def test_a_damaged_line_is_none_and_the_others_stay(tmp_path: Path, one: Exchange) -> None:
    path = tmp_path / "t.jsonl"
    with Transcript(path) as kept:
        for _ in range(3):
            kept.add(one)
        kept.add(replace(one, cost=math.inf))
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b'"text":"!"', b'"text":"?"')
    path.write_bytes(b"".join(lines) + b'{"exchange":1,"at"')
    assert list(read_transcript(path)) == [one, None, one, None]
