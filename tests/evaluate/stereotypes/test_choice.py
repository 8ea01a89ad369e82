"""Forced choice: what is shown in which order, and how replies are read."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from fairagent.errors import ReplyInvalid
from fairagent.evaluate.kinds.stereotypes.choice import ChoiceScorer, order, read_order
from fairagent.llm import ModelRequest
from fairagent.prompts import Prompts
from fairagent.testing import ScriptedModel

from .test_scorers import INTER, INTRA, PAIR


def shown(request: ModelRequest) -> dict[str, str]:
    """Sentence -> letter."""
    found = re.search(r"^\[\{.*\}\]$", request.messages[1][1], re.MULTILINE)
    assert found
    return {one["sentence"]: one["letter"] for one in json.loads(found[0])}


def test_scores_follow_the_reply_and_not_the_places() -> None:
    wanted = (INTRA.unrelated, INTRA.stereotype, INTRA.anti_stereotype)
    model = ScriptedModel(lambda request: " > ".join(shown(request)[sentence] for sentence in wanted))
    for seed in range(8):
        found = ChoiceScorer(model, Prompts(), seed).score(INTRA)
        # The stereotype, its opposite, the unrelated one.
        assert found.scores.tolist() == [1.0, 0.0, 2.0]
        assert found.usage.calls == 1
    assert len({tuple(shown(request)) for request in model.requests}) > 2


def test_one_item_has_one_order_whoever_is_asked() -> None:
    assert order(1, PAIR) == order(1, PAIR)
    orders = [order(seed, PAIR) for seed in range(200)]
    # Fair up to chance (a binomial with n = 200).
    assert 70 < sum(one == (0, 1) for one in orders) < 130


def test_what_is_asked() -> None:
    model = ScriptedModel(["AB", "ABC", "AB"])
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


@pytest.mark.parametrize(
    ("reply", "count", "letters"),
    [
        ("CAB", 3, "CAB"),
        ("C, A, B", 3, "CAB"),
        ("C > A > B.", 3, "CAB"),
        ("1. C\n2. A", 3, None),
        ('{"order": "CAB"}', 3, "CAB"),
        ('["C", "A", "B"]', 3, "CAB"),
        ("The order is: B, A, C", 3, "BAC"),
        ("<think>ABC or CAB</think>\nBAC", 3, "BAC"),
        ("B", 2, "BA"),
        ("**A**", 2, "AB"),
        ("B", 3, None),
        ("AAB", 3, None),
        ("A sentence is as good as any other", 2, None),
        ("I cannot say.", 2, None),
        ("", 2, None),
        ("ABCD", 3, None),
    ],
)
def test_replies(reply: str, count: int, letters: str | None) -> None:
    if letters is None:
        with pytest.raises(ReplyInvalid, match="no order of the letters"):
            read_order(reply, count)
    else:
        assert read_order(reply, count) == letters


def test_a_reply_that_cannot_be_read_was_paid_for_all_the_same() -> None:
    scorer = ChoiceScorer(ScriptedModel(["I would rather not."]), Prompts())
    with pytest.raises(ReplyInvalid) as found:
        scorer.score(PAIR)
    assert found.value.usage.calls == 1
    assert np.isfinite(found.value.usage.input_tokens)
