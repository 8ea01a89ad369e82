"""A stochastic retriever: one drawn ranking a request, again from its number, and all else that its engine can do."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.stats import chisquare

from fairagent.errors import UsageError
from fairagent.retrieve.stochastic import (
    RequestCounter,
    StochasticRetriever,
    sample_rankings,
    sampler_log_scores,
    topic_rng,
)
from fairagent.types import FloatArray, Query, Ranking


class Engine:
    """Gives the same list for every query."""

    def __init__(self, scores: Sequence[float]) -> None:
        self.ranking = Ranking(tuple(f"d{i}" for i in range(len(scores))), np.array(scores, dtype=np.float64))
        self.asked: list[int] = []

    def search(self, query: Query, n: int) -> Ranking:
        self.asked.append(n)
        return self.ranking.top(n)

    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        return np.array([float(id[1:]) for id in ids])


TEN = [float(score) for score in range(10, 0, -1)]
QUERY = Query("lawyers", "7")


def test_a_ranking_is_drawn_from_the_first_documents() -> None:
    engine = Engine(TEN)
    found = StochasticRetriever(engine, alpha=0, depth=6).search(QUERY, 4)
    assert engine.asked == [6]
    assert len(set(found.ids)) == 4
    assert set(found.ids) <= {f"d{i}" for i in range(6)}
    assert found.scores.tolist() == [1, 0.75, 0.5, 0.25]


def test_requests_differ_and_a_new_engine_repeats_them() -> None:
    first, again = (StochasticRetriever(Engine(TEN), alpha=1, seed=4) for _ in range(2))
    found = [first.search(QUERY, 10).ids for _ in range(5)]
    assert len(set(found)) == 5
    assert [again.search(QUERY, 10).ids for _ in range(5)] == found
    assert StochasticRetriever(Engine(TEN), alpha=1, seed=5).search(QUERY, 10).ids != found[0]


def test_threads_get_the_same_rankings_each_once() -> None:
    alone = StochasticRetriever(Engine(TEN), alpha=1)
    expected = {topic: {alone.search(Query("q", topic), 10).ids for _ in range(20)} for topic in "ab"}
    shared = StochasticRetriever(Engine(TEN), alpha=1)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda topic: (topic, shared.search(Query("q", topic), 10).ids), "ab" * 20))
    assert {topic: {ids for of, ids in found if of == topic} for topic in "ab"} == expected


def test_what_is_served_follows_the_chances() -> None:
    engine = StochasticRetriever(Engine([3.0, 2.0, 1.0]), alpha=1)
    first = [engine.search(QUERY, 1).ids[0] for _ in range(5000)]
    rates = np.exp([2, 1.5, 1])
    assert chisquare([first.count(f"d{i}") for i in range(3)], 5000 * rates / rates.sum()).pvalue > 1e-4


def test_samples_are_those_of_the_topic_whatever_is_served() -> None:
    engine = StochasticRetriever(Engine(TEN), alpha=2, seed=1, depth=8)
    samples = engine.sample(QUERY, 100, k=3)
    engine.search(QUERY, 3)
    assert samples.ids == tuple(f"d{i}" for i in range(8))
    assert len(samples) == 100
    assert engine.sample(QUERY, 100, k=3).rankings.tolist() == samples.rankings.tolist()
    expected = sample_rankings(sampler_log_scores(np.array(TEN[:8]), 2), 3, topic_rng(1, "7"), 100)
    assert samples.rankings.tolist() == expected.tolist()
    assert samples.ranking(4).ids == tuple(f"d{i}" for i in samples.rankings[4])


@pytest.mark.parametrize("wrong", [{"alpha": float("nan")}, {"depth": 0}])
def test_what_makes_no_sense(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        StochasticRetriever(Engine(TEN), **({"alpha": 1} | wrong))


def test_topics_long_not_asked_for_are_counted_anew() -> None:
    requests = RequestCounter(most=2)
    assert [requests.number(topic) for topic in "aabacb"] == [0, 1, 0, 2, 0, 0]
