"""The scripts of evaluations/debias: the beam search over prompts, SentenceDebias, and a server under Self-Debias."""

from __future__ import annotations

import runpy
import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tiny_models
from fairft.small import save_retriever

from fairagent.errors import DataError
from fairagent.guests.dense.encoders import SentenceEncoder
from fairagent.guests.local.likelihood import ABOUT, CausalModel, lowered
from fairagent.llm import ModelRequest
from fairagent.llm.models import Models
from fairagent.settings import ModelSettings, SelfDebiasSettings
from fairagent.types import FloatArray

from .parts import lexicon

FOLDER = Path(__file__).resolve().parents[2] / "evaluations" / "debias"
searching, debiasing, serving = (
    SimpleNamespace(**runpy.run_path(str(FOLDER / f"{name}.py")))
    for name in ("search_prompts", "sentence_debias", "serve_transformers")
)
divergence = searching.divergence
passages_of, search_prompts = searching.passages_of, searching.search_prompts
bias_subspace, counterfactuals = debiasing.bias_subspace, debiasing.counterfactuals
save_debiased, without = debiasing.save_debiased, debiasing.without
PAIRS = [("he", "she")]
SENTENCES = [
    ("he was a judge", "she was a judge"),
    ("he wrote the book", "she wrote the book"),
    ("he is bad", "she is bad"),
]


class Leaning:
    """The more often "works" is in a text, the surer: she is a nurse, he a judge."""

    words = ("nurse", "judge")

    def distributions(self, texts: Sequence[str]) -> FloatArray:
        rows = []
        for text in texts:
            sure = 0.5 + 0.2 * min(text.split().count("works"), 2)
            rows.append([sure, 1 - sure] if text.startswith("she") else [1 - sure, sure])
        return np.array(rows)


def test_the_beam_finds_what_tells_the_groups_apart() -> None:
    found = search_prompts(Leaning(), PAIRS, ["is", "works"], length=2, width=3)
    assert [prompt.text for prompt in found] == ["works works", "is works", "works"]
    assert found[0].divergence == pytest.approx(np.log(2) + 0.9 * np.log(0.9) + 0.1 * np.log(0.1))
    passages = passages_of(found[:1], Leaning(), PAIRS, "gender")
    assert [(one.id, one.text, one.kind) for one in passages] == [
        ("prompt-1-he", "he works works judge", "gender"),
        ("prompt-1-she", "she works works nurse", "gender"),
    ]


def test_equal_groups_are_not_apart_and_three_may_be() -> None:
    assert divergence(np.full((1, 2, 4), 0.25)).tolist() == [0]
    assert divergence(np.eye(3)) == pytest.approx(np.log(3))


def test_the_subspace_is_that_of_the_principal_components() -> None:
    rng = np.random.default_rng(4)
    first, second = rng.normal(size=(9, 5)), rng.normal(size=(9, 5))
    means = (first + second) / 2
    apart = np.concatenate([first - means, second - means])
    values, vectors = np.linalg.eigh(apart.T @ apart)
    found = bias_subspace(first, second, 2)
    for direction, expected in zip(found, vectors.T[::-1][:2], strict=True):
        assert abs(direction @ expected) == pytest.approx(1)
    assert values[-1] > values[-2]
    np.testing.assert_allclose(found @ found.T, np.eye(2), atol=1e-12)
    left = without(first, found)
    np.testing.assert_allclose(left @ found.T, 0, atol=1e-12)
    np.testing.assert_allclose(without(left, found), left, atol=1e-12)


def test_counterfactuals_are_of_the_class(tmp_path: Path) -> None:
    words = lexicon(tmp_path)
    texts = ["He is late.", "The mosque is late.", "It is late."]
    assert counterfactuals(texts, words) == [
        ("He is late.", "She is late."),
        ("The mosque is late.", "The church is late."),
    ]
    assert counterfactuals(texts, words, "gender") == [("He is late.", "She is late.")]


def test_an_encoder_without_the_subspace(tmp_path: Path) -> None:
    plain = save_retriever(tmp_path / "plain")
    subspace = save_debiased(str(plain), SENTENCES, tmp_path / "debiased")
    texts = ["he was a nurse", "she was a nurse", "the river"]
    before, after = (SentenceEncoder(str(tmp_path / name)).documents(texts) for name in ("plain", "debiased"))
    expected = without(before.astype(float), subspace)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(after, expected, atol=1e-5)
    np.testing.assert_allclose(after @ subspace.T, 0, atol=1e-5)
    assert np.abs(before @ subspace.T).max() > 1e-3
    with pytest.raises(DataError, match="no pair"):
        save_debiased(str(plain), [], tmp_path / "none")


RULE = SelfDebiasSettings(kinds=("gender", "religion"), decay=200.0, least=1e-6)
PROMPTS = ("the nurse was", "a judge", "the law is good and the city")
TOKENS = 8


def by_hand(causal: CausalModel, prompt: str) -> list[int]:
    """The likeliest token under the rule, one after the other."""
    torch = pytest.importorskip("torch")

    def told(ids: list[int]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        with torch.inference_mode():
            return torch.log_softmax(causal.model(torch.tensor([ids])).logits[0, -1].double(), -1).numpy()  # type: ignore[no-any-return]

    ids = causal.tokenizer(prompt)["input_ids"]
    before = [causal.tokenizer(ABOUT.format(kind=kind), add_special_tokens=False)["input_ids"] for kind in RULE.kinds]
    written: list[int] = []
    while len(written) < TOKENS and causal.tokenizer.eos_token_id not in written:
        biased = np.stack([told([*one, *ids, *written]) for one in before])[:, None]
        scores = lowered(told([*ids, *written])[None], biased, RULE.decay, RULE.least)[0]
        written.append(int(scores.argmax()))
    return written


def test_every_token_is_the_likeliest_under_the_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = dict.fromkeys([*tiny_models.WORDS, *ABOUT.lower().replace("{kind}:", "").split(), "gender", "religion"])
    folder = tiny_models.save_causal(tmp_path / "writes", list(words), limit=64)
    server = serving.server(serving.Writer(str(folder), "cpu", RULE), 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    models, causal = Models(), CausalModel(str(folder), "cpu")
    url = f"http://127.0.0.1:{server.server_port}/v1"
    plain, ruled = (
        models.open(ModelSettings(name=name, base_url=url, temperature=0, max_tokens=TOKENS))
        for name in ("tiny", "tiny, Self-Debias")
    )
    differs = False
    for prompt in PROMPTS:
        request = ModelRequest((("user", prompt),), whole=False)
        text = ruled.complete(request).text
        assert text == causal.tokenizer.decode(by_hand(causal, prompt), skip_special_tokens=True).strip()
        differs |= text != plain.complete(request).text
    assert differs
    models.close()
    server.shutdown()
    server.server_close()
