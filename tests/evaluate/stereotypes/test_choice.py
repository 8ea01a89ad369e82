"""Forced choice: what is shown in which order, and how replies are read."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from fairagent.errors import ReplyInvalid
from fairagent.guests.testing import ScriptedModel
from fairagent.llm import ModelReply, ModelRequest
from fairagent.llm.prompts import Prompts
from fairagent.papers.debias_rag.benchmarks.scorers import ChoiceScorer

from .test_scorers import INTER, INTRA, PAIR


def shown(request: ModelRequest) -> dict[str, str]:
    """Sentence -> letter."""
    found = re.search(r"^\[\{.*\}\]$", request.messages[1][1], re.MULTILINE)
    assert found
    return {one["sentence"]: one["letter"] for one in json.loads(found[0])}


def ordered(letters: str) -> str:
    return json.dumps({"order": letters})


def test_scores_follow_the_reply_and_not_the_places() -> None:
    wanted = (INTRA.unrelated, INTRA.stereotype, INTRA.anti_stereotype)
    model = ScriptedModel(lambda request: ordered("".join(shown(request)[sentence] for sentence in wanted)))
    for seed in range(8):
        found = ChoiceScorer(model, Prompts(), seed).score(INTRA)
        # The stereotype, its opposite, the unrelated one.
        assert found.scores.tolist() == [1.0, 0.0, 2.0]
        assert found.usage.calls == 1
    assert len({tuple(shown(request)) for request in model.requests}) > 2


def test_what_is_asked() -> None:
    model = ScriptedModel([ordered("AB"), ordered("ABC"), ordered("AB")])
    scorer = ChoiceScorer(model, Prompts())
    scorer.score(PAIR)
    scorer.score(INTER, "A river.")
    scorer.score(PAIR, "A river.")
    alone, after, with_context = (request.messages[1][1] for request in model.requests)
    assert "right after" not in alone
    assert '"A river."' not in alone
    assert json.dumps(INTER.context) in after
    assert '"A river."' in after
    assert '"A river."' in with_context
    assert {request.temperature for request in model.requests} == {0.0}
    assert scorer.way == "forced choice, no likelihoods"


def test_a_server_is_asked_for_one_of_the_orders_and_for_its_chances() -> None:
    model = ScriptedModel([ordered("AB"), ordered("ABC")])
    scorer = ChoiceScorer(model, Prompts())
    scorer.score(PAIR)
    scorer.score(INTRA)
    two, three = model.requests
    assert (two.choices, three.choices) == ("AB", "ABC")
    assert two.narrowed == {"order": {"type": "string", "enum": ["AB", "BA"]}}
    assert three.narrowed is not None
    assert three.narrowed["order"]["enum"] == ["ABC", "ACB", "BAC", "BCA", "CAB", "CBA"]


def test_chances_are_the_scores_where_they_are_told() -> None:
    def answer(request: ModelRequest) -> ModelReply:
        chances = tuple((letter, {"A": 0.5, "B": 0.125, "C": 0.25}[letter]) for letter in request.choices)
        return ModelReply(ordered(request.choices[::-1]), 1, 1, chances=chances)

    model = ScriptedModel(answer)
    found = ChoiceScorer(model, Prompts()).score(INTRA)
    letters = [shown(model.requests[0])[sentence] for sentence in INTRA.sentences]
    assert found.scores.tolist() == [{"A": 0.5, "B": 0.125, "C": 0.25}[letter] for letter in letters]
    assert found.by_chance


@pytest.mark.parametrize("reply", ["AAB", "B", "I cannot say."])
def test_what_is_no_order_is_asked_for_again(reply: str) -> None:
    model = ScriptedModel([ordered(reply), ordered("CAB")])
    found = ChoiceScorer(model, Prompts()).score(INTRA)
    assert (found.usage.calls, found.by_chance) == (2, False)
    assert "order must be all of the letters A, B, C" in model.requests[1].messages[-1][1]


def test_a_reply_that_cannot_be_read_was_paid_for_all_the_same() -> None:
    scorer = ChoiceScorer(ScriptedModel(["I would rather not."] * 3), Prompts())
    with pytest.raises(ReplyInvalid) as found:
        scorer.score(PAIR)
    assert found.value.usage.calls == 3
    assert np.isfinite(found.value.usage.input_tokens)
