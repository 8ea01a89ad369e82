"""Scores of a profile's items: Okapi's edges, and vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import lamp_files
import numpy as np
import pytest
import tiny_models
from hypothesis import given
from hypothesis import strategies as st

from fairagent.errors import DataError
from fairagent.guests.dense.splade import SpladeEncoder
from fairagent.papers.fair_rag.lamp import score_items
from fairagent.papers.fair_rag.okapi import okapi_scores
from fairagent.retrieve.encoders import Embeddings

TEXTS = st.lists(st.text(alphabet="ab B", max_size=12), max_size=6)


class Letters:
    """Counts "o" and "e"; or gives what is no number."""

    name = "letters"

    def __init__(self, broken: bool = False) -> None:
        self.broken = broken

    def documents(self, texts: Sequence[str]) -> Embeddings:
        counts = np.array([[text.count("o"), text.count("e")] for text in texts], dtype=np.float32)
        return counts * np.array([[1.0], [np.nan]], dtype=np.float32) if self.broken else counts

    def queries(self, texts: Sequence[str]) -> Embeddings:
        return np.array([[1.0, 10.0]] * len(texts), dtype=np.float32)


@given(st.text(alphabet="ab B", max_size=12), TEXTS)
def test_any_texts_have_finite_scores_that_do_not_depend_on_their_order(query: str, texts: list[str]) -> None:
    scores = okapi_scores(query, texts)
    assert scores.shape == (len(texts),)
    assert np.isfinite(scores).all()
    np.testing.assert_allclose(okapi_scores(query, texts[::-1]), scores[::-1], atol=1e-12)
    np.testing.assert_allclose(okapi_scores(f"{query} {query}", texts), 2 * scores, atol=1e-12)


def test_items_are_scored_for_the_query_and_not_for_the_whole_input(tmp_path: Path) -> None:
    (question,) = lamp_files.load(tmp_path, "LaMP-4", count=1, items=3).questions
    texts = [item.text for item in question.items]
    assert score_items(question, "okapi").tolist() == okapi_scores(question.query, texts).tolist()
    assert score_items(question, "okapi").tolist() != okapi_scores(question.input, texts).tolist()


def test_items_are_scored_by_vectors(tmp_path: Path) -> None:
    (question,) = lamp_files.load(tmp_path, "LaMP-7", count=1).questions
    assert [item.text for item in question.items] == ["court again, what fun", "rain rain rain"]
    scores = score_items(question, Letters())
    assert (scores.tolist(), scores.dtype) == ([1.0, 0.0], np.float64)
    with pytest.raises(DataError, match="question '10': letters gives item 'p1' a score that is no number"):
        score_items(question, Letters(broken=True))


def test_items_are_scored_by_sparse_weights(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    (question,) = lamp_files.load(tmp_path, "LaMP-7", count=1).questions
    encoder = SpladeEncoder(str(tiny_models.save_masked(tmp_path / "splade", ("court", "rain", "what", "day"))))
    documents = encoder.documents([item.text for item in question.items]).toarray()
    expected = documents @ encoder.queries([question.query]).toarray()[0]
    np.testing.assert_allclose(score_items(question, encoder), expected, rtol=1e-6)
