"""Relevance feedback by vectors, by hand: what it adds to which queries, on the scale of the engine's scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from loop_engine import Scores, Words

from fairagent.collection.exposure import ExposureMeter
from fairagent.measures import LOG2_MAX2
from fairagent.retrieve.base import EngineScores
from fairagent.retrieve.encoders import Embeddings
from fairagent.search.relevance import VectorFeedback, Weighed, Weighing
from fairagent.types import FloatArray, Query, Ranking

VECTORS = {"a": (3, 4), "b": (2, 0), "c": (1, 5), "d": (0, 5)}
OWN, PRODUCTS = ("a", "b", "c"), np.array([3.0, 2.0, 1.0])
"""What the query's vector (1, 0) finds. Its mean with that of a, (.6, .8), is (.8, .4), whose products are 4, 1.6 and
2.8 (d: 2): at the old mean of 2 and the old spread they are 3, 1 and 2 (d: 4 / 3)."""
FEEDBACK = VectorFeedback(None, mix=0.5, documents=1, longest=2)
METER = ExposureMeter(None, "", (), 3, LOG2_MAX2, "js")  # type: ignore[arg-type]
"""Of no dimension."""


class Plane:
    """Documents and queries as vectors in the plane; scores are their products, with this zero and unit."""

    def __init__(self, shift: float = 0, scale: float = 1) -> None:
        self.shift, self.scale = shift, scale

    def search(self, query: Query, n: int) -> Ranking:
        return Ranking(OWN[:n], self.score(query, OWN[:n]))

    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        return np.asarray((self.vectors(ids) @ self.query_vector(query) + self.shift) * self.scale, dtype=np.float64)

    def vectors(self, ids: Sequence[str]) -> Embeddings:
        return np.array([VECTORS[id] for id in ids], dtype=np.float32)

    def query_vector(self, query: Query) -> Embeddings:
        return np.array([1, 0], dtype=np.float32)


class Fused(Plane):
    """Words, and a tenth of the products of those that the vectors list: not of c."""

    engines = Scores({}), Plane()

    def parts(self, query: Query) -> EngineScores:
        return EngineScores(OWN, np.array([[0.5, 0.3], [0.4, 0.2], [0.3, 0.0]]))

    def failures(self, query: Query) -> Mapping[str, str]:
        return {}


class FusedWords(Fused):
    """A fusion that has vectors and does not search by them."""

    engines = Scores({}), Scores({})  # type: ignore[assignment]


def weighed(engine: Any, text: str = "law", feedback: VectorFeedback = FEEDBACK) -> Weighed:
    query = Query(text)
    return Weighing(feedback, None, 0).of(engine, query, engine.search(query, 3), METER)


@pytest.mark.parametrize(("shift", "scale"), [(0, 1), (-20, 1), (100, 8), (3, 1 / 16)])
def test_feedback_by_hand_whatever_the_zero_and_the_unit_of_the_scores(shift: float, scale: float) -> None:
    made = weighed(Plane(shift, scale))
    assert made.candidates.ids == ("a", "c", "b")
    assert made.candidates.scores == pytest.approx((np.array([3, 2, 1]) + shift) * scale)
    # The engine's last has a score of 1, d one of 0.
    joined = made.joined(made.candidates, ["d"])
    assert joined.ids == ("a", "c", "d", "b")
    assert joined.scores == pytest.approx((np.array([3, 2, 4 / 3, 1]) + shift) * scale)


@pytest.mark.parametrize(("engine", "unit"), [(Plane(), 1), (Fused(), 0.1), (FusedWords(), 0)])
def test_of_a_fusion_feedback_counts_as_its_vectors_do(engine: Any, unit: float) -> None:
    gains = FEEDBACK.gains(engine, Query("law"), Ranking(OWN, PRODUCTS))
    assert gains
    assert gains[0] == pytest.approx(unit * np.array([0, -1, 1]), abs=1e-6)
    assert gains[1](["a", "b", "c", "d"]) == pytest.approx(unit * np.array([0, -1, 1, 4 / 3]), abs=1e-6)


def test_long_queries_and_engines_without_vectors_are_left_as_they_are() -> None:
    by_words = VectorFeedback(Words({}), mix=0.5, documents=1, longest=2)
    assert weighed(Plane(), "the law of the sea", by_words).candidates.ids == ("a", "c", "b"), "two words, as analyzed"
    without = Scores({"a": 3, "b": 2, "c": 1}, law="a b c")
    for made in (
        weighed(Plane(), "law of sea"),
        weighed(Plane(), "the law of the sea court", by_words),
        weighed(without),
    ):
        assert (made.candidates.ids, made.candidates.scores.tolist()) == (OWN, PRODUCTS.tolist())
        assert made.gains == ()
    assert FEEDBACK.gains(Plane(), Query("law"), Ranking(("a",), np.array([3.0]))) is None, "nothing to tell it from"
