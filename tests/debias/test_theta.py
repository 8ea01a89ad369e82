"""The weights: gradient, projection, halving, streaming, and the search by an objective."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fairagent.errors import UsageError
from fairagent.papers.debias_rag.stage import (
    MOST_HALVINGS,
    Theta,
    features,
    gradient,
    loss,
    project,
    step,
)

UNIT = st.floats(0, 1, width=32)
PHI = arrays(np.float64, st.tuples(st.integers(1, 12), st.just(2)), elements=UNIT)


@given(PHI, st.floats(0.1, 0.9))
def test_the_gradient_is_that_of_the_loss(phi, first):
    theta, small = np.array([first, 1 - first]), 1e-6
    for place, slope in enumerate(gradient(phi, theta)):
        along = np.eye(2)[place] * small
        assert (loss(phi, theta + along) - loss(phi, theta - along)) / (2 * small) == pytest.approx(slope, abs=1e-6)


@given(arrays(np.float64, st.integers(1, 6), elements=st.floats(-5, 5)), arrays(np.float64, 6, elements=UNIT))
def test_a_projection_is_on_the_simplex_and_nearest(v, other):
    found = project(v)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    # No other point of the simplex is nearer.
    other = other[: len(v)] + 1e-9
    other = other / other.sum()
    assert np.linalg.norm(found - v) <= np.linalg.norm(other - v) + 1e-9


@given(PHI, UNIT, st.floats(0, 1000))
def test_a_step_never_makes_the_loss_larger(phi, first, rate):
    taken = step(phi, np.array([first, 1 - first]), rate)
    assert taken.loss_after <= taken.loss_before
    assert taken.halvings <= MOST_HALVINGS
    assert taken.theta.sum() == pytest.approx(1)


def test_constant_signals_count_for_nothing_and_move_nothing() -> None:
    phi = features(np.full(4, 0.3), np.full(4, 0.7))
    assert not phi.any()
    taken = Theta((0.2, 0.8)).move(phi)[1]
    assert taken.theta.tolist() == pytest.approx([0.2, 0.8])
    assert taken.loss_after == pytest.approx(np.log(4))


def test_threads_lose_no_step() -> None:
    rng = np.random.default_rng(3)
    phis = list(rng.random((200, 8, 2)))
    theta = Theta((1.0, 0.0))
    with ThreadPoolExecutor(8) as pool:
        steps = list(pool.map(theta.move, phis))
    # Every query found what some other one left, each but the last one once.
    left = sorted(taken.theta[0] for _, taken in steps)
    found = sorted(before[0] for before, _ in steps)
    assert sorted([*found, theta.now[0]]) == sorted([1.0, *left])


@pytest.mark.parametrize("start", [(0.5, 0.6), (-0.5, 1.5), (float("nan"), 0.5)])
def test_weights_off_the_simplex(start: tuple[float, float]) -> None:
    with pytest.raises(UsageError, match="add up to 1"):
        Theta(start)
    with pytest.raises(UsageError, match="rate"):
        Theta(rate=-1)
