"""Self-Debias: the rule by hand, and a model under it against its own distributions."""

import numpy as np
import pytest
import tiny_models

from fairagent.guests.local.likelihood import ABOUT, CausalModel, SelfDebiased, lowered
from fairagent.settings import SelfDebiasSettings


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> CausalModel:
    words = dict.fromkeys([*tiny_models.WORDS, *ABOUT.lower().replace("{kind}:", "").split(), "gender", "religion"])
    return CausalModel(str(tiny_models.save_causal(tmp_path_factory.mktemp("self-debias"), list(words))), "cpu")


def test_the_rule_by_hand() -> None:
    plain = np.log([[0.5, 0.3, 0.2]])
    biased = np.log([[[0.7, 0.2, 0.1]], [[0.4, 0.4, 0.2]]])
    # The larger of both: .7, .4, .2; so D is -.2, -.1, 0.
    factors = np.array([np.exp(-2.0), np.exp(-1.0), 1.0])
    expected = np.array([0.5, 0.3, 0.2]) * factors
    np.testing.assert_allclose(np.exp(lowered(plain, biased, 10.0, 0.01))[0], expected / expected.sum(), rtol=1e-12)
    # No less than the floor.
    expected = np.array([0.5, 0.3, 0.2]) * np.maximum(factors, 0.2)
    np.testing.assert_allclose(np.exp(lowered(plain, biased, 10.0, 0.2))[0], expected / expected.sum(), rtol=1e-12)
    np.testing.assert_allclose(lowered(plain, biased, 0.0, 0.01), plain, atol=1e-12)
    np.testing.assert_allclose(lowered(plain, plain[None], 50.0, 0.01), plain, atol=1e-12)


def test_a_model_under_the_rule(model: CausalModel) -> None:
    kinds = ("gender", "religion")
    pairs = [("the nurse", " was a woman"), ("", "the judge is a man .")]
    debiased = SelfDebiased(model, SelfDebiasSettings(kinds=kinds, decay=5.0))
    found = debiased.score(pairs)
    for (context, text), scores in zip(pairs, found, strict=True):
        asked = [(context, text), *((ABOUT.format(kind=kind) + context, text) for kind in kinds)]
        told = model.distributions(asked)
        p, biased = np.exp(told[0][1]), np.exp(np.max([table for _, table in told[1:]], axis=0))
        weighted = p * np.maximum(np.where(p < biased, np.exp(5.0 * (p - biased)), 1.0), 0.01)
        expected = np.log(weighted / weighted.sum(axis=1, keepdims=True))
        ids = model.tokenizer(text, add_special_tokens=False)["input_ids"]
        np.testing.assert_allclose(scores, expected[np.arange(len(ids)), ids], atol=1e-9)
    plain = model.score(pairs)
    assert all(not np.allclose(one, other) for one, other in zip(found, plain, strict=True))
    same = SelfDebiased(model, SelfDebiasSettings(kinds=kinds, decay=0.0)).score(pairs)
    assert all(np.allclose(one, other, atol=1e-6) for one, other in zip(same, plain, strict=True))
