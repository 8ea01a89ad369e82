"""Plackett-Luce as a re-ranker: the first ranks of a draw that has a seed of its own for every topic."""

from __future__ import annotations

import numpy as np
import pytest

from fairagent.search.rerank.base import Pool
from fairagent.search.rerank.relevance import PlackettLuceReranker
from fairagent.types import Query, Ranking


def pool(scores: list[float], topic: str = "7", text: str = "q", n: int = 10) -> Pool:
    ids = tuple(f"d{i}" for i in range(len(scores)))
    ranking = Ranking(ids, np.array(scores, dtype=np.float64))
    return Pool(Query(text, topic), ranking, (), (), n)


def test_a_ranking_of_the_best() -> None:
    found = PlackettLuceReranker(alpha=1e8).rerank(pool([5, 4, 3, 2, 1], n=3))
    assert found.ids == ("d0", "d1", "d2")
    assert found.scores == pytest.approx([1, 2 / 3, 1 / 3])


def test_a_topic_draws_the_same_whatever_is_drawn_elsewhere() -> None:
    reranker = PlackettLuceReranker(alpha=0, seed=5)
    scores = [float(i) for i in range(30, 0, -1)]
    alone = reranker.rerank(pool(scores, topic="a")).ids
    for topic in "zyx":
        assert reranker.rerank(pool(scores, topic=topic)).ids != alone
    assert reranker.rerank(pool(scores, topic="a", text="other words")).ids == alone
    assert PlackettLuceReranker(alpha=0, seed=6).rerank(pool(scores, topic="a")).ids != alone


def test_the_ranking_is_pinned() -> None:
    # Results of published runs depend on it.
    found = PlackettLuceReranker(alpha=1).rerank(pool([float(i) for i in range(200, 0, -1)], topic="1", n=6))
    assert found.ids == ("d1", "d56", "d138", "d189", "d121", "d170")
