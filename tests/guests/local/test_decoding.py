"""The decoding rule on numbers, and inside of transformers' own generation."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_models import save_causal, tokenizer

from fairagent.errors import UsageError
from fairagent.guests.local.decoding import BiasedWordsProcessor
from fairagent.guests.local.likelihood import CausalModel


def test_biased_tokens_become_less_likely_and_all_add_up_to_one() -> None:
    torch = pytest.importorskip("torch")
    before = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
    after = BiasedWordsProcessor((0, 2), 0.5)(None, before.log() + 7).exp()
    assert after.tolist() == [
        pytest.approx([0.25 / 0.65, 0.3 / 0.65, 0.1 / 0.65]),
        pytest.approx([0.05 / 0.55, 0.1 / 0.55, 0.4 / 0.55]),
    ]
    assert BiasedWordsProcessor((), 0.5)(None, before.log()).exp().tolist()[0] == pytest.approx([0.5, 0.3, 0.2])


def test_words_become_tokens_and_those_in_pieces_are_left_out() -> None:
    tokens = tokenizer(pairs=False)
    made = BiasedWordsProcessor.of(tokens, ["Nurse", "she", "zebra", "good bad"], 0.1)
    assert set(made.tokens) == set(tokens.convert_tokens_to_ids(["nurse", "she"]))
    assert made.left_out == ("zebra", "good bad")


@pytest.mark.parametrize("alpha", [0, -1, 1.5, float("nan")])
def test_an_alpha_that_makes_no_sense(alpha: float) -> None:
    with pytest.raises(UsageError, match="alpha"):
        BiasedWordsProcessor((), alpha)


def test_generation_with_transformers(tmp_path: Path) -> None:
    model = CausalModel(str(save_causal(tmp_path / "tiny")))
    inputs = model.tokenizer("the nurse", return_tensors="pt")
    options = {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 0}
    written = model.model.generate(**inputs, **options)[0].tolist()
    words = tuple(set(written[-6:]))
    other = model.model.generate(**inputs, **options, logits_processor=[BiasedWordsProcessor(words, 1e-9)])[0].tolist()
    assert not set(words) & set(other[-6:])
