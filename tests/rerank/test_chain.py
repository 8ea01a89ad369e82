"""Pools of what a re-ranker gives, and chains of re-rankers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scripted import ranking

from fairagent.search.rerank.base import Pool
from fairagent.search.rerank.exposure import ExposureReranker
from fairagent.search.rerank.relevance import ChainReranker
from fairagent.types import Query, Ranking

IDS = ("a", "b", "c", "d")
ROWS = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
KINDS = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.25, 0.75]])
HALF = np.array([0.5, 0.5])


def pool(n: int = 2) -> Pool:
    return Pool(Query("q"), ranking(IDS), (ROWS, KINDS), (HALF, np.array([1.0])), n)


@dataclass
class Order:
    """Gives these documents, and remembers what it was given."""

    ids: str
    pools: list[Pool] = field(default_factory=list)

    def rerank(self, pool: Pool) -> Ranking:
        self.pools.append(pool)
        return ranking(self.ids.split()).top(pool.n)


# --- Pool.of ----------------------------------------------------------------------------------------------------


def test_a_pool_of_other_candidates_has_their_groups() -> None:
    found = pool().of(ranking(["d", "a"], [0.9, 0.1]))
    assert (found.ranking.ids, found.ranking.scores.tolist()) == (("d", "a"), [0.9, 0.1])
    assert [rows.tolist() for rows in found.memberships] == [ROWS[[3, 0]].tolist(), KINDS[[3, 0]].tolist()]
    assert (found.query, found.n) == (Query("q"), 2)
    assert [target.tolist() for target in found.targets] == [[0.5, 0.5], [1.0]]
    assert pool().of(ranking(IDS)).memberships[0].tolist() == ROWS.tolist()


# --- chains -----------------------------------------------------------------------------------------------------


def test_each_orders_what_the_one_before_it_gives_and_the_last_one_cuts() -> None:
    first, second, last = Order("d c b a"), Order("c d a b"), Order("a c d b")
    found = ChainReranker((first, second, last)).rerank(pool())
    assert found.ids == ("a", "c")
    assert [one.pools[0].n for one in (first, second, last)] == [4, 4, 2]
    assert [one.pools[0].ranking.ids for one in (first, second, last)] == [
        IDS,
        ("d", "c", "b", "a"),
        ("c", "d", "a", "b"),
    ]
    assert last.pools[0].memberships[0].tolist() == ROWS[[2, 3, 0, 1]].tolist()
    # The scores that the next one sees are those of the one before.
    assert second.pools[0].ranking.scores.tolist() == [4.0, 3.0, 2.0, 1.0]


def test_one_is_itself_and_none_is_the_order_of_the_candidates() -> None:
    alone = ExposureReranker()
    assert ChainReranker((alone,)).rerank(pool(3)).ids == alone.rerank(pool(3)).ids
    assert ChainReranker(()).rerank(pool(3)).ids == ("a", "b", "c")
