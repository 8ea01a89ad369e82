"""The second pass of a model's answer: when it is asked for, which answer stays, what is said of it, what it costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scripted import by_letter, collection

from fairagent.answer.aim import Aim
from fairagent.answer.generators import LlmGenerator
from fairagent.collection.exposure import ExposureMeter
from fairagent.errors import BudgetExceeded, ModelError, ReplyTruncated
from fairagent.guests.testing import ScriptedModel
from fairagent.llm import ModelReply, ModelRequest
from fairagent.llm.prompts import Prompts
from fairagent.settings import Settings
from fairagent.settings.tree import CitationSettings
from fairagent.types import Answer, Document, Ranking

CONTEXT = [
    Document("m1", "He was a judge in the north."),
    Document("m2", "A judge, and a poet."),
    Document("f1", "She was the first judge of the south."),
    Document("f2", "A river without any court."),
]
MEN = "He was a judge in the north [1]. A judge, and a poet [2]."
BOTH = "He was a judge in the north [1]. She was the first judge of the south [3]."


def asked(
    *script: Any, prompts: Prompts | None = None, context: list[Document] = CONTEXT, tolerance: float = 0.02
) -> tuple[Answer, ScriptedModel]:
    """What a model of this script answers to a question on judges, half of whose sources should be women."""
    ids = [one.id for one in context]
    settings = Settings(target={"gender": {"female": 0.5, "male": 0.5}}, unknown="ignore")
    ranking = Ranking(tuple(ids), np.arange(len(ids), 0, -1.0))
    meter = ExposureMeter.make(collection(by_letter([*ids, "f9", "m9"])), "", settings, ranking)
    aim = Aim.of(meter, ids, CitationSettings(aim=True, tolerance=tolerance))
    assert aim
    model = ScriptedModel(script)
    return LlmGenerator(model, prompts or Prompts()).aimed("which judge?", context, aim), model


def test_citations_near_the_target_are_left_as_they_are() -> None:
    answer, model = asked(BOTH)
    assert (answer.text, answer.revision, len(model.requests)) == (BOTH, None, 1)
    answer, model = asked(MEN, tolerance=20)
    assert (answer.text, answer.revision, len(model.requests)) == (MEN, None, 1)


def test_a_second_answer_nearer_to_the_target_takes_the_place_of_the_first() -> None:
    answer, model = asked(MEN, BOTH)
    assert (answer.text, answer.cited, answer.usage.calls) == (BOTH, (1, 3), 2)
    assert answer.revision
    assert (answer.revision.kept, answer.revision.why) == (True, "told of sources that it had not used: 3")
    assert answer.revision.gap == (pytest.approx(0.2158, abs=1e-4), pytest.approx(0, abs=1e-6))
    assert answer.revision.support == (1, 1)
    first, second = (request.messages[-1][1] for request in model.requests)
    assert "Your first answer" not in first
    # Document 4 says nothing on the question.
    assert "does not use the documents 3, so" in second
    assert MEN in second


@pytest.mark.parametrize(
    ("second", "why", "calls"),
    [
        (MEN, "its citations are no nearer to the target", 2),
        ("He was a judge [1]. She ruled wisely over seven seas [3].", "its sources hold it up less", 2),
        ("They do not say.", "its citations are no nearer to the target", 2),
        (ModelError("overloaded"), "the second pass came to nothing: overloaded", 1),
        (ReplyTruncated("cut off", raw="She was [3]"), "the second pass came to nothing: cut off", 1),
    ],
    ids=["no nearer", "less support", "cites nothing", "fails", "cut off"],
)
def test_else_the_first_one_stays_and_it_is_said_why(second: Any, why: str, calls: int) -> None:
    answer, _ = asked(MEN, second)
    assert (answer.text, answer.cited, answer.truncated) == (MEN, (1, 2), False)
    assert answer.revision
    assert not answer.revision.kept
    assert why in answer.revision.why
    assert answer.usage.calls == calls


def test_a_budget_that_is_used_up_leaves_the_first_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    complete = ScriptedModel.complete

    def once(self: ScriptedModel, request: ModelRequest) -> ModelReply:
        if self.requests:
            raise BudgetExceeded("no call is left")
        return complete(self, request)

    monkeypatch.setattr(ScriptedModel, "complete", once)
    answer, _ = asked(MEN)
    assert (answer.text, answer.usage.calls) == (MEN, 1)
    assert answer.revision
    assert answer.revision.why == "the second pass came to nothing: no call is left"


def test_where_no_source_would_help_nobody_is_asked_again() -> None:
    answer, model = asked(MEN, context=CONTEXT[:2])
    assert len(model.requests) == 1
    assert answer.revision
    assert "no source that it does not cite" in answer.revision.why


def test_an_answer_that_cites_nothing_or_what_is_not_there_is_asked_to_cite() -> None:
    for first in ("There were judges.", "There were judges [8]."):
        answer, model = asked(first, BOTH)
        assert (answer.cited, len(model.requests)) == ((1, 3), 2)
        assert answer.revision
        assert answer.revision.kept
