"""Attention over rankings: cases by hand, the bound on quality, and how far the orders are from the best ones."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.errors import UsageError
from fairagent.measures import LOG2_MAX2, Log2Plus1, Uniform
from fairagent.measures.amortized import attention, deserved, inequity, pay_documents, pay_groups, quality
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


# Two groups, a (d0, d1) and b (d2), relevance 1, .9, .8, two ranks of weight 1: attention 1/2 each, due a 1.9/2.7 =
# .7037, b .2963. Best order d0, d1: a gets 1, so that it is owed -.2963 and b .2963. With d0, d2: a 1/2, owed .2037.
# The quality of d0, d2 is 1.8 / 1.9 = .947.
def test_groups_by_hand() -> None:
    rows = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    relevance, weights = np.array([1.0, 0.9, 0.8]), np.ones(2)
    due = deserved(relevance) @ rows
    assert due == pytest.approx([0.7037, 0.2963], abs=1e-4)
    assert sorted(pay_groups(np.zeros(2), rows, due, relevance, weights, 0.06)) == [0, 2]
    assert sorted(pay_groups(np.zeros(2), rows, due, relevance, weights, 0.05)) == [0, 1]
    # Who got too much before waits.
    assert 2 not in pay_groups(np.array([0.5, -0.5]), rows, due, relevance, weights, 1.0)


@pytest.mark.parametrize("tolerance", [-0.1, 1.5, float("nan")])
def test_a_tolerance_that_is_none(tolerance: float) -> None:
    with pytest.raises(UsageError, match="tolerance"):
        pay_documents(np.zeros(2), np.ones(2), np.ones(1), tolerance)


@st.composite
def cases(draw: st.DrawFn) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, float]:
    """Debts of documents and of groups, rows, relevance, weights and a tolerance."""
    size = draw(st.integers(1, 6))
    numbers = st.floats(-2, 2, allow_subnormal=False)
    relevance = np.array(draw(st.lists(st.floats(0, 1, allow_subnormal=False), min_size=size, max_size=size)))
    debts = np.array(draw(st.lists(numbers, min_size=size, max_size=size)))
    owed = np.array(draw(st.lists(numbers, min_size=3, max_size=3)))
    rows = np.eye(3)[draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))]
    discount = draw(st.sampled_from([LOG2_MAX2, Log2Plus1(), Uniform()]))
    weights = discount(draw(st.integers(1, size)))
    return debts, owed, rows, relevance, weights, draw(st.sampled_from([0.0, 0.01, 0.02, 0.1, 0.5, 1.0]))


@given(cases())
def test_what_is_paid_never_costs_more_than_the_tolerance(case: tuple[FloatArray, ...]) -> None:
    debts, owed, rows, relevance, weights, tolerance = case
    due = deserved(relevance) @ rows
    for order in (
        pay_documents(debts, relevance, weights, float(tolerance)),
        pay_groups(owed, rows, due, relevance, weights, float(tolerance)),
    ):
        assert len(set(order)) == len(order) == len(weights)
        assert quality(order, relevance, weights) >= 1 - tolerance - 1e-9


@given(cases())
def test_no_debt_is_larger_than_in_the_best_order(case: tuple[FloatArray, ...]) -> None:
    debts, owed, rows, relevance, weights, tolerance = case
    due = deserved(relevance) @ rows
    got = attention(weights)

    def left(order: list[int]) -> float:
        received = np.zeros(len(relevance))
        received[order] = got
        return inequity(debts + deserved(relevance) - received)

    def left_of_groups(order: list[int]) -> float:
        return inequity(owed + due - got @ rows[order])

    best = pay_documents(debts, relevance, weights, 0.0)
    assert left(pay_documents(debts, relevance, weights, float(tolerance))) <= left(best) + 1e-6
    best = pay_groups(owed, rows, due, relevance, weights, 0.0)
    assert (
        left_of_groups(pay_groups(owed, rows, due, relevance, weights, float(tolerance))) <= left_of_groups(best) + 1e-6
    )


def distances(tolerance: float, n_cases: int = 60) -> tuple[FloatArray, FloatArray]:
    """By how much the sums of |debts| exceed the least ones that all orders of 6 candidates, 3 ranks, can have."""
    rng = np.random.default_rng(34)
    of_documents, of_groups = [], []
    weights = LOG2_MAX2(3)
    got = attention(weights)
    for _ in range(n_cases):
        relevance, debts, owed = rng.random(6), rng.normal(0, 0.2, 6), rng.normal(0, 0.2, 3)
        rows = np.eye(3)[rng.integers(0, 3, 6)]
        due = deserved(relevance)
        allowed = [
            list(one) for one in permutations(range(6), 3) if quality(list(one), relevance, weights) >= 1 - tolerance
        ]

        def of_one(order: list[int], debts: FloatArray = debts, due: FloatArray = due) -> float:
            received = np.zeros(6)
            received[order] = got
            return inequity(debts + due - received)

        def of_group(
            order: list[int], owed: FloatArray = owed, due: FloatArray = due, rows: FloatArray = rows
        ) -> float:
            return inequity(owed + due @ rows - got @ rows[order])

        of_documents.append(of_one(pay_documents(debts, relevance, weights, tolerance)) - min(map(of_one, allowed)))
        paid = pay_groups(owed, rows, due @ rows, relevance, weights, tolerance)
        of_groups.append(of_group(paid) - min(map(of_group, allowed)))
    return np.array(of_documents), np.array(of_groups)


def test_how_far_from_the_best_orders() -> None:
    documents, _ = distances(1.0)
    # Nothing binds: the assignment is exact.
    assert documents == pytest.approx(np.zeros(60), abs=1e-9)
    documents, groups = distances(0.1)
    assert documents.min() > -1e-9
    assert groups.min() > -1e-9
    assert documents.mean() < 0.02
    assert groups.mean() < 0.06


def test_over_requests_equal_documents_get_equal_attention() -> None:
    relevance, weights, debts = np.ones(4), LOG2_MAX2(4), np.zeros(4)
    for _ in range(400):
        order = pay_documents(debts, relevance, weights, 0.0001)
        debts += deserved(relevance)
        debts[order] -= attention(weights)
    assert np.abs(debts).max() / 400 < 0.002


def test_groups_whose_documents_score_alike_take_turns() -> None:
    """Four men of relevance 1, four women of 0: one price moves all women or none, and all would cost everything."""
    relevance, rows = np.repeat([1.0, 0.0], 4), np.repeat(np.eye(2), 4, axis=0)
    weights, due = np.array([1.0, 0.7, 0.5, 0.4]), np.array([0.5, 0.5])
    order = pay_groups(np.zeros(2), rows, due, relevance, weights, tolerance=0.6)
    assert quality(order, relevance, weights) >= 0.4
    # 1 + .4 of 2.6 beside .7 + .5.
    assert order == [0, 4, 5, 1]
    assert pay_groups(np.zeros(2), rows, due, relevance, weights, tolerance=0.1) == [0, 1, 2, 3]
