"""An agent whose rankings are drawn: one a request from what the loop and the re-ranker leave, and samples of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare
from scripted import Engine, agent, drawing, ranking

from fairagent.errors import UsageError
from fairagent.report.story import story_text
from fairagent.search.agent import FairAgent
from fairagent.search.rerank.base import Pool
from fairagent.search.rerank.exposure import ExposureReranker
from fairagent.types import Query, Ranking

TWENTY = {"q": " ".join(f"{'mf'[i % 2]}{i}" for i in range(20))}
"""Twenty documents, best first."""


def twenty(lists: dict[str, str] = TWENTY, alpha: float = 1.0, **settings: Any) -> FairAgent:
    return drawing(agent(Engine(lists), None, **settings), alpha)


def test_every_request_gets_a_ranking_of_its_own() -> None:
    made = twenty()
    results = [made.search("q") for _ in range(10)]
    served = [result.ranking.ids for result in results]
    assert len(set(served)) > 5
    assert all(len(set(ids)) == 4 for ids in served)
    draws = [result.trace.draw for result in results]
    assert [draw.request for draw in draws if draw] == list(range(10))
    assert draws[0] is not None
    assert (draws[0].alpha, draws[0].pool, draws[0].seed) == (1.0, 20, 0)
    # Another agent with the same seed, in another order of topics.
    again = twenty()
    again.search(Query("q", "other"))
    assert [again.search("q").ranking.ids for _ in range(10)] == served
    other = twenty(sampling={"seed": 1})
    assert [other.search("q").ranking.ids for _ in range(10)] != served


def test_it_draws_from_the_pool_and_the_trace_is_about_what_is_served() -> None:
    result = twenty(alpha=0.0).search("q")
    women = sum(id[0] == "f" for id in result.ranking.ids) / 4
    assert result.trace.exposures[0].shares.tolist() == [women, 1 - women]
    assert "drawn" in story_text(result.trace)
    made = twenty(alpha=0.0, sampling={"pool": 6})
    shown = {id for _ in range(100) for id in made.search("q").ranking.ids}
    assert shown == {"m0", "f1", "m2", "f3", "m4", "f5"}
    # Never from fewer than n.
    assert len(twenty(alpha=0.0, sampling={"pool": 1}).search("q").ranking) == 4


def test_it_draws_from_the_final_scores() -> None:
    class Reversed:
        """The worst document first."""

        def rerank(self, pool: Pool) -> Ranking:
            return ranking(pool.ranking.ids[::-1]).top(pool.n)

    made = drawing(agent(Engine({"q": "m1 f1 m2"}), None, n=2, reranker=lambda _: Reversed()), 2.0)
    served = [made.search("q").ranking.ids for _ in range(800)]
    rates = {"m2": np.exp(4.0), "f1": np.exp(2.25), "m1": np.exp(1.0)}
    total = sum(rates.values())
    expected = [800 * rates[a] / total * rates[b] / (total - rates[a]) for a, b in permutations(rates, 2)]
    assert chisquare([served.count(pair) for pair in permutations(rates, 2)], expected).pvalue > 1e-4


def test_samples_come_from_one_run_of_the_loop() -> None:
    made = twenty(reranker=lambda _: ExposureReranker())
    samples = made.sample("q", 50)
    assert made.retriever.searched == ["q"]  # type: ignore[attr-defined]
    assert samples.rankings.shape == (50, 4)
    assert len(samples.ids) == 20
    made.search("q")
    assert made.sample("q", 50).rankings.tolist() == samples.rankings.tolist()
    assert made.sample(Query("q", "another topic"), 50).rankings.tolist() != samples.rankings.tolist()
    plain = agent(Engine(TWENTY), None)
    with pytest.raises(UsageError, match="alpha"):
        plain.sample("q", 3)
    assert [len(plain.find("q", length).pool) for length in (1, 7)] == [4, 7]


@pytest.mark.parametrize(("line", "size"), [("", 0), ("m1", 1), ("m1 f1", 2)])
def test_fewer_documents_than_n(line: str, size: int) -> None:
    made = twenty({"q": line})
    assert len(made.search("q").ranking) == size
    assert made.sample("q", 3).rankings.shape == (3, size)


def test_threads_share_the_count() -> None:
    alone = twenty()
    expected = sorted(alone.search("q").ranking.ids for _ in range(40))
    made = twenty()
    with ThreadPoolExecutor(8) as threads:
        found = threads.map(lambda _: made.search("q").ranking.ids, range(40))
    assert sorted(found) == expected
