from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fairagent.errors import UsageError
from fairagent.measures import LOG2_MAX2, NDCG, Discount, Given, JudgedRanking, Log2Plus1, Uniform, ndcg

from .laws import DISCOUNTS, law


def test_the_track_s_worked_example() -> None:
    assert ndcg(np.array([True, False, True]), 4, 500) == pytest.approx(1.63093 / 3.13093, abs=1e-6)


def test_the_usual_discount() -> None:
    # gain 1/log2(3) of the best 1/log2(2) + 1/log2(3)
    assert ndcg(np.array([False, True, False]), 2, 20, Log2Plus1()) == pytest.approx(0.63093 / 1.63093, abs=1e-6)


def test_with_equal_weights_it_is_precision_or_recall() -> None:
    relevant = np.array([True, False, True, False, False])
    assert ndcg(relevant, 10, 5, Uniform()) == pytest.approx(2 / 5)
    assert ndcg(relevant, 4, 5, Uniform()) == pytest.approx(2 / 4)


def test_what_lies_below_the_cut_off_does_not_count() -> None:
    assert ndcg(np.array([False, False, True]), 1, 2) == 0.0


def test_a_short_ranking_is_not_padded_and_an_empty_one_scores_nothing() -> None:
    assert ndcg(np.array([True]), 2, 20) == pytest.approx(0.5)
    assert ndcg(np.array([], dtype=bool), 2, 20) == 0.0
    assert ndcg([], 2, 20) == 0.0  # type: ignore[arg-type]


def test_the_measure_is_the_function() -> None:
    relevant = np.array([False, True, True, False, True])
    assert NDCG(4, Log2Plus1())(JudgedRanking(relevant, 7)) == ndcg(relevant, 7, 4, Log2Plus1())


@law
@given(arrays(np.bool_, st.integers(0, 40)), st.integers(0, 10), st.integers(1, 50), DISCOUNTS)
def test_distinct_documents_score_from_0_to_1(relevant: np.ndarray, unranked: int, n: int, discount: Discount) -> None:
    n_relevant = int(relevant.sum()) + unranked
    if n_relevant:
        assert 0.0 <= ndcg(relevant, n_relevant, n, discount) <= 1.0 + 1e-12


@law
@given(st.integers(1, 40), st.integers(0, 20), st.integers(1, 60), DISCOUNTS)
def test_the_best_ranking_scores_1(n_relevant: int, others: int, n: int, discount: Discount) -> None:
    best = np.array([True] * n_relevant + [False] * others)
    assert ndcg(best, n_relevant, n, discount) == pytest.approx(1.0)


@law
@given(arrays(np.bool_, st.integers(2, 30)), st.data())
def test_a_relevant_document_that_moves_up_never_costs(relevant: np.ndarray, data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, len(relevant) - 1))
    better = relevant.copy()
    better[[rank - 1, rank]] = sorted(relevant[[rank - 1, rank]], reverse=True)
    n_relevant = len(relevant)
    assert ndcg(better, n_relevant, 20, LOG2_MAX2) >= ndcg(relevant, n_relevant, 20, LOG2_MAX2) - 1e-12


def test_a_discount_that_rises_again_has_no_best_ranking() -> None:
    with pytest.raises(UsageError, match=r"rise again"):
        NDCG(5, Given((1.0, 0.5, 0.75)))
