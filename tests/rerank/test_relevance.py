"""Re-ranking by relevance alone: the user's query, and the fusion with what found the candidates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fairagent.search.rerank.base import Pool, ordered
from fairagent.search.rerank.relevance import FusedReranker, OriginalReranker
from fairagent.types import FloatArray, Query, Ranking


class Scores:
    """An engine that scores each document for any query as written down."""

    def __init__(self, **scores: float) -> None:
        self.scores = scores

    def search(self, query: Query, n: int) -> Ranking:
        raise NotImplementedError

    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        assert query == Query("q")
        return np.array([self.scores[id] for id in ids], dtype=np.float64)


def pool(n: int, **scores: float) -> Pool:
    candidates = Ranking(tuple(scores), np.array(list(scores.values()), dtype=np.float64))
    return Pool(Query("q"), candidates, (), (), n)


def test_original_orders_by_the_users_query() -> None:
    found = OriginalReranker(Scores(a=1, b=3, c=2)).rerank(pool(2, a=9, b=8, c=7))
    assert (found.ids, found.scores.tolist()) == (("b", "c"), [3.0, 2.0])


def test_fused_by_hand() -> None:
    # original 0, 4, 2 -> 0, 1, 1/2; refined 9, 7, 5 -> 1, 1/2, 0; a quarter of the latter: 1/4, 7/8, 3/8
    found = FusedReranker(Scores(a=0, b=4, c=2), refined=0.25).rerank(pool(3, a=9, b=7, c=5))
    assert found.ids == ("b", "c", "a")
    assert found.scores.tolist() == [0.875, 0.375, 0.25]


@given(st.lists(st.integers(-3, 3), max_size=12), st.integers(0, 15))
def test_ordered_is_by_score_then_by_id(scores: list[int], n: int) -> None:
    ids = tuple(f"d{place * 7 % 13:02}" for place in range(len(scores)))
    found = ordered(ids, np.array(scores, dtype=np.float64), n)
    expected = sorted(zip(scores, ids, strict=True), key=lambda pair: (-pair[0], pair[1]))[:n]
    assert found.ids == tuple(id for _, id in expected)
    assert found.scores.tolist() == [score for score, _ in expected]
