"""A model's attention to passages: what is known of weights that see no difference, and of one layer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fairagent.guests.local.attention import AttentionReader

pytest.importorskip("torch")
import tiny_models

PASSAGES = ("the judge", "a nurse can drive", "the king")


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> AttentionReader:
    return AttentionReader(str(tiny_models.save_causal(tmp_path_factory.mktemp("model"))))


def test_shares_add_up_to_one_and_depend_on_the_passages(reader: AttentionReader) -> None:
    found = reader.shares("the", PASSAGES, "can", "the nurse")
    assert found.shape == (3,)
    assert found.sum() == pytest.approx(1)
    assert (found > 0).all()
    assert not np.allclose(found, reader.shares("the", PASSAGES[::-1], "can", "the nurse"))


def test_a_model_that_sees_no_difference_attends_alike_to_all(tmp_path: Path) -> None:
    reader = AttentionReader(str(tiny_models.save_causal(tmp_path)))
    for layer in reader._model.transformer.h:
        layer.attn.c_attn.weight.data.zero_()
        layer.attn.c_attn.bias.data.zero_()
    # Without queries and keys each token attends to all before it alike; the longer passage gets no more for that.
    assert reader.shares("the", PASSAGES, "can", "the nurse") == pytest.approx([1 / 3] * 3)


def test_the_tokens_of_a_passage_are_found(tmp_path: Path) -> None:
    """Attention that is put on one token by hand lands in the passage that has it."""
    torch = pytest.importorskip("torch")
    reader = AttentionReader(str(tiny_models.save_causal(tmp_path)))
    before, after = "the", "can"
    counts = [len(reader._tokens(text)) for text in (before, *PASSAGES, after)]
    bos = int(reader._tokenizer.bos_token_id is not None)
    second = bos + counts[0] + counts[1]

    class OneToken:
        """Attends to the first token of the second passage alone."""

        device = "cpu"

        def __call__(self, ids: object, **options: object) -> object:
            length = int(ids.shape[1])  # type: ignore[attr-defined]
            layer = torch.zeros(1, 2, length, length)
            layer[..., second] = 1.0
            return type("Output", (), {"attentions": (layer, layer)})()

    reader._model = OneToken()
    assert reader.shares(before, PASSAGES, after, "the nurse").tolist() == [0.0, 1.0, 0.0]
