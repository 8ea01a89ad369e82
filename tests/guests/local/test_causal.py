"""A local model's likelihoods: against the same sums done by hand, whatever the batch and the padding."""

import logging
from pathlib import Path

import numpy as np
import pytest
import tiny_models

from fairagent.errors import DataError, UsageError
from fairagent.guests.local.likelihood import CausalModel

PAIRS = [
    ("the judge", " she is a nurse."),
    ("", "the judge wrote a good book"),
    ("the woman was born, the man was born, a city river", " yes"),
    ("the law", " no, the doctor"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_models.save_causal(tmp_path_factory.mktemp("models") / "causal", limit=32))


@pytest.fixture(scope="module")
def model(folder: str) -> CausalModel:
    return CausalModel(folder, "cpu")


def by_hand(model: CausalModel, context: str, text: str) -> np.ndarray:
    """Token by token, one forward pass each, in numpy."""
    import torch

    before = model.tokenizer(context, add_special_tokens=False)["input_ids"] or [model.tokenizer.bos_token_id]
    found = []
    for token in model.tokenizer(text, add_special_tokens=False)["input_ids"]:
        with torch.inference_mode():
            logits = model.model(torch.tensor([before])).logits[0, -1].double().numpy()
        found.append(logits[token] - np.log(np.exp(logits - logits.max()).sum()) - logits.max())
        before = [*before, token]
    return np.array(found)


@pytest.mark.parametrize(("batch", "side"), [(1, "left"), (3, "left"), (3, "right")])
def test_a_batch_equals_the_sums_by_hand(folder: str, batch: int, side: str) -> None:
    model = CausalModel(folder, "cpu", "float32", batch)
    model.tokenizer.padding_side = side
    for (context, text), score in zip(PAIRS, model.score(PAIRS), strict=True):
        np.testing.assert_allclose(score, by_hand(model, context, text), atol=1e-5)
        assert (score <= 0).all()


def test_a_long_context_loses_its_beginning_and_says_so(folder: str, caplog: pytest.LogCaptureFixture) -> None:
    model = CausalModel(folder, "cpu")
    words = ["court"] * 20 + ["judge"] * 31
    with caplog.at_level(logging.WARNING):
        long, short = model.score([(" ".join(words), " yes"), (" ".join(["judge"] * 31), " yes")])
    assert model.shortened == 1
    assert "lose their beginning" in caplog.text
    np.testing.assert_allclose(long, short, atol=1e-6)


def test_a_token_across_the_border_is_the_texts_and_a_text_that_is_too_long_is_refused(model: CausalModel) -> None:
    # "jud" + "ge" is one word: it ends in the text.
    (score,) = model.score([("the jud", "ge")])
    np.testing.assert_allclose(score, by_hand(model, "the", "judge"), atol=1e-5)
    with pytest.raises(DataError, match="reads 32 at a time"):
        model.score([("the", "judge " * 40)])


def test_a_chat_is_asked_in_its_template(folder: str, tmp_path: Path) -> None:
    plain = CausalModel(folder, "cpu")
    plain.tokenizer.chat_template = (
        "{% for m in messages %}court {{ m.content }} law {% endfor %}{% if add_generation_prompt %}judge {% endif %}"
    )
    plain.tokenizer.save_pretrained(tmp_path)
    plain.model.save_pretrained(tmp_path)
    chat = CausalModel(str(tmp_path), "cpu", chat=True)
    np.testing.assert_allclose(
        chat.score([("the man", "yes")])[0], plain.score([("court the man law judge ", "yes")])[0], atol=1e-6
    )
    with pytest.raises(UsageError, match="no chat template"):
        CausalModel(folder, "cpu", chat=True)
