"""Policies that are fair in expectation: by hand, against all rankings, and what a mixture adds up to."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.optimize import linprog

from fairagent.errors import DataError
from fairagent.measures.amortized import attention, deserved
from fairagent.measures.ranking_policy import Policy, fair_policy, mixture
from fairagent.types import FloatArray


def expected(policy: Policy, rows: FloatArray, shares: FloatArray) -> FloatArray:
    """What the groups get in expectation."""
    found: FloatArray = sum(chance * (shares @ rows[order]) for chance, order in policy)  # type: ignore[assignment]
    return found


def test_two_documents_by_hand() -> None:
    """Relevance 1 and .9, attention 2/3 and 1/3: the first is first with p, p 2/3 + (1 - p) 1/3 = 1/1.9, p = 11/19."""
    relevance = np.array([1.0, 0.9])
    policy = fair_policy(relevance, np.eye(2), deserved(relevance), np.array([1.0, 0.5]))
    assert [order for _, order in policy] == [[0, 1], [1, 0]]
    assert [chance for chance, _ in policy] == pytest.approx([11 / 19, 8 / 19])


def test_job_seekers_of_about_the_same_worth_get_about_the_same_exposure() -> None:
    """Six applicants as in the paper's introduction: three men of .82 to .80, three women of .79 to .77."""
    relevance, rows = np.array([0.82, 0.81, 0.80, 0.79, 0.78, 0.77]), np.repeat(np.eye(2), 3, axis=0)
    weights = 1 / np.log2(1 + np.arange(1, 7))
    by_worth = attention(weights) @ rows
    assert by_worth[0] - by_worth[1] > 0.25
    policy = fair_policy(relevance, rows, deserved(relevance) @ rows, weights)
    assert expected(policy, rows, attention(weights)) == pytest.approx(deserved(relevance) @ rows)
    kept = sum(chance * (weights @ relevance[order]) for chance, order in policy) / (weights @ relevance)
    # 2.637024 of 2.647312.
    assert kept == pytest.approx(0.996114, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_no_mixture_of_rankings_is_more_relevant(seed: int) -> None:
    """The same program over the chances of all rankings of 3 of 5 documents."""
    rng = np.random.default_rng(seed)
    relevance, rows, weights = rng.random(5), np.eye(3)[rng.integers(0, 3, 5)], np.array([1.0, 0.6, 0.3])
    shares, due = attention(weights), deserved(relevance) @ rows
    orders = [list(order) for order in permutations(range(5), 3)]
    gains = np.array([shares @ relevance[order] for order in orders])
    got = np.array([shares @ rows[order] for order in orders]).T
    slack = np.hstack([-np.eye(3), np.eye(3)])
    best = linprog(
        np.concatenate([-gains, np.full(6, 1e3)]),
        A_eq=np.vstack([np.hstack([got, slack]), np.concatenate([np.ones(len(orders)), np.zeros(6)])]),
        b_eq=np.append(due, 1.0),
    )
    policy = fair_policy(relevance, rows, due, weights)
    assert sum(chance for chance, _ in policy) == pytest.approx(1.0)
    off = np.abs(expected(policy, rows, shares) - due).sum()
    value = sum(chance * (shares @ relevance[order]) for chance, order in policy)
    assert 1e3 * off - value == pytest.approx(best.fun, abs=1e-5)


def test_what_no_policy_can_give_is_approached() -> None:
    policy = fair_policy(np.array([1.0, 0.5]), np.array([[1.0, 0.0]] * 2), np.array([0.5, 0.5]), np.array([1.0]))
    assert policy == [(1.0, [0])]


@pytest.mark.parametrize("size", [1, 5])
def test_a_mixture_adds_up_to_its_matrix(size: int) -> None:
    rng = np.random.default_rng(size)
    chances = rng.dirichlet(np.ones(6))
    orders = [rng.permutation(size + 2)[:size] for _ in chances]
    matrix = np.zeros((size + 2, size))
    for chance, order in zip(chances, orders, strict=True):
        matrix[order, np.arange(size)] += chance
    again = np.zeros_like(matrix)
    for chance, order in mixture(matrix):
        again[order, np.arange(size)] += chance
    assert again == pytest.approx(matrix, abs=1e-6)


@pytest.mark.parametrize(
    "matrix", [np.full((2, 2), 0.6), np.array([[1.0, 1.0], [0.0, 0.0]]), np.array([[1.5], [-0.5]])]
)
def test_what_is_no_matrix_of_chances(matrix: FloatArray) -> None:
    with pytest.raises(DataError, match="columns that add up to 1"):
        mixture(matrix)
