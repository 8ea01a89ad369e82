"""Shares of groups from a classifier's probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from fairagent.errors import DataError
from fairagent.measures import confusion_matrix, prevalence
from fairagent.types import FloatArray

from .laws import distributions, law

MATRIX = np.array([[0.8, 0.4], [0.2, 0.6]])


def test_by_hand() -> None:
    """.8 p + .4 (1 - p) = .5 has the solution p = 1/4; with a mean of .9 it would be 5/4, and 1 is closest."""
    assert prevalence(np.array([0.5, 0.5]), MATRIX).shares == pytest.approx([0.25, 0.75])
    assert prevalence(np.array([0.9, 0.1]), MATRIX).shares == pytest.approx([1.0, 0.0])
    plain = prevalence(np.array([0.9, 0.1]))
    assert (plain.shares.tolist(), plain.adjusted) == ([0.9, 0.1], False)


def test_the_matrix_is_the_mean_of_each_group() -> None:
    posteriors = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.0, 0.25, 0.75], [1.0, 0.0, 0.0]])
    matrix = confusion_matrix(posteriors, [0, 1, 2, 0])
    assert matrix.tolist() == [[0.75, 0.25, 0.0], [0.125, 0.5, 0.25], [0.125, 0.25, 0.75]]


def matrices(g: int) -> st.SearchStrategy[FloatArray]:
    """How a classifier that is right more often than not takes groups for others."""
    return st.lists(distributions(g), min_size=g, max_size=g).map(
        lambda columns: 0.6 * np.eye(g) + 0.4 * np.stack(columns, axis=1)
    )


@st.composite
def problems(draw: st.DrawFn) -> tuple[FloatArray, FloatArray]:
    g = draw(st.integers(2, 6))
    return draw(matrices(g)), draw(distributions(g))


@law
@given(problems())
def test_shares_are_recovered_whatever_they_are(problem: tuple[FloatArray, FloatArray]) -> None:
    matrix, shares = problem
    found = prevalence(matrix.dot(shares), matrix)
    assert found.adjusted
    assert found.shares == pytest.approx(shares, abs=1e-9)


@law
@given(problems())
def test_a_mean_that_no_shares_explain_gets_the_closest(problem: tuple[FloatArray, FloatArray]) -> None:
    matrix, mean = problem
    g = mean.size
    found = prevalence(mean, matrix).shares
    assert found.sum() == pytest.approx(1.0)
    assert found.min() >= 0.0
    best = minimize(
        lambda p: float(np.square(matrix.dot(p) - mean).sum()),
        np.full(g, 1 / g),
        bounds=[(0.0, 1.0)] * g,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1.0},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    assert float(np.square(matrix.dot(found) - mean).sum()) <= best.fun + 1e-9


def test_a_classifier_that_tells_nothing_apart_is_not_solved() -> None:
    found = prevalence(np.array([0.3, 0.7]), np.array([[0.3, 0.3], [0.7, 0.7]]))
    assert (found.shares.tolist(), found.adjusted) == ([0.3, 0.7], False)


def test_bad_input() -> None:
    with pytest.raises(DataError, match=r"mean: row 0 adds up to 1\.2"):
        prevalence(np.array([0.6, 0.6]))
    with pytest.raises(DataError, match=r"the confusion matrix: column 1 adds up to 1\.4"):
        prevalence(np.array([0.5, 0.5]), np.array([[0.8, 0.8], [0.2, 0.6]]))
    with pytest.raises(DataError, match="no validation document is of group 1"):
        confusion_matrix(np.array([[0.5, 0.5]]), [0])
