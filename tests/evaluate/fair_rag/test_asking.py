"""Questions of LaMP as a model is asked them: what they show, how they are cut, and models that give no answer."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import lamp_files
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.errors import ReplyInvalid, ReplyRefused
from fairagent.guests.testing import ScriptedModel
from fairagent.llm.prompts import Prompts
from fairagent.llm.request import estimate_tokens
from fairagent.papers.fair_rag.lamp import NO_ANSWER, TASKS, TOKENS, Item, LampQuestion, answer_from, messages_for

ALL = tuple(TASKS)
PROMPTS = Prompts()


def question(folder: Path, task: str = "LaMP-4", items: int = 2) -> LampQuestion:
    return lamp_files.load(folder, task, count=1, items=items).questions[0]


def long_question(task: str, text: str, items: int) -> LampQuestion:
    """A question all of whose texts are `text`."""
    fields = dict.fromkeys(TASKS[task].shown, text)
    return LampQuestion("1", TASKS[task], text, text, tuple(Item(f"p{n}", text, fields) for n in range(items)), text)


@pytest.mark.parametrize("task", ALL)
def test_a_prompt_shows_the_question_as_it_stands_and_the_items_in_their_order(tmp_path: Path, task: str) -> None:
    asked = question(tmp_path, task)
    (system, _), (user, text) = messages_for(PROMPTS, asked, asked.items[::-1])
    assert (system, user) == ("system", "user")
    assert text.count(asked.input) == 1
    places = [text.index(json.dumps(value)) for item in asked.items[::-1] for value in sorted(item.fields.values())]
    assert max(places) < text.index(asked.input)
    first, last = ([text.index(json.dumps(value)) for value in item.fields.values()] for item in asked.items)
    assert max(last) < min(first)
    bare = messages_for(PROMPTS, asked, [])
    assert asked.input in bare[1][1]
    assert bare[1][1].startswith(asked.input)
    assert not any(json.dumps(value) in bare[1][1] for item in asked.items for value in item.fields.values())


@pytest.mark.parametrize("task", ALL)
@pytest.mark.parametrize(
    ("text", "items"), [("court " * 900, 0), ("x" * 5000, 1), ('"\n' * 2000, 5), ("裁判所" * 900, 20)]
)
def test_no_prompt_is_longer_than_it_may_be(task: str, text: str, items: int) -> None:
    asked = long_question(task, text, items)
    messages = messages_for(PROMPTS, asked, asked.items)
    assert estimate_tokens(*(text for _, text in messages)) <= TOKENS
    # The end of the template, where it says what is wanted, is there.
    assert messages[-1][1].endswith("and nothing else:")


@given(tokens=st.integers(200, 900), length=st.integers(0, 3000), items=st.integers(0, 7))
def test_any_length_fits_and_room_is_used(tokens: int, length: int, items: int) -> None:
    asked = replace(long_question("LaMP-4", "court law " * (length // 10), items), input="Which headline?")
    messages = messages_for(PROMPTS, asked, asked.items, tokens)
    taken = estimate_tokens(*(text for _, text in messages))
    assert taken <= tokens
    if items and length > 5 * tokens:
        # What a share leaves over is less than two words an item, and as much again for rounding.
        assert taken > tokens - 10 * items


def test_a_model_is_asked_greedily_for_a_short_answer(tmp_path: Path) -> None:
    asked = question(tmp_path)
    model = ScriptedModel(["<think>North.</think> A court in the north"])
    answer = answer_from(model, PROMPTS, asked, asked.items)
    assert (answer.text, answer.notes, answer.usage.calls) == ("A court in the north", (), 1)
    (request,) = model.requests
    assert (request.temperature, request.max_tokens, request.whole) == (0.0, 128, False)
    assert request.messages == messages_for(PROMPTS, asked, asked.items)


@pytest.mark.parametrize("error", [ReplyRefused("it declined"), ReplyInvalid("the answer is empty")])
def test_a_model_that_gives_no_answer_has_answered_with_nothing(tmp_path: Path, error: ReplyInvalid) -> None:
    answer = answer_from(ScriptedModel([error]), PROMPTS, question(tmp_path), [])
    assert (answer.text, answer.notes) == ("", (f"{NO_ANSWER}: {error}",))
