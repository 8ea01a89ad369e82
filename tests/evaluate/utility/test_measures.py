"""Utility and greedy matching: laws, and what is not defined."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.errors import DataError
from fairagent.measures.base import LOG2_PLUS1
from fairagent.measures.ranking import graded_ndcg, ndcg
from fairagent.papers.utility.measures import (
    best_of_references,
    greedy_match,
    mean_performance,
    paired_test,
    pearson,
    utility,
)

PERFORMANCE = st.floats(0.01, 1)
VECTORS = st.integers(1, 5).flatmap(
    lambda n: st.lists(st.lists(st.integers(-3, 3), min_size=3, max_size=3), min_size=n, max_size=n)
)


@given(PERFORMANCE, PERFORMANCE)
def test_utility_is_what_performance_gains(with_documents: float, without: float) -> None:
    found = utility(with_documents, without)
    assert found is not None
    assert without * (1 + found) == pytest.approx(with_documents)
    assert found >= -1


def test_what_is_not_defined() -> None:
    assert utility(0.5, 0.0) is None
    assert pearson([], []) is None
    assert pearson([1, 2], [1, 2]) is None
    assert pearson([1, 2, 3], [5, 5, 5]) is None
    assert paired_test([], []) is None
    assert graded_ndcg(["a"], {"a": 0}, 5) is None
    assert best_of_references({}, (2, 3)) is None


def test_tests_without_spread() -> None:
    same, shifted, alone = paired_test([1, 2], [1, 2]), paired_test([2, 3], [1, 2]), paired_test([1], [0])
    assert same
    assert shifted
    assert alone
    assert (same.difference, same.t, same.p) == (0, None, 1)
    assert (shifted.difference, shifted.t, shifted.p) == (1, None, 0)
    assert (alone.difference, alone.p, alone.n) == (1, None, 1)


def test_refused() -> None:
    for use in (pearson, paired_test):
        with pytest.raises(DataError, match=r"shapes \(2,\) and \(3,\)"):
            use([1, 2], [1, 2, 3])
        with pytest.raises(DataError, match="not finite"):
            use([1, 2, math.nan], [1, 2, 3])
    with pytest.raises(DataError, match="finite"):
        utility(math.nan, 1)
    with pytest.raises(DataError):
        graded_ndcg(["a"], {"a": 1}, 0)


def test_performance_is_averaged_before_utility_is_taken() -> None:
    """Not the same as averaging utilities: (U(.6, .3) + U(.6, .6)) / 2 is .5."""
    assert utility(mean_performance([0.6, 0.6]), mean_performance([0.3, 0.6])) == pytest.approx(1 / 3)


@given(VECTORS, VECTORS)
def test_matching_is_symmetric_and_bounded(one: list[list[int]], other: list[list[int]]) -> None:
    a, b = [1.0] * len(one), [1.0] * len(other)
    there, back = greedy_match(one, other, a, b), greedy_match(other, one, b, a)
    assert (there.precision, there.recall) == pytest.approx((back.recall, back.precision))
    assert there.f1 == pytest.approx(back.f1)
    assert max(abs(there.precision), abs(there.recall)) <= 1 + 1e-9


@given(VECTORS)
def test_a_text_says_all_of_itself(vectors: list[list[int]]) -> None:
    rows = [row for row in vectors if any(row)] or [[1, 0, 0]]
    assert greedy_match(rows, rows, [1.0] * len(rows), [1.0] * len(rows)).f1 == pytest.approx(1)


def test_special_tokens_weigh_nothing_and_may_be_found() -> None:
    # The candidate's word is like the reference's mark and not like its word.
    match = greedy_match([[1, 0]], [[1, 0], [0, 1]], [1], [0, 1])
    assert (match.precision, match.recall, match.f1) == (1, 0, 0)


@pytest.mark.parametrize(
    "arguments", [([[1, 0]], [[1, 0]], [-1], [1]), ([[math.nan, 0]], [[1, 0]], [1], [1]), ([1, 0], [[1, 0]], [1], [1])]
)
def test_what_cannot_be_matched(arguments: tuple[list[float], ...]) -> None:
    with pytest.raises(DataError):
        greedy_match(*arguments)


@given(st.lists(st.booleans(), min_size=1, max_size=12), st.integers(1, 12))
def test_with_two_grades_it_is_the_binary_ndcg(relevant: list[bool], n: int) -> None:
    ids = [f"d{i}" for i in range(len(relevant))]
    grades = {id: int(one) for id, one in zip(ids, relevant, strict=True)}
    for gain in ("linear", "exponential"):
        found = graded_ndcg(ids, grades, n, gain)  # type: ignore[arg-type]
        if any(relevant):
            assert found == pytest.approx(ndcg(np.array(relevant), sum(relevant), n, LOG2_PLUS1))
        else:
            assert found is None


def test_the_linear_gain_is_that_of_ir_measures() -> None:
    ir_measures = pytest.importorskip("ir_measures", reason="the package ir_measures is not installed")
    grades = {"a": 3, "b": 1, "c": 2, "d": 0, "e": 3}
    run = {"q": {"d": 5.0, "c": 4.0, "x": 3.0, "a": 2.0, "b": 1.0}}
    for n in (1, 2, 3, 5, 10):
        expected = ir_measures.calc_aggregate([ir_measures.nDCG @ n], {"q": grades}, run)[ir_measures.nDCG @ n]
        assert graded_ndcg(["d", "c", "x", "a", "b"], grades, n) == pytest.approx(expected)
