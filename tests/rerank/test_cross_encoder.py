"""Re-ranking by models that read pairs: the order, what is beyond the depth, and the scores of tiny models by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from tiny_models import save_bert, save_causal, save_cross_encoder

from fairagent.errors import BackendUnavailable
from fairagent.guests.dense.cross_encoder import CrossEncoderReranker, CrossEncoderScorer
from fairagent.search.rerank.base import Pool
from fairagent.types import FloatArray, Query, Ranking

from .greedy_pools import Texts

TEXTS = ["the judge wrote a good book", "nurse", "she is a doctor . he was a judge in the city , he wrote"]


@dataclass
class Numbers:
    """Scores each document as written down."""

    scores: dict[str, float]
    name: str = "numbers"
    asked: list[tuple[str, list[str]]] = field(default_factory=list)

    def score(self, query: str, texts: Sequence[str]) -> FloatArray:
        self.asked.append((query, list(texts)))
        return np.array([self.scores[text.split()[-1]] for text in texts], dtype=np.float64)


def pool(n: int, ids: str = "abcd") -> Pool:
    return Pool(Query("who?"), Ranking(tuple(ids), np.arange(len(ids), 0, -1.0)), (), (), n)


def test_the_best_are_ordered_by_the_scorer_and_the_rest_follows() -> None:
    scorer = Numbers({"a": 0, "b": 2, "c": 2, "d": 1})
    found = CrossEncoderReranker(Texts(), scorer).rerank(pool(3, "acbd"))
    assert (found.ids, found.scores.tolist()) == (("b", "c", "d"), [2.0, 2.0, 1.0])
    assert scorer.asked == [("who?", [f"title of {id} text of {id}" for id in "acbd"])]
    scorer = Numbers({"a": -3, "b": 5})
    found = CrossEncoderReranker(Texts(), scorer, depth=2).rerank(pool(4))
    assert (found.ids, found.scores.tolist()) == (("b", "a", "c", "d"), [5.0, -3.0, -4.0, -5.0])
    assert CrossEncoderReranker(Texts(), scorer, depth=2).rerank(pool(1)).ids == ("b",)
    assert CrossEncoderReranker(Texts(), scorer, depth=2).rerank(pool(3)).ids == ("b", "a", "c")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sentence_transformers")
    folder = tmp_path_factory.mktemp("pairs")
    save_cross_encoder(folder / "cross")
    save_bert(folder / "headless")
    save_causal(folder / "other")
    return folder


def test_a_cross_encoder_gives_the_output_of_its_head(models: Path) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(models / "cross")
    model = AutoModelForSequenceClassification.from_pretrained(models / "cross")
    found = CrossEncoderScorer(str(models / "cross")).score("a judge", TEXTS)
    for score, text in zip(found.tolist(), TEXTS, strict=True):
        with torch.inference_mode():
            assert score == pytest.approx(float(model(**tokenizer("a judge", text, return_tensors="pt")).logits), 1e-4)
    # No sigmoid.
    assert np.abs(found).max() > 1
    assert CrossEncoderScorer(str(models / "cross")).score("a judge", []).tolist() == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere", r"no cross-encoder '.*nowhere' on this machine.*download"),
        ("headless", r"\(BertModel\) is no cross-encoder: it has no head"),
    ],
)
def test_models_that_are_missing(name: str, message: str, models: Path) -> None:
    with pytest.raises(BackendUnavailable, match=message):
        CrossEncoderScorer(str(models / name))
