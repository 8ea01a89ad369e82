"""Scores of items by local models and by forced choice, against what they are made of."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import tiny_models

from fairagent.errors import ReplyInvalid
from fairagent.guests.local.likelihood import CausalModel, MaskedModel
from fairagent.guests.testing import ScriptedModel
from fairagent.llm import ModelReply, ModelRequest
from fairagent.llm.prompts import Prompts
from fairagent.papers.debias_rag.benchmarks.items import Pair, StereoSetExample
from fairagent.papers.debias_rag.benchmarks.measures import shared_tokens
from fairagent.papers.debias_rag.benchmarks.preference import CausalScorer, ChoiceScorer, MaskedScorer

INTRA = StereoSetExample(
    "e1", "intrasentence", "gender", "judge", "The BLANK judge.", "The bad judge.", "The good judge.", "The law judge."
)
INTER = StereoSetExample(
    "e2",
    "intersentence",
    "race",
    "nurse",
    "The nurse is good.",
    "She wrote a book.",
    "He was bad.",
    "The law, the city.",
)
PAIR = Pair("p1", "gender", "The woman was a bad judge.", "The man was a bad judge.", True)
CONTEXT = "a river, a city"


@pytest.fixture(scope="module")
def masked(tmp_path_factory: pytest.TempPathFactory) -> MaskedModel:
    return MaskedModel(str(tiny_models.save_next_sentence(tmp_path_factory.mktemp("masked"))))


@pytest.fixture(scope="module")
def causal(tmp_path_factory: pytest.TempPathFactory) -> CausalModel:
    return CausalModel(str(tiny_models.save_causal(tmp_path_factory.mktemp("causal"))))


@pytest.mark.parametrize("context", ["", CONTEXT])
def test_masked_intrasentence_is_the_mean_probability_of_the_word(masked: MaskedModel, context: str) -> None:
    found = MaskedScorer(masked).score(INTRA, context)
    expected = [np.exp(masked.word(text, 4, len(text) - 7, context)).mean() for text in INTRA.sentences]
    np.testing.assert_allclose(found.scores, expected, rtol=1e-6)
    assert found.usage.calls == 0


def test_masked_intersentence_is_the_next_sentence_head(masked: MaskedModel) -> None:
    scorer = MaskedScorer(masked)
    expected = [masked.follows(INTER.context, text) for text in INTER.sentences]
    np.testing.assert_allclose(scorer.score(INTER).scores, expected, rtol=1e-6)
    after = [masked.follows(f"{CONTEXT} {INTER.context}", text) for text in INTER.sentences]
    np.testing.assert_allclose(scorer.score(INTER, CONTEXT).scores, after, rtol=1e-6)


@pytest.mark.parametrize("context", ["", CONTEXT])
def test_masked_pairs_add_up_the_tokens_that_both_share(masked: MaskedModel, context: str) -> None:
    found = MaskedScorer(masked).score(PAIR, context)
    # [CLS] the WOMAN was a bad judge . [SEP]: all but the second token, and not the marks.
    assert shared_tokens(masked.ids(PAIR.more), masked.ids(PAIR.less))[0] == [0, 1, 3, 4, 5, 6, 7, 8]
    expected = [masked.each(text, [1, 3, 4, 5, 6, 7], context).sum() for text in PAIR.sentences]
    np.testing.assert_allclose(found.scores, expected, rtol=1e-6)


@pytest.mark.parametrize(("context", "before"), [("", ""), (CONTEXT, f"{CONTEXT}\n\n")])
def test_causal_sentences_are_typical_probabilities(causal: CausalModel, context: str, before: str) -> None:
    for item in (INTRA, PAIR):
        found = CausalScorer(causal).score(item, context)
        expected = [2 ** np.mean(causal.score([(before, text)])[0] / np.log(2)) for text in item.sentences]
        np.testing.assert_allclose(found.scores, expected, rtol=1e-4)


def test_causal_next_sentences_are_compared_with_themselves_alone(causal: CausalModel) -> None:
    found = CausalScorer(causal).score(INTER)
    alone = [causal.score([("", text)])[0].mean() for text in INTER.sentences]
    after = [causal.score([(INTER.context, f" {text}")])[0].mean() for text in INTER.sentences]
    np.testing.assert_allclose(found.scores, np.divide(alone, after), rtol=1e-4)


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
