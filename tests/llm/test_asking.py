"""Checked replies: what is read from a text, what is corrected, what is raised, and that it is all counted."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.errors import (
    BudgetExceeded,
    FatalModelError,
    ModelError,
    ReplyInvalid,
    ReplyRefused,
    ReplyTruncated,
    TransientModelError,
)
from fairagent.guests.testing import ScriptedModel
from fairagent.llm import ModelReply, ModelRequest, Reply, ask
from fairagent.llm.asking import OnError, unless_failing
from fairagent.llm.reply import parse_reply
from fairagent.types import Usage


class Verdict(Reply):
    word: str
    fair: bool


ASKED = ModelRequest((("system", "Judge."), ("user", "Is it fair?")))
GOOD = '{"word": "a", "fair": true}'


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"Here you are: {GOOD}. And another: {{}}",
        f"I weigh {{both}} sides first, then: {GOOD}",
        f'<think>Perhaps {{"word": "b", "fair": false}}?</think>\n{GOOD}',
        '{"word": "a", "fair": true} } stray',
    ],
)
def test_the_first_object_is_read(text):
    assert parse_reply(text, Verdict) == Verdict(word="a", fair=True)


@given(st.text(), st.text(alphabet=st.characters(exclude_characters="{}")))
def test_any_string_survives(word, prose):
    text = prose + json.dumps({"word": word, "fair": False}, ensure_ascii=False)
    if any("\ud800" <= sign <= "\udfff" for sign in word):
        return
    assert parse_reply(text, Verdict).word == word


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no JSON object"),
        ('{"word": "a", "fair": true', "no JSON object"),
        ('{"word": "a"}', "fair: is missing"),
        ('{"word": "a", "fair": "True"}', "fair: expected true or false"),
        ('{"word": "a", "fair": true, "why": ""}', "why: unknown key"),
    ],
)
def test_what_is_wrong_is_said(text, words):
    with pytest.raises(ReplyInvalid) as caught:
        parse_reply(text, Verdict)
    assert words in str(caught.value)
    assert caught.value.raw == text


def test_a_good_reply_is_asked_for_once():
    model = ScriptedModel([ModelReply(GOOD, 5, 3, seconds=0.5)])
    assert ask(model, ASKED, Verdict) == (Verdict(word="a", fair=True), Usage(1, 5, 3, None, 0.5))
    assert model.requests == [ModelRequest(ASKED.messages, reply=Verdict)]


@pytest.mark.parametrize(
    "bad", ["no idea", '{"word": "a"}', '{"word": "a", "fair": true,}', ReplyInvalid("it was empty")]
)
def test_one_correction_repeats_the_prompt_and_names_the_fault(bad):
    model = ScriptedModel([bad, GOOD])
    verdict, usage = ask(model, ASKED, Verdict)
    assert verdict.fair
    assert usage.calls == (1 if isinstance(bad, ReplyInvalid) else 2)
    system, user = model.requests[1].messages
    assert system == ASKED.messages[0]
    assert user[1].startswith("Is it fair?\n\nYour previous reply could not be used: ")


def test_three_invalid_replies_are_an_error_with_text_and_usage():
    model = ScriptedModel(
        [ModelReply("first", 5, 3), ModelReply("second", 6, 4), ModelReply("third" * 1000, 6, 4), GOOD]
    )
    with pytest.raises(ReplyInvalid) as caught:
        ask(model, ASKED, Verdict)
    assert len(model.requests) == 3
    assert caught.value.raw == ("third" * 1000)[:2000]
    assert caught.value.usage == Usage(3, 17, 11, None, 0.0, unusable=3)


def test_a_reply_of_the_right_form_may_still_be_refused():
    def fair(verdict):
        if not verdict.fair:
            raise ReplyInvalid("fair: expected true")

    unfair = json.dumps({"word": "a", "fair": False})
    model = ScriptedModel([unfair, GOOD])
    assert ask(model, replace(ASKED, accept=fair), Verdict)[0].fair
    assert "fair: expected true" in model.requests[1].messages[-1][1]
    with pytest.raises(ReplyInvalid) as caught:
        ask(ScriptedModel([unfair] * 3), replace(ASKED, accept=fair), Verdict)
    assert caught.value.raw == unfair


@pytest.mark.parametrize("error", [ReplyRefused("no"), ReplyTruncated("cut off"), FatalModelError("no key")])
def test_other_errors_are_not_corrected_but_counted(error):
    model = ScriptedModel([ModelReply("?", 5, 3), error])
    with pytest.raises(type(error)) as caught:
        ask(model, ASKED, Verdict)
    assert len(model.requests) == 2
    assert caught.value.usage == Usage(1, 5, 3, None, 0.0, unusable=1)
    assert error.usage == Usage()


def raising(error: Exception) -> object:
    def ask() -> str:
        raise error

    return ask


def tried(error: Exception, on_error: OnError, unpaid: bool = False) -> str:
    return unless_failing(raising(error), on_error, lambda one: f"instead of {one}", unpaid)  # type: ignore[arg-type]


@pytest.mark.parametrize("on_error", get_args(OnError))
def test_a_reply_is_a_reply_whatever_the_policy(on_error: OnError) -> None:
    assert unless_failing(lambda: "yes", on_error, str) == "yes"


@pytest.mark.parametrize("on_error", ["keep", "drop", "fallback"])
@pytest.mark.parametrize("error", [ModelError("a"), TransientModelError("b"), ReplyTruncated("c")])
def test_an_error_is_what_the_stage_makes_of_it(on_error: OnError, error: ModelError) -> None:
    assert tried(error, on_error) == f"instead of {error}"


def test_fail_raises_it() -> None:
    with pytest.raises(ReplyTruncated):
        tried(ReplyTruncated("c"), "fail")
    with pytest.raises(BudgetExceeded):
        tried(BudgetExceeded("used up"), "fail", unpaid=True)


@pytest.mark.parametrize("on_error", get_args(OnError))
def test_what_no_call_can_mend_ends_everything(on_error: OnError) -> None:
    with pytest.raises(FatalModelError):
        tried(FatalModelError("no key"), on_error, unpaid=True)
    with pytest.raises(BudgetExceeded):
        tried(BudgetExceeded("used up"), on_error)


def test_a_stage_that_can_do_without_a_model_goes_on_without_a_budget() -> None:
    assert tried(BudgetExceeded("used up"), "fallback", unpaid=True) == "instead of used up"
