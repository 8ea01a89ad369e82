"""Replies as models write them: thoughts, drafts, JSON that is none; by the forms that servers pass on."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fairagent.errors import ReplyInvalid
from fairagent.llm.replies import (
    LONGEST_MENDED,
    LONGEST_REPLY,
    MOST_PARTS,
    Thoughts,
    parse_reply,
    read_object,
    without_thoughts,
)
from fairagent.llm.request import Reply


class Verdict(Reply):
    word: str
    fair: bool


class Words(Reply):
    words: list[str]


class Marks(Reply):
    marks: list[Verdict]


GOOD, DRAFT = '{"word": "a", "fair": true}', '{"word": "b", "fair": false}'
FINAL = "<|channel|>final<|message|>"
THOUGHT = {
    "deepseek, qwen": f"<think>Perhaps {DRAFT}?</think>\n\n",
    "a template that opens the thoughts": f"Perhaps {DRAFT}?\n</think>\n\n",
    "magistral": f"[THINK]Perhaps {DRAFT}?[/THINK]",
    "gemini": f"<thought>\nPerhaps {DRAFT}?\n</thought>\n",
    "prompted claude": f"<thinking>Perhaps {DRAFT}?</thinking>",
    "kimi": f"◁think▷Perhaps {DRAFT}?◁/think▷",
    "seed": f"<seed:think>Perhaps {DRAFT}?</seed:think>",
    "gpt-oss": f"<|channel|>analysis<|message|>Perhaps {DRAFT}?<|end|><|start|>assistant{FINAL}",
    "gpt-oss, channels": f"<|channel|>analysis<|message|>Hm.<|channel|>commentary<|message|>{DRAFT}<|end|>{FINAL}",
    "a thought of tags": f"<think>A tag like <think> or {DRAFT}</think>",
}


@pytest.mark.parametrize("thought", THOUGHT.values(), ids=list(THOUGHT))
def test_thoughts_are_no_part_of_a_reply(thought):
    assert read_object(thought + GOOD, Verdict) == (Verdict(word="a", fair=True), ())
    assert without_thoughts(thought + "She [2].").strip() == "She [2]."
    for size in (1, 2, 3, 7):
        thoughts, shown = Thoughts(), ""
        text = thought + "She [2], a < b and a [T."
        for at in range(0, len(text), size):
            piece, all_thoughts = thoughts.read(text[at : at + size])
            shown = ("" if all_thoughts else shown) + piece
        assert (shown + thoughts.close()).strip() == "She [2], a < b and a [T."


@pytest.mark.parametrize("begun", ["<think>", "[THINK]", "<thinking>\n", "<|channel|>analysis<|message|>"])
def test_thoughts_that_never_end_are_no_reply(begun):
    with pytest.raises(ReplyInvalid, match="nothing but the model's thoughts"):
        parse_reply(f"{begun}I consider {GOOD} but am not done", Verdict)


def test_a_tag_that_is_spoken_of_is_text():
    text = "Models write <think> before they answer [1]."
    assert without_thoughts(text) == text


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"Here you are: {GOOD}. And another: {{}}",
        f"I weigh {{both}} sides first, then: {GOOD}",
        f"A bad reply would be {DRAFT}. The final answer is:\n```json\n{GOOD}\n```",
        f"{GOOD} }} stray",
        f"\ufeff{GOOD}",
    ],
)
def test_the_last_object_that_fits_is_read(text):
    assert parse_reply(text, Verdict) == Verdict(word="a", fair=True)


@pytest.mark.parametrize(
    ("text", "form", "mended"),
    [
        ('{"words": ["piano", "drums",],}', Words, "not quite JSON"),
        ("{'words': ['piano', 'drums']}", Words, "not quite JSON"),
        ('{"words": ["piano", "drums"] // two\n}', Words, "not quite JSON"),
        ("{words: [piano, drums]}", Words, "not quite JSON"),
        ("{“words”: [“piano”, “drums”]}", Words, "not quite JSON"),
        ('{\u00a0"words":\u00a0["piano", "drums"]}', Words, "not quite JSON"),
        ('{"why": "because", "words": ["piano", "drums"]}', Words, "other keys"),
        ('{"Words": {"words": ["piano", "drums"]}}', Words, "an object in an object"),
        ('["piano", "drums"]', Words, "a list without its key"),
        ('{"words": "piano, drums"}', Words, "a list as text"),
        ('{"marks": [{"word": "a", "fair": true, "id": 1}]}', Marks, "other keys"),
        ('{"marks": [{"word": "a", "fair": "yes"}]}', Marks, "values as text"),
        ('{"word": "a", "fair": "True",}', Verdict, "not quite JSON, values as text"),
    ],
)
def test_what_can_be_mended_is_not_asked_for_again(text, form, mended):
    value, told = read_object(f"Here:\n{text}", form)
    right = {
        Words: Words(words=["piano", "drums"]),
        Marks: Marks(marks=[Verdict(word="a", fair=True)]),
        Verdict: Verdict(word="a", fair=True),
    }
    assert value == right[form]
    assert ", ".join(told) == mended


@given(st.text(), st.text(alphabet=st.characters(exclude_characters="{}<[◁")))
@example("a" * (LONGEST_REPLY - 27), "")
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
        ('{"word": "a", "fair": "perhaps"}', "fair: expected true or false"),
        ('{"word": ["a"], "fair": true}', "word: expected text"),
    ],
)
def test_what_is_wrong_is_said(text, words):
    with pytest.raises(ReplyInvalid) as caught:
        parse_reply(text, Verdict)
    assert words in str(caught.value)
    assert caught.value.raw == text


@pytest.mark.parametrize(
    "text",
    [
        "{'" * 4000 + "}" * 4000,
        "{" * (MOST_PARTS + 1),
        '{"word": "' + "a" * (LONGEST_REPLY - 25) + '", "fair": true}',
        "{'a'}" * 2000,
        '{"word": [' + "'a'" * LONGEST_MENDED + "]}",
    ],
)
def test_50_hostile_and_endless_replies_are_refused(text):
    with pytest.raises(ReplyInvalid) as caught:
        parse_reply(text, Verdict)
    assert len(caught.value.raw) <= 2000
