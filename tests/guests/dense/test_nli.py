"""Attribution by entailment, with a tiny model of random weights: nothing is downloaded."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models

from fairagent.errors import BackendUnavailable
from fairagent.guests.dense.nli import BATCH, NliAttributor, entailment_label
from fairagent.types import Answer, Document

WORDS = "the a judge court woman man law city river she he was is born wrote book"
LIMIT = 100


def save_model(folder: Path, *labels: str) -> Path:
    """A BERT of two layers whose answer depends on what comes first and what second."""
    return tiny_models.save_classifier(folder, list(labels), WORDS.split(), limit=LIMIT)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("transformers")
    return save_model(tmp_path_factory.mktemp("nli"), "CONTRADICTION", "NEUTRAL", "ENTAILMENT")


@pytest.fixture(scope="module")
def attributor(folder: Path) -> NliAttributor:
    return NliAttributor(str(folder))


@pytest.fixture
def read(attributor: NliAttributor, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The pairs as the model read them: marks and padding included."""
    seen: list[str] = []
    forward = attributor._model.forward

    def spy(**pairs: Any) -> Any:
        for row, mask in zip(pairs["input_ids"], pairs["attention_mask"], strict=True):
            seen.append(attributor._tokenizer.decode(row[mask.bool()]))
        return forward(**pairs)

    monkeypatch.setattr(attributor._model, "forward", spy)
    return seen


def documents(*texts: str) -> list[Document]:
    return [Document(f"d{place}", text) for place, text in enumerate(texts)]


def test_the_document_is_the_premise_and_the_answer_the_hypothesis(attributor: NliAttributor, read: list[str]) -> None:
    answer = Answer("She was a judge [1], [2].", (1, 2))
    found = attributor.attribute("law", answer, [Document("d1", "the woman wrote law", "court"), *documents("a river")])
    assert read == [
        "[CLS] court the woman wrote law [SEP] she was a judge . [SEP]",
        "[CLS] a river [SEP] she was a judge . [SEP]",
    ]
    assert found.kind == "nli"
    assert found.weights.shape == (2,)


def test_a_document_weighs_1_where_entailment_is_the_likeliest_label(attributor: NliAttributor) -> None:
    import torch

    rng = np.random.default_rng(5)
    texts = [" ".join(rng.choice(WORDS.split(), 6)) for _ in range(2 * BATCH + 3)]
    answer = "she was a judge"
    weights = attributor.attribute("law", Answer(answer), documents(*texts)).weights

    def likeliest(first: str, second: str) -> int:
        with torch.inference_mode():
            return int(attributor._model(**attributor._tokenizer(first, second, return_tensors="pt")).logits.argmax())

    assert weights.tolist() == [float(likeliest(text, answer) == 2) for text in texts]
    assert 0 < weights.sum() < len(texts)
    # The other direction is another question, and this model answers it otherwise.
    assert weights.tolist() != [float(likeliest(answer, text) == 2) for text in texts]


@pytest.mark.parametrize(("words", "read_of_it", "left"), [(4, 4, 93), (60, 60, 37), (150, 65, 32)])
def test_a_long_pair_loses_the_end_of_its_premise(
    attributor: NliAttributor, read: list[str], words: int, read_of_it: int, left: int
) -> None:
    # 100 tokens: three marks and the whole answer, even if that is the longer part, then what is left; 32 at least.
    answer, said = " ".join(["judge"] * words), " ".join(["judge"] * read_of_it)
    found = attributor.attribute("law", Answer(answer), documents(" ".join(["river"] * 200), "court"))
    assert read == [f"[CLS] {' '.join(['river'] * left)} [SEP] {said} [SEP]", f"[CLS] court [SEP] {said} [SEP]"]
    assert len(found.notes) == (words > read_of_it)
    assert all("150 tokens" in note and "read 65" in note for note in found.notes)


def test_the_label_is_found_by_its_name_whatever_its_number(tmp_path: Path) -> None:
    turned = NliAttributor(str(save_model(tmp_path, "entailment", "not_entailment")))
    assert turned._entailment == 0
    with pytest.raises(BackendUnavailable, match="LABEL_0, LABEL_1"):
        entailment_label({0: "LABEL_0", 1: "LABEL_1"}, "x")
