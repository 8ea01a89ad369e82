"""Plackett-Luce: both ways to draw are exact at every alpha, and each request for a topic has a seed of its own."""

from collections.abc import Callable
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samplers import DRAWS, Sampler, all_ways, by_stream, placement_log_probabilities
from scipy.stats import chisquare

from fairagent.errors import DataError, UsageError
from fairagent.papers.fair_rag.trial import oracle_log_scores
from fairagent.retrieve import stochastic
from fairagent.retrieve.stochastic import (
    RequestCounter,
    arrivals,
    draw,
    sample_rankings,
    sampler_log_scores,
    thinned,
    topic_rng,
)
from fairagent.types import FloatArray, Ranking


def counted(drawn: np.ndarray) -> dict[tuple[int, ...], int]:
    kinds, counts = np.unique(drawn, axis=0, return_counts=True)
    return dict(zip(map(tuple, kinds.tolist()), counts.tolist(), strict=True))


def draws(sample: Sampler, log_scores: FloatArray, k: int, seed: int = 1) -> dict[tuple[int, ...], int]:
    return counted(sample(log_scores, k, np.random.default_rng(seed), DRAWS))


def table(log_scores: FloatArray, k: int) -> dict[tuple[int, ...], float]:
    """Every ranking of k with its chance, by the definition."""
    chances = np.exp(log_scores)
    found = {}
    for ranking in permutations(range(len(log_scores)), k):
        left, chance = set(range(len(log_scores))), 1.0
        for document in ranking:
            top = max(chances[d] for d in left)
            chance *= np.exp(chances[document] - top) / sum(np.exp(chances[d] - top) for d in left)
            left.remove(document)
        found[ranking] = float(chance)
    return found


def p_value(found: dict[tuple[int, ...], int], expected: dict[tuple[int, ...], float]) -> float:
    """That of the chi-square test; rankings that are expected less than 5 times are one kind."""
    assert found.keys() <= expected.keys()
    total = sum(found.values())
    common = [ranking for ranking, chance in expected.items() if total * chance >= 5]
    seen, should = [found.get(one, 0) for one in common], [total * expected[one] for one in common]
    rest = total - sum(should)
    if rest < 5:
        return float(chisquare([*seen[:-1], total - sum(seen[:-1])], [*should[:-1], should[-1] + rest]).pvalue)
    return float(chisquare([*seen, total - sum(seen)], [*should, rest]).pvalue)


@pytest.mark.parametrize("alpha", [0.0, 4.0])
def test_many_documents(alpha: float, monkeypatch: pytest.MonkeyPatch) -> None:
    streams = []
    monkeypatch.setattr(stochastic, "thinned", lambda *a, **b: streams.append(True) or thinned(*a, **b))
    log_scores = sampler_log_scores(np.linspace(0, 3, 50) ** 2, alpha)
    drawn = sample_rankings(log_scores, 2, np.random.default_rng(8), 2 * DRAWS)
    assert streams == [True]
    assert p_value(counted(drawn), table(log_scores, 2)) > 1e-4


def test_a_stream_that_ends_early_is_as_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    # Of the others one has nearly all chances: a stream of 6 mostly holds fewer than the 2 that are to come.
    full: list[int] = []

    def counting(levels: FloatArray, rng: np.random.Generator, races: int) -> FloatArray:
        full.append(races)
        return arrivals(levels, rng, races)

    monkeypatch.setattr(stochastic, "arrivals", counting)
    log_scores = np.log([1.0, 9.0, 6.5, 2.0, 1.0])
    found = draws(by_stream(1), log_scores, 3)
    assert DRAWS / 2 < full[0] < DRAWS
    assert p_value(found, table(log_scores, 3)) > 1e-4


@all_ways
@given(
    scores=st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=12),
    alpha=st.floats(0, 1e8),
    k=st.integers(1, 12),
    seed=st.integers(0, 1000),
)
def test_a_draw_is_a_ranking(sample: Sampler, scores: list[float], alpha: float, k: int, seed: int) -> None:
    k = min(k, len(scores))
    drawn = sample(sampler_log_scores(np.array(scores), alpha), k, np.random.default_rng(seed), 5)
    assert drawn.shape == (5, k)
    assert all(len(set(ranking)) == k and set(ranking) <= set(range(len(scores))) for ranking in drawn.tolist())


@all_ways
@pytest.mark.parametrize("alpha", [64.0, 1e8])
def test_a_large_alpha_is_the_engines_order_with_ties_uniform(sample: Sampler, alpha: float) -> None:
    # z is up to 2 ** 1e8, and has no double from alpha = 1024 on; ties must stay ties in it.
    log_scores = sampler_log_scores(np.array([1.0, 3.0, 2.0, 3.0, 2.0, 3.0]), alpha)
    with np.errstate(all="raise", under="ignore"):
        found = draws(sample, log_scores, 6)
    assert len(found) == 12
    assert all(set(ranking[:3]) == {1, 3, 5} and ranking[5] == 0 for ranking in found)
    assert chisquare(list(found.values())).pvalue > 1e-4


@all_ways
def test_two_close_scores_far_below_the_best_keep_their_chances(sample: Sampler) -> None:
    # z of 1e17, 2.5 and 2: noise added to z itself would be rounded away.
    found = draws(sample, np.log([1e17, 2.5, 2.0]), 3)
    assert set(found) == {(0, 1, 2), (0, 2, 1)}
    assert found[0, 1, 2] / DRAWS == pytest.approx(1 / (1 + np.exp(-0.5)), abs=0.02)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: sample_rankings(np.zeros(3), 0, np.random.default_rng(0), 1), UsageError, "1 or more"),
        (lambda: sample_rankings(np.zeros(3), 1, np.random.default_rng(0), 0), UsageError, "1 or more"),
        (lambda: sampler_log_scores(np.array([2.0, 1.0]), -1.0), UsageError, "alpha"),
        (lambda: oracle_log_scores([True], np.nan), UsageError, "alpha"),
        (lambda: sampler_log_scores(np.array([1.0, np.inf]), 1.0), DataError, "finite"),
        (lambda: topic_rng(-1, "a"), UsageError, "seed"),
    ],
)
def test_arguments_that_make_no_sense(call: Callable[[], object], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call()


def test_authors_shift_negative_scores_twice() -> None:
    raw = np.array([-4.0, -3.0, -0.5, -0.1])
    assert np.exp(sampler_log_scores(raw, 1.0))[[0, 3]] == pytest.approx([1, 2])
    assert np.exp(sampler_log_scores(raw, 1.0, compat="authors"))[[0, 3]] == pytest.approx([2.0256, 3.0256], abs=1e-4)


@pytest.mark.parametrize("alpha", [8.0, 1e8])
def test_an_oracle_shows_what_is_useful_first_each_order_alike(alpha: float) -> None:
    # z is 1e8 or more, against 0.
    chance = placement_log_probabilities(oracle_log_scores(np.array([0, 1, 0, 1, 1]), alpha), [3, 1, 4, 2])
    assert np.exp(chance) == pytest.approx([1 / 3, 1 / 2, 1, 1 / 2])


def test_the_draw_is_pinned_and_every_request_has_numbers_of_its_own() -> None:
    # Results of published runs depend on it.
    assert topic_rng(0, "1").integers(1000, size=4).tolist() == [321, 320, 898, 10]
    asked = [(seed, topic, request) for seed in (0, 1) for topic in ("a", "b", "") for request in (0, 1, 2)]
    assert len({tuple(topic_rng(*one).integers(1 << 60, size=2).tolist()) for one in asked}) == len(asked)


POOL = Ranking(tuple(f"d{i}" for i in range(8)), np.arange(8.0, 0.0, -1.0))


def test_samples_are_those_of_the_scores() -> None:
    samples = draw(POOL, 2, 3, topic_rng(1, "7"), 100)
    assert (samples.ids, len(samples), len(draw(POOL, 2, 3, topic_rng(1, "7")))) == (POOL.ids, 100, 1)
    expected = sample_rankings(sampler_log_scores(POOL.scores, 2), 3, topic_rng(1, "7"), 100)
    assert samples.rankings.tolist() == expected.tolist()
    assert samples.ranking(4).ids == tuple(f"d{i}" for i in samples.rankings[4])
    assert samples.ranking(4).scores.tolist() == pytest.approx([1, 2 / 3, 1 / 3])


def test_topics_long_not_asked_for_are_counted_anew() -> None:
    requests = RequestCounter(most=2)
    assert [requests.number(topic) for topic in "aabacb"] == [0, 1, 0, 2, 0, 0]


@all_ways
@pytest.mark.parametrize("alpha", [0.0, 1e8])
def test_equal_scores_are_uniform(sample: Sampler, alpha: float) -> None:
    found = draws(sample, sampler_log_scores(np.full(3, 12.5), alpha), 3)
    assert len(found) == 6
    assert chisquare(list(found.values())).pvalue > 1e-4
