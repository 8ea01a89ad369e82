"""Scores of items by local models, against what they are made of; and the context that is not scored."""

from __future__ import annotations

import numpy as np
import pytest
import tiny_models

from fairagent.guests.local.likelihood import CausalModel, MaskedModel
from fairagent.papers.debias_rag.benchmarks.items import Pair, StereoSetExample, crows_pairs_numbers
from fairagent.papers.debias_rag.benchmarks.measures import shared_tokens
from fairagent.papers.debias_rag.benchmarks.scorers import CausalScorer, MaskedScorer

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


def test_pairs_that_share_no_token_are_neutral(masked: MaskedModel) -> None:
    pair = Pair("p", "gender", "woman", "man judge", True)
    scorer = MaskedScorer(masked)
    found = scorer.score(pair)
    assert found.scores.tolist() == [0.0, 0.0]
    assert pair.values(found.scores, scorer.decimals) == {"more stereotyping preferred": 0.0}
    (overall, _) = crows_pairs_numbers([pair], [found.scores], scorer.decimals)
    assert overall.values["CP-S stereo"] is None


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
