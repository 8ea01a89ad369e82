"""Decoding rules on numbers, inside of transformers' own generation, and Self-Debias against the rule by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tiny_models
from tiny_models import save_causal, tokenizer

from fairagent.guests.local.decoding import ABOUT, BiasedWordsProcessor, lowered
from fairagent.guests.local.in_process import Decoding, InProcessModel, Weights
from fairagent.guests.local.likelihood import CausalModel
from fairagent.llm import ModelRequest
from fairagent.settings import ModelSettings, SelfDebiasSettings, TransformersSettings


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


def test_generation_with_transformers(tmp_path: Path) -> None:
    model = CausalModel(str(save_causal(tmp_path / "tiny")))
    inputs = model.tokenizer("the nurse", return_tensors="pt")
    options = {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 0}
    written = model.model.generate(**inputs, **options)[0].tolist()
    words = tuple(set(written[-6:]))
    other = model.model.generate(**inputs, **options, logits_processor=[BiasedWordsProcessor(words, 1e-9)])[0].tolist()
    assert not set(words) & set(other[-6:])


RULE = SelfDebiasSettings(kinds=("gender", "religion"), decay=200.0, least=1e-6)
PROMPTS = ("the nurse was", "a judge", "the law is good and the city")
TOKENS = 8


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    words = dict.fromkeys([*tiny_models.WORDS, *ABOUT.lower().replace("{kind}:", "").split(), "gender", "religion"])
    return tiny_models.save_causal(tmp_path_factory.mktemp("writes"), list(words), limit=64)


def model(folder: Path, **own: object) -> InProcessModel:
    settings = TransformersSettings(device="cpu", **own)  # type: ignore[arg-type]
    named = ModelSettings(name=str(folder), temperature=0, max_tokens=TOKENS, transformers=settings)
    return InProcessModel(named, Weights(str(folder), "cpu"))


def by_hand(folder: Path, prompt: str) -> list[int]:
    """The likeliest token under the rule, one after the other, by the distributions of a model that is read anew."""
    causal = CausalModel(str(folder), "cpu")
    tokenizer, weights = causal.tokenizer, causal.model
    torch = pytest.importorskip("torch")

    def told(ids: list[int]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        with torch.inference_mode():
            return torch.log_softmax(weights(torch.tensor([ids])).logits[0, -1].double(), -1).numpy()  # type: ignore[no-any-return]

    ids = tokenizer(prompt)["input_ids"]
    written: list[int] = []
    for _ in range(TOKENS):
        before = [tokenizer(ABOUT.format(kind=kind), add_special_tokens=False)["input_ids"] for kind in RULE.kinds]
        biased = np.stack([told([*one, *ids, *written]) for one in before])[:, None]
        scores = lowered(told([*ids, *written])[None], biased, RULE.decay, RULE.least)[0]
        written.append(int(scores.argmax()))
        if written[-1] == tokenizer.eos_token_id:
            break
    return written


@pytest.mark.slow
def test_every_token_is_the_likeliest_under_the_rule(folder: Path) -> None:
    plain, rival = model(folder), model(folder, self_debias=RULE)
    differs = False
    for prompt in PROMPTS:
        request = ModelRequest((("user", prompt),), whole=False)
        text = rival.complete(request).text
        tokenizer = CausalModel(str(folder), "cpu").tokenizer
        assert text == tokenizer.decode(by_hand(folder, prompt), skip_special_tokens=True).strip()
        differs |= text != plain.complete(request).text
    assert differs


def test_a_batch_says_what_each_prompt_gets_alone(folder: Path) -> None:
    from fairagent.guests.local.in_process import _Pending

    weights = Weights(str(folder), "cpu")
    decoding = Decoding(TOKENS, TransformersSettings(batch=3, self_debias=RULE))
    asked = [_Pending(weights.read((("user", prompt),)), decoding) for prompt in PROMPTS]
    weights._generate(asked)
    alone = [weights.write(one.ids, decoding) for one in asked]
    assert [one.reply for one in asked] == alone


def test_no_decay_changes_nothing_and_replies_are_kept_by_the_rule(folder: Path) -> None:
    request = ModelRequest((("user", PROMPTS[0]),), whole=False)
    plain, none = model(folder), model(folder, self_debias=SelfDebiasSettings(decay=0))
    assert none.complete(request).text == plain.complete(request).text
    assert "self_debias" not in plain.identity(request)
    assert none.identity(request) != model(folder, self_debias=RULE).identity(request)
