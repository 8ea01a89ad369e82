"""Re-ranking by relevance alone, chains of re-rankers, and draws that have a seed of their own for every topic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import ranking

from fairagent.search.rerank.base import Pool, ordered
from fairagent.search.rerank.exposure import ExposureReranker
from fairagent.search.rerank.relevance import ChainReranker, FusedReranker, OriginalReranker, PlackettLuceReranker
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


def scored(n: int, **scores: float) -> Pool:
    return Pool(Query("q"), ranking(list(scores), scores.values()), (), (), n)


def test_original_and_fused_by_hand() -> None:
    found = OriginalReranker(Scores(a=1, b=3, c=2)).rerank(scored(2, a=9, b=8, c=7))
    assert (found.ids, found.scores.tolist()) == (("b", "c"), [3.0, 2.0])
    # original 0, 4, 2 -> 0, 1, 1/2; refined 9, 7, 5 -> 1, 1/2, 0; a quarter of the latter: 1/4, 7/8, 3/8
    found = FusedReranker(Scores(a=0, b=4, c=2), refined=0.25).rerank(scored(3, a=9, b=7, c=5))
    assert (found.ids, found.scores.tolist()) == (("b", "c", "a"), [0.875, 0.375, 0.25])


@given(st.lists(st.integers(-3, 3), max_size=12), st.integers(0, 15))
def test_ordered_is_by_score_then_by_id(scores: list[int], n: int) -> None:
    ids = tuple(f"d{place * 7 % 13:02}" for place in range(len(scores)))
    found = ordered(ids, np.array(scores, dtype=np.float64), n)
    expected = sorted(zip(scores, ids, strict=True), key=lambda pair: (-pair[0], pair[1]))[:n]
    assert found.ids == tuple(id for _, id in expected)
    assert found.scores.tolist() == [score for score, _ in expected]


# --- pools of what a re-ranker gives, and chains of re-rankers ----------------------------------------------------

IDS = ("a", "b", "c", "d")
ROWS = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
KINDS = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.25, 0.75]])


def pool(n: int = 2) -> Pool:
    return Pool(Query("q"), ranking(IDS), (ROWS, KINDS), (np.array([0.5, 0.5]), np.array([1.0])), n)


@dataclass
class Order:
    """Gives these documents, and remembers what it was given."""

    ids: str
    pools: list[Pool] = field(default_factory=list)

    def rerank(self, pool: Pool) -> Ranking:
        self.pools.append(pool)
        return ranking(self.ids.split()).top(pool.n)


def test_a_pool_of_other_candidates_has_their_groups() -> None:
    found = pool().of(ranking(["d", "a"], [0.9, 0.1]))
    assert (found.ranking.ids, found.ranking.scores.tolist()) == (("d", "a"), [0.9, 0.1])
    assert [rows.tolist() for rows in found.memberships] == [ROWS[[3, 0]].tolist(), KINDS[[3, 0]].tolist()]
    assert (found.query, found.n, [target.tolist() for target in found.targets]) == (Query("q"), 2, [[0.5, 0.5], [1.0]])


def test_each_orders_what_the_one_before_it_gives_and_the_last_one_cuts() -> None:
    first, second, last = Order("d c b a"), Order("c d a b"), Order("a c d b")
    assert ChainReranker((first, second, last)).rerank(pool()).ids == ("a", "c")
    given = [one.pools[0] for one in (first, second, last)]
    assert [one.n for one in given] == [4, 4, 2]
    assert [one.ranking.ids for one in given] == [IDS, ("d", "c", "b", "a"), ("c", "d", "a", "b")]
    assert last.pools[0].memberships[0].tolist() == ROWS[[2, 3, 0, 1]].tolist()
    # The scores that the next one sees are those of the one before.
    assert second.pools[0].ranking.scores.tolist() == [4.0, 3.0, 2.0, 1.0]
    alone = ExposureReranker()
    assert ChainReranker((alone,)).rerank(pool(3)).ids == alone.rerank(pool(3)).ids
    assert ChainReranker(()).rerank(pool(3)).ids == ("a", "b", "c")


# --- draws --------------------------------------------------------------------------------------------------------


def falling(size: int, topic: str, text: str = "q", n: int = 10) -> Pool:
    return Pool(Query(text, topic), ranking([f"d{i}" for i in range(size)]), (), (), n)


def test_a_topic_draws_the_same_whatever_is_drawn_elsewhere() -> None:
    found = PlackettLuceReranker(alpha=1e8).rerank(falling(5, "7", n=3))
    assert found.ids == ("d0", "d1", "d2")
    assert found.scores == pytest.approx([1, 2 / 3, 1 / 3])
    reranker = PlackettLuceReranker(alpha=0, seed=5)
    alone = reranker.rerank(falling(30, "a")).ids
    assert all(reranker.rerank(falling(30, topic)).ids != alone for topic in "zyx")
    assert reranker.rerank(falling(30, "a", "other words")).ids == alone
    assert PlackettLuceReranker(alpha=0, seed=6).rerank(falling(30, "a")).ids != alone
    # Results of published runs depend on it.
    pinned = ("d1", "d56", "d138", "d189", "d121", "d170")
    assert PlackettLuceReranker(alpha=1).rerank(falling(200, "1", n=6)).ids == pinned
