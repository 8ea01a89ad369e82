"""Plackett-Luce: exact draws at every alpha, seeds of their own for every topic."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from fairagent.errors import DataError, UsageError
from fairagent.rerank.base import Pool
from fairagent.rerank.plackett_luce import PlackettLuceReranker, topic_rng
from fairagent.rerank.plackett_luce_sampling import (
    placement_log_probabilities,
    sample_rankings,
    sampler_log_scores,
)
from fairagent.types import Query, Ranking

DRAWS = 20_000


def pool(scores: list[float], topic: str = "7", text: str = "q", n: int = 10) -> Pool:
    ids = tuple(f"d{i}" for i in range(len(scores)))
    ranking = Ranking(ids, np.array(scores, dtype=np.float64))
    return Pool(Query(text, topic), ranking, (), (), n)


def shares(log_scores: np.ndarray, k: int, seed: int = 1) -> dict[tuple[int, ...], float]:
    kinds, counts = np.unique(
        sample_rankings(log_scores, k, np.random.default_rng(seed), DRAWS), axis=0, return_counts=True
    )
    return dict(zip(map(tuple, kinds.tolist()), (counts / DRAWS).tolist(), strict=True))


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_draws_follow_the_chances(k: int) -> None:
    log_scores = sampler_log_scores(np.array([0.3, 2.0, 1.1, 0.9]), alpha=2)
    found = shares(log_scores, k)
    expected = {
        ranking: np.exp(placement_log_probabilities(log_scores, ranking).sum()) for ranking in permutations(range(4), k)
    }
    assert sum(expected.values()) == pytest.approx(1, rel=1e-12)
    counts = [DRAWS * found.get(ranking, 0.0) for ranking in expected]
    assert chisquare(counts, [DRAWS * chance for chance in expected.values()]).pvalue > 1e-4


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=5, unique=True), st.floats(0, 50))
def test_chances_add_up_to_one(scores: list[float], alpha: float) -> None:
    log_scores = sampler_log_scores(np.array(scores), alpha)
    rankings = permutations(range(len(scores)))
    total = sum(np.exp(placement_log_probabilities(log_scores, ranking).sum()) for ranking in rankings)
    assert total == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("alpha", [0.0, 1.0, 1e8])
def test_equal_scores_are_uniform(alpha: float) -> None:
    found = shares(sampler_log_scores(np.full(3, 12.5), alpha), 3)
    assert len(found) == 6
    assert chisquare([DRAWS * share for share in found.values()]).pvalue > 1e-4


def test_alpha_zero_is_uniform() -> None:
    found = shares(sampler_log_scores(np.array([9.0, 4.0, 1.0]), 0.0), 3)
    assert chisquare([DRAWS * share for share in found.values()]).pvalue > 1e-4


@pytest.mark.parametrize("alpha", [64.0, 1024.0, 1e8])
def test_a_large_alpha_is_the_engines_order_with_ties_uniform(alpha: float) -> None:
    # z is up to 2 ** 1e8, and has no double from alpha = 1024 on; ties must stay ties in it.
    log_scores = sampler_log_scores(np.array([1.0, 3.0, 2.0, 3.0, 2.0, 3.0]), alpha)
    with np.errstate(all="raise"):
        found = shares(log_scores, 6)
    assert len(found) == 12
    assert all(set(ranking[:3]) == {1, 3, 5} and ranking[5] == 0 for ranking in found)
    assert chisquare([DRAWS * share for share in found.values()]).pvalue > 1e-4
    chance = placement_log_probabilities(log_scores, [1, 3, 5, 2, 4, 0])
    assert np.exp(chance) == pytest.approx([1 / 3, 1 / 2, 1, 1 / 2, 1, 1])
    assert np.exp(placement_log_probabilities(log_scores, [0])).tolist() == [0.0]


def test_two_close_scores_far_below_the_best_keep_their_chances() -> None:
    # z of 1e8, 2.5 and 2: noise added to z itself would still be exact here, to 1e-8; at 1e17 it would not.
    log_scores = np.log([1e17, 2.5, 2.0])
    found = shares(log_scores, 3)
    assert set(found) == {(0, 1, 2), (0, 2, 1)}
    assert found[0, 1, 2] == pytest.approx(1 / (1 + np.exp(-0.5)), abs=0.02)


def test_authors_shift_negative_scores_twice() -> None:
    raw = np.array([-4.0, -3.0, -0.5, -0.1])
    assert np.exp(sampler_log_scores(raw, 1.0))[[0, 3]] == pytest.approx([1, 2])
    assert np.exp(sampler_log_scores(raw, 1.0, compat="authors"))[[0, 3]] == pytest.approx([2.0256, 3.0256], abs=1e-4)


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


def test_a_query_without_an_id_is_its_text() -> None:
    reranker = PlackettLuceReranker(alpha=0)
    scores = [float(i) for i in range(30, 0, -1)]
    one, again, other = (reranker.rerank(pool(scores, topic="", text=text)).ids for text in ("x", "x", "y"))
    assert one == again != other


def test_the_draw_is_pinned() -> None:
    # Results of published runs depend on it.
    assert topic_rng(0, "1").integers(1000, size=4).tolist() == [321, 320, 898, 10]


@pytest.mark.parametrize("size", [0, 1])
def test_small_pools(size: int) -> None:
    assert len(PlackettLuceReranker().rerank(pool([1.0] * size))) == size


@pytest.mark.parametrize("alpha", [-1.0, float("inf"), float("nan")])
def test_alpha_out_of_range(alpha: float) -> None:
    with pytest.raises(UsageError, match="alpha"):
        PlackettLuceReranker(alpha).rerank(pool([2.0, 1.0]))


def test_a_seed_below_zero() -> None:
    with pytest.raises(UsageError, match="seed"):
        PlackettLuceReranker(seed=-1)


def test_a_score_that_is_no_number() -> None:
    with pytest.raises(DataError, match="finite"):
        sampler_log_scores(np.array([1.0, np.nan]), 1.0)
