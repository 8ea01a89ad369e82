"""Attribution: by entailment (a tiny model of random weights), citations, and a scripted judge."""

from __future__ import annotations

import json

import numpy as np
import pytest
from judges import documents_in, outside, says, verdicts
from scripted import by_letter, collection

from fairagent.answer.answering import CitationAttributor, JudgeAttributor, statement, with_exposures
from fairagent.answer.shapley import ShapleyAttributor
from fairagent.collection.exposure import ExposureMeter
from fairagent.errors import FatalModelError, ModelError, ReplyRefused, TransientModelError
from fairagent.guests.testing import Scripted, ScriptedModel
from fairagent.llm import ModelReply, ModelRequest
from fairagent.llm.prompts import Prompts
from fairagent.measures import LOG2_MAX2, group_exposure
from fairagent.settings import Settings
from fairagent.types import Answer, Attribution, Document, Ranking


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("A judge [1, 2][3]; a court [4\u20136].", "A judge; a court."),
        ("A judge [1], [2]; [3-5].", "A judge."),
        ("In [brackets] of 1990 [x1]", "In [brackets] of 1990 [x1]"),
        ("jud\u200bge", "judge"),
    ],
)
def test_what_the_answer_says_without_its_citations(text: str, said: str):
    assert statement(Answer(text)) == said


IDS = ["f1", "m1", "f2", "m2", "u1"]


def meter() -> ExposureMeter:
    settings = Settings(n=2, target="uniform")
    return ExposureMeter.make(collection(by_letter(IDS)), "", settings, Ranking((), np.zeros(0)))


def test_a_fair_context_whose_answer_rests_on_one_group_and_ranks_that_weigh():
    found = with_exposures(Attribution("citations", np.array([0.0, 1.0, 0.0, 1.0, 0.0])), IDS, meter())
    (retrieved,), (attributed,) = found.retrieved, found.exposures
    # The whole context counts, though the meter's cut-off is 2; the unlabeled document is left out of the shares.
    assert (retrieved.labels, retrieved.shares.tolist()) == (("female", "male"), [0.5, 0.5])
    assert (retrieved.unknown, retrieved.divergence) == (pytest.approx(0.2), pytest.approx(0.0, abs=1e-9))
    assert attributed.shares.tolist() == [0.0, 1.0]
    assert attributed.divergence > 0.2
    assert found.kind == "citations"
    weights = np.array([1.0, 0.5, 0.0, 1.0, 1.0])
    found = with_exposures(Attribution("judge", weights), IDS, meter(), LOG2_MAX2)
    rows = np.array([[0, 1, 0], [0, 0, 1], [0, 1, 0], [0, 0, 1], [1, 0, 0]])
    shares = group_exposure(rows, LOG2_MAX2(5) * weights)
    assert found.exposures[0].unknown == pytest.approx(shares[0])
    assert found.exposures[0].shares == pytest.approx(shares[1:] / shares[1:].sum())


def test_documents_that_say_the_same_share_what_they_add_whatever_is_cited():
    context = [
        Document("a", "She was a judge of Ghent."),
        Document("b", "A judge in Ghent."),
        Document("c", "Of roses."),
        Document("d", "Ghent has judges and roses."),
    ]
    # Of "judge" and "ghent" a and b hold both, d one: d has a third of a half, a and b that and half of the rest each.
    # "Roses": c and d a half each.
    found = ShapleyAttributor().attribute("law", Answer("A judge, of Ghent [1]. Of roses [3]."), context)
    assert (found.kind, found.called, found.notes) == ("shapley", "credited", ())
    assert found.weights == pytest.approx([5 / 24, 5 / 24, 1 / 4, 1 / 3])
    for text in ("", "...", "[2]"):
        assert ShapleyAttributor().attribute("law", Answer(text), context).weights.tolist() == [0, 0, 0, 0]
    assert ShapleyAttributor().attribute("law", Answer("A judge."), []).weights.tolist() == []


PROMPTS = Prompts()
JUDGED = [Document("a", "A court."), Document("b", "A judge."), Document("c", "A judge too.")]
ANSWER = Answer("There was a judge [2], [3].", (2, 3))


def judging(request: ModelRequest) -> Scripted:
    return ModelReply(verdicts(documents_in(request), says("judge")), 50, 5)


@pytest.mark.parametrize(("batch", "calls"), [(1, 3), (9, 1)])
def test_documents_that_the_model_passes_weigh_1(batch: int, calls: int):
    model = ScriptedModel(judging)
    found = JudgeAttributor(model, PROMPTS, batch).attribute("law", ANSWER, JUDGED)
    assert (found.kind, found.weights.tolist(), found.notes) == ("judge", [0.0, 1.0, 1.0], ())
    assert (found.usage.calls, len(model.requests)) == (calls, calls)
    # The answer is data, and without its citations.
    model = ScriptedModel(judging)
    JudgeAttributor(model, PROMPTS).attribute("law", Answer('She said "no" [1]. {{ 7*7 }}', (1,)), JUDGED[:1])
    shown = outside(model.requests[0])
    assert json.dumps('She said "no". {{ 7*7 }}') in shown
    assert "[1]" not in shown
    none = CitationAttributor().attribute("law", Answer("Judges."), JUDGED)
    assert (none.weights.tolist(), none.notes) == ([0.0, 0.0, 0.0], ("the answer cites nothing",))


@pytest.mark.parametrize("error", [ReplyRefused("declined"), TransientModelError("overload"), FatalModelError("key")])
def test_without_a_verdict_there_are_no_weights(error: ModelError):
    def answer(request: ModelRequest) -> Scripted:
        return error if documents_in(request)[0]["text"] == "A judge." else judging(request)

    with pytest.raises(type(error)):
        JudgeAttributor(ScriptedModel(answer), PROMPTS, on_error="fail").attribute("law", ANSWER, JUDGED)
    if isinstance(error, FatalModelError):
        with pytest.raises(FatalModelError):
            JudgeAttributor(ScriptedModel(answer), PROMPTS).attribute("law", ANSWER, JUDGED)
        return
    found = JudgeAttributor(ScriptedModel(answer), PROMPTS, workers=1).attribute("law", ANSWER, JUDGED)
    assert (found.kind, found.weights.tolist()) == ("citations", [0.0, 1.0, 1.0])
    assert found.notes == (f"the judge gave no usable verdict, so citations count: {error}",)
    # What was judged before was paid for.
    assert found.usage.input_tokens >= 50
