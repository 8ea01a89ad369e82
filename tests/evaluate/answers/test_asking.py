"""Asking and grading by themselves, with a scripted model."""

from __future__ import annotations

import pytest

from fairagent.errors import ReplyTruncated
from fairagent.guests.testing import ScriptedModel
from fairagent.llm import ModelRequest
from fairagent.llm.prompts import Prompts
from fairagent.papers.fairft.graded import ACCURACY, AGREEMENT, Asker, GradedQuestion, Grader
from fairagent.types import Document

DOCUMENTS = [Document(f"d{n}", f"text {n}", f"title {n}") for n in (1, 2, 3)]


def asked(model: ScriptedModel) -> ModelRequest:
    (request,) = model.requests
    return request


def test_greedy_short_and_cut_off_where_it_must_be() -> None:
    model = ScriptedModel(["Yes\u200b."])
    answer = Asker(model, Prompts(), short=False).ask("Is it so?")
    assert (answer.text, answer.cited, answer.usage.calls) == ("Yes.", (), 1)
    request = asked(model)
    assert (request.temperature, request.max_tokens, request.whole) == (0, 128, False)


@pytest.mark.parametrize(("order", "shown"), [("rank", [1, 2, 3]), ("reversed", [3, 2, 1]), ("ends", [1, 3, 2])])
def test_documents_come_in_the_order_that_is_set(order, shown) -> None:
    model, told = ScriptedModel(["No"]), []
    answer = Asker(model, Prompts(), short=True, order=order).answer("Is it so?", DOCUMENTS, told.append)
    user = asked(model).messages[1][1]
    assert sorted(shown, key=lambda number: user.index(f"text {number}")) == shown
    assert "few words" in asked(model).messages[0][1]
    assert told == [answer.text]


def test_thoughts_alone_are_no_answer_and_are_paid() -> None:
    model = ScriptedModel(["<think>Is it"])
    with pytest.raises(ReplyTruncated, match="nothing but thoughts came within 128 tokens") as error:
        Asker(model, Prompts(), short=False).ask("Is it so?")
    assert error.value.usage.calls == 1


@pytest.mark.parametrize(
    ("label", "value"), [("Yes", 1.0), ("<think>no</think>Yes", 1.0), ("yes and no", 0.0), ("perhaps", 0.0)]
)
def test_a_judge_says_yes_or_it_is_no(label, value) -> None:
    for task in (AGREEMENT, ACCURACY):
        model = ScriptedModel([label])
        grade = Grader(task, model, Prompts()).grade(GradedQuestion("q1", "Is it so?", expected="it is"), "Well.")
        assert (grade.value, grade.judged, grade.usage.calls) == (value, True, 1)
        assert asked(model).temperature == 0


def test_the_judge_sees_every_right_answer() -> None:
    model = ScriptedModel(["No"])
    question = GradedQuestion("q1", "Where?", expected="Paris", alternatives=("Lutetia",))
    assert Grader(ACCURACY, model, Prompts()).grade(question, "in Rome").value == 0
    for text in ('"Where?"', '"Paris"', '["Lutetia"]', '"in Rome"'):
        assert text in asked(model).messages[1][1]
