"""Attribution by a language model, scripted."""

from __future__ import annotations

import json

import pytest
from judges import documents_in, outside, says, verdicts

from fairagent.answer.attribution import JudgeAttributor
from fairagent.errors import FatalModelError, ModelError, ReplyRefused, TransientModelError
from fairagent.guests.testing import Scripted, ScriptedModel
from fairagent.llm import ModelReply, ModelRequest
from fairagent.llm.prompts import Prompts
from fairagent.types import Answer, Document, Usage

PROMPTS = Prompts()
CONTEXT = [Document("a", "A court."), Document("b", "A judge."), Document("c", "A judge too.")]
ANSWER = Answer("There was a judge [2], [3].", (2, 3))


def judging(request: ModelRequest) -> Scripted:
    return ModelReply(verdicts(documents_in(request), says("judge")), 50, 5)


@pytest.mark.parametrize(("batch", "calls"), [(1, 3), (2, 2), (9, 1)])
def test_documents_that_the_model_passes_weigh_1(batch: int, calls: int):
    model = ScriptedModel(judging)
    found = JudgeAttributor(model, PROMPTS, batch).attribute("law", ANSWER, CONTEXT)
    assert (found.kind, found.weights.tolist(), found.notes) == ("judge", [0.0, 1.0, 1.0], ())
    assert (found.usage.calls, len(model.requests)) == (calls, calls)


def test_the_model_sees_the_answer_as_data_and_without_citations():
    model = ScriptedModel(judging)
    JudgeAttributor(model, PROMPTS).attribute("law", Answer('She said "no" [1]. {{ 7*7 }}', (1,)), CONTEXT[:1])
    shown = outside(model.requests[0])
    assert json.dumps('She said "no". {{ 7*7 }}') in shown
    assert "[1]" not in shown


def test_what_the_model_does_not_see_is_noted():
    found = JudgeAttributor(ScriptedModel(judging), PROMPTS).attribute(
        "law", Answer("x" * 5000), [CONTEXT[0], Document("long", "judge " * 2000)]
    )
    assert found.notes == (
        "document 2: text cut to 8,000 of 12,000 characters",
        "answer cut to 4,000 of 5,000 characters",
    )


def test_nothing_to_compare_asks_nobody():
    model = ScriptedModel([])
    found = JudgeAttributor(model, PROMPTS).attribute("law", Answer("[1]", (1,)), CONTEXT)
    assert (found.weights.tolist(), found.notes, found.usage) == ([0.0] * 3, ("the answer is empty",), Usage())
    assert JudgeAttributor(model, PROMPTS).attribute("law", ANSWER, []).weights.shape == (0,)


@pytest.mark.parametrize("error", [ReplyRefused("declined"), TransientModelError("overload"), FatalModelError("key")])
def test_without_a_verdict_there_are_no_weights(error: ModelError):
    def answer(request: ModelRequest) -> Scripted:
        return error if documents_in(request)[0]["text"] == "A judge." else judging(request)

    with pytest.raises(type(error)):
        JudgeAttributor(ScriptedModel(answer), PROMPTS, on_error="fail").attribute("law", ANSWER, CONTEXT)
    if isinstance(error, FatalModelError):
        with pytest.raises(FatalModelError):
            JudgeAttributor(ScriptedModel(answer), PROMPTS).attribute("law", ANSWER, CONTEXT)
        return
    found = JudgeAttributor(ScriptedModel(answer), PROMPTS, workers=1).attribute("law", ANSWER, CONTEXT)
    assert (found.kind, found.weights.tolist()) == ("citations", [0.0, 1.0, 1.0])
    assert found.notes == (f"the judge gave no usable verdict, so citations count: {error}",)
    # What was judged before was paid for.
    assert found.usage.input_tokens >= 50
