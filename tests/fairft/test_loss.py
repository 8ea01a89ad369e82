"""The loss and its gradient: laws and edges."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fairagent.errors import DataError
from fairagent.papers.fairft.train import Direction, Reduction, kl_loss, log_target

FEW = settings(max_examples=30)
SCORES = arrays(np.float64, (3, 4), elements=st.floats(-1, 1))
LIKELIHOODS = arrays(np.float64, (3, 4), elements=st.floats(-80, 0))
DIRECTIONS = st.sampled_from(["p-q", "q-p"])


def loss_and_gradient(
    scores: np.ndarray, log_q: np.ndarray, direction: Direction = "p-q", reduction: Reduction = "mean"
) -> tuple[float, np.ndarray]:
    tensor = torch.tensor(scores, requires_grad=True)
    loss = kl_loss(tensor, torch.tensor(log_q), 0.1, direction, reduction)
    loss.backward()
    return loss.item(), tensor.grad.numpy()


@FEW
@given(SCORES, LIKELIHOODS, DIRECTIONS)
def test_it_is_never_negative_and_zero_where_both_agree(
    scores: np.ndarray, likelihoods: np.ndarray, direction: Direction
) -> None:
    log_q = log_target(likelihoods, 0.1)
    assert loss_and_gradient(scores, log_q, direction)[0] >= -1e-12
    loss, gradient = loss_and_gradient(np.exp(likelihoods), log_q, direction)
    assert loss == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(gradient, 0, atol=1e-9)


@FEW
@given(SCORES, LIKELIHOODS, DIRECTIONS)
def test_the_gradient_is_that_of_differences(scores: np.ndarray, likelihoods: np.ndarray, direction: Direction) -> None:
    log_q = log_target(likelihoods, 0.1)
    step = np.zeros_like(scores)
    step[1, 2] = 1e-6
    above, below = (loss_and_gradient(scores + by, log_q, direction, "documents")[0] for by in (step, -step))
    _, gradient = loss_and_gradient(scores, log_q, direction, "documents")
    np.testing.assert_allclose(gradient.sum(axis=1), 0, atol=1e-9)
    assert gradient[1, 2] == pytest.approx((above - below) / 2e-6, abs=1e-4)


def test_constant_signals_want_all_documents_alike() -> None:
    log_q = log_target(np.full((1, 4), -300.0), 0.1)
    np.testing.assert_allclose(np.exp(log_q), 0.25)
    _, gradient = loss_and_gradient(np.array([[0.9, 0.1, 0.0, 0.0]]), log_q)
    assert gradient[0, 0] > 0 > gradient[0, 3]


@pytest.mark.parametrize("bad", [0.1, np.nan])
def test_what_is_no_likelihood_is_refused(bad: float) -> None:
    with pytest.raises(DataError, match="above 0"):
        log_target(np.array([[-1.0, bad]]), 0.1)
