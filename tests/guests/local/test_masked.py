"""Masked models: every number against torch and transformers by hand."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_models

from fairagent.guests.local.likelihood import MaskedModel

TEXT = "the judge was a good man ."
MASK, CLS, SEP = 4, 2, 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.save_next_sentence(tmp_path_factory.mktemp("masked"))


@pytest.fixture(scope="module")
def model(folder: Path) -> MaskedModel:
    return MaskedModel(str(folder), batch=2)


@pytest.fixture(scope="module")
def whole(folder: Path) -> Any:
    from transformers import BertForPreTraining

    return BertForPreTraining.from_pretrained(folder).eval()


def log_p(whole: Any, ids: list[int], segments: list[int], place: int, token: int) -> float:
    import torch

    with torch.inference_mode():
        logits = whole(torch.tensor([ids]), token_type_ids=torch.tensor([segments])).prediction_logits
    return float(torch.log_softmax(logits[0, place].double(), -1)[token])


def ids_of(model: MaskedModel, text: str) -> list[int]:
    return list(model.tokenizer(text, add_special_tokens=False)["input_ids"])


def test_tokens_masked_one_at_a_time(model: MaskedModel, whole: Any) -> None:
    ids = [CLS, *ids_of(model, TEXT), SEP]
    assert model.ids(TEXT) == ids
    places = [1, 2, 5]
    expected = []
    for place in places:
        hidden = [*ids[:place], MASK, *ids[place + 1 :]]
        expected.append(log_p(whole, hidden, [0] * len(ids), place, ids[place]))
    np.testing.assert_allclose(model.each(TEXT, places), expected, rtol=1e-4)
    assert model.each(TEXT, []).shape == (0,)


def test_after_a_context_only_the_text_is_masked(model: MaskedModel, whole: Any) -> None:
    context, text = "a doctor wrote", "the judge"
    first, second = ids_of(model, context), ids_of(model, text)
    ids = [CLS, *first, SEP, *second, SEP]
    segments = [0] * (len(first) + 2) + [1] * (len(second) + 1)
    place = len(first) + 3
    hidden = [*ids[:place], MASK, *ids[place + 1 :]]
    found = model.each(text, [2], context)
    np.testing.assert_allclose(found, [log_p(whole, hidden, segments, place, second[1])], rtol=1e-4)
    assert abs(float(found[0]) - float(model.each(text, [2])[0])) > 1e-3


def test_a_word_from_left_to_right(model: MaskedModel, whole: Any) -> None:
    """Earlier tokens are there, a mask stands for the one that is asked for, later ones are not there."""
    start = TEXT.index("good")
    found = model.word(TEXT, start, start + len("good man"))
    before, after = ids_of(model, "the judge was a"), ids_of(model, ".")
    good, man = ids_of(model, "good man")
    first = [CLS, *before, MASK, *after, SEP]
    second = [CLS, *before, good, MASK, *after, SEP]
    expected = [
        log_p(whole, first, [0] * len(first), 5, good),
        log_p(whole, second, [0] * len(second), 6, man),
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_which_sentence_follows(model: MaskedModel, whole: Any) -> None:
    import torch

    first, second = "the judge was good .", "she wrote a book ."
    encoded = model.tokenizer(first, second, return_tensors="pt", return_token_type_ids=True)
    with torch.inference_mode():
        logits = whole(**encoded).seq_relationship_logits[0].double()
    assert model.follows(first, second) == pytest.approx(float(torch.softmax(logits, -1)[0]), rel=1e-4)


def test_a_long_context_loses_its_beginning(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = MaskedModel(str(folder))
    # 128 tokens, of which three are marks and two the text's.
    with caplog.at_level(logging.WARNING):
        long = model.each("the judge", [2], "law " * 50 + "city " * 123)
    assert model.shortened == 1
    assert "longer contexts lose their beginning" in caplog.text
    np.testing.assert_allclose(long, model.each("the judge", [2], "city " * 123), rtol=1e-5)
    assert model.shortened == 1
