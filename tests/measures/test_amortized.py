"""Attention over rankings: cases by hand, the bound on quality, and how far orders are from the best ones."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.errors import UsageError
from fairagent.measures import LOG2_MAX2, LOG2_PLUS1, UNIFORM
from fairagent.measures.amortized import attention, deserved, pay_documents, quality
from fairagent.types import FloatArray

# Three documents, two ranks of weights 1 and 1/2 (attention 2/3 and 1/3), relevance 1, 1/2, 1/2 (due 1/2, 1/4, 1/4).
# Nothing is owed before. After d0, d1: |1/2 - 2/3| + |1/4 - 1/3| + |1/4| = 1/6 + 1/12 + 1/4 = 1/2; after d1, d0:
# |1/4 - 2/3| + |1/2 - 1/3| + 1/4 = 5/12 + 1/6 + 1/4 = 5/6. So d0, d1. Now d0 is owed -1/6, d1 -1/12, d2 1/4. Then
#     d0, d1: |-1/6 - 1/6| + |-1/12 - 1/12| + |1/4 + 1/4| = 1
#     d0, d2: 1/3 + |-1/12 + 1/4| + |1/2 - 1/3| = 2/3
#     d2, d0: |1/2 - 2/3| + |1/3 - 1/3| + 1/6 = 1/3
#     d2, d1: 1/6 + |1/6 - 1/3| + 1/3 = 2/3
# d2, d0 is the best: DCG 1/2 + 1/2 = 1 of 1 + 1/4 = 1.25, a quality of .8.
RELEVANCE, WEIGHTS = np.array([1.0, 0.5, 0.5]), np.array([1.0, 0.5])
OWED = np.array([-1 / 6, -1 / 12, 1 / 4])


@pytest.mark.parametrize(
    ("debts", "tolerance", "order"),
    [(np.zeros(3), 1.0, [0, 1]), (OWED, 0.2, [2, 0]), (OWED, 0.19, [0, 2]), (OWED, 0.0, [0, 1])],
    ids=["first", "enough", "bound", "none"],
)
def test_documents_by_hand(debts: FloatArray, tolerance: float, order: list[int]) -> None:
    assert pay_documents(debts, RELEVANCE, WEIGHTS, tolerance) == order


def test_quality_by_hand() -> None:
    assert quality([2, 0], RELEVANCE, WEIGHTS) == pytest.approx(0.8)
    assert quality([0, 1], RELEVANCE, WEIGHTS) == 1
    assert quality([0, 1], np.zeros(3), WEIGHTS) == 1
    for tolerance in (-0.1, 1.5, float("nan")):
        with pytest.raises(UsageError, match="tolerance"):
            pay_documents(np.zeros(2), np.ones(2), np.ones(1), tolerance)


@st.composite
def cases(draw: st.DrawFn) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Debts, relevance, weights and a tolerance."""
    size = draw(st.integers(1, 6))
    relevance = np.array(draw(st.lists(st.floats(0, 1, allow_subnormal=False), min_size=size, max_size=size)))
    debts = np.array(draw(st.lists(st.floats(-2, 2, allow_subnormal=False), min_size=size, max_size=size)))
    discount = draw(st.sampled_from([LOG2_MAX2, LOG2_PLUS1, UNIFORM]))
    weights = discount(draw(st.integers(1, size)))
    return debts, relevance, weights, draw(st.sampled_from([0.0, 0.01, 0.02, 0.1, 0.5, 1.0]))


def left(order: list[int], debts: FloatArray, relevance: FloatArray, weights: FloatArray) -> float:
    """The debts after a ranking, in all."""
    received = np.zeros(len(relevance))
    received[order] = attention(weights)
    return float(np.abs(debts + deserved(relevance) - received).sum())


@given(cases())
def test_what_is_paid_costs_no_more_than_the_tolerance_and_no_debt_grows(case: tuple[Any, ...]) -> None:
    debts, relevance, weights, tolerance = case
    order = pay_documents(debts, relevance, weights, tolerance)
    assert len(set(order)) == len(order) == len(weights)
    assert quality(order, relevance, weights) >= 1 - tolerance - 1e-9
    best = pay_documents(debts, relevance, weights, 0.0)
    assert left(order, debts, relevance, weights) <= left(best, debts, relevance, weights) + 1e-6


@pytest.mark.parametrize(("tolerance", "means", "most"), [(1.0, (0.0, 1e-9), 1e-9), (0.1, (0.0055, 0.0215), 0.5)])
def test_how_far_from_the_best_orders(tolerance: float, means: tuple[float, float], most: float) -> None:
    """All orders of 6 candidates, 3 ranks, as docs/over_time.md has it; where nothing binds the assignment is exact."""
    for seed in range(10):
        rng, distances = np.random.default_rng(seed), []
        for _ in range(60):
            case = rng.normal(0, 0.2, 6), rng.random(6), LOG2_MAX2(3)
            orders = map(list, permutations(range(6), 3))
            least = min(left(one, *case) for one in orders if quality(one, *case[1:]) >= 1 - tolerance)
            distances.append(left(pay_documents(*case, tolerance), *case) - least)
        assert min(distances) > -1e-9
        assert means[0] - 1e-9 <= np.mean(distances) <= means[1]
        assert max(distances) <= most
