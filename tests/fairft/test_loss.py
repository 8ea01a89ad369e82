"""The loss: laws, edges, and the same in numpy and torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fairagent.errors import DataError
from fairagent.papers.fairft.loss import Direction, kl_gradient, kl_loss, log_target, torch_loss

SCORES = arrays(np.float64, (3, 4), elements=st.floats(-1, 1))
LIKELIHOODS = arrays(np.float64, (3, 4), elements=st.floats(-80, 0))
DIRECTIONS = st.sampled_from(["p-q", "q-p"])


@given(SCORES, LIKELIHOODS, DIRECTIONS)
def test_it_is_never_negative_and_zero_where_both_agree(
    scores: np.ndarray, likelihoods: np.ndarray, direction: Direction
) -> None:
    assert kl_loss(scores, log_target(likelihoods, 0.1), 0.1, direction) >= -1e-12
    agreed = np.exp(likelihoods)
    assert kl_loss(agreed, log_target(likelihoods, 0.1), 0.1, direction) == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(kl_gradient(agreed, log_target(likelihoods, 0.1), 0.1, direction), 0, atol=1e-9)


@given(SCORES, LIKELIHOODS, DIRECTIONS)
def test_the_gradient_is_that_of_differences_and_of_torch(
    scores: np.ndarray, likelihoods: np.ndarray, direction: Direction
) -> None:
    log_q = log_target(likelihoods, 0.1)
    gradient = kl_gradient(scores, log_q, 0.1, direction, "documents")
    np.testing.assert_allclose(gradient.sum(axis=1), 0, atol=1e-9)
    step = np.zeros_like(scores)
    step[1, 2] = 1e-6
    rise = kl_loss(scores + step, log_q, 0.1, direction, "documents") - kl_loss(
        scores - step, log_q, 0.1, direction, "documents"
    )
    assert gradient[1, 2] == pytest.approx(rise / 2e-6, abs=1e-4)
    tensor = torch.tensor(scores, requires_grad=True)
    torch_loss(tensor, torch.tensor(log_q), 0.1, direction, "documents").backward()
    np.testing.assert_allclose(tensor.grad, gradient, atol=1e-9)


def test_constant_signals_want_all_documents_alike() -> None:
    log_q = log_target(np.full((1, 4), -300.0), 0.1)
    np.testing.assert_allclose(np.exp(log_q), 0.25)
    scores = np.array([[0.9, 0.1, 0.0, 0.0]])
    slope = kl_gradient(scores, log_q, 0.1)
    assert slope[0, 0] > 0
    assert slope[0, 3] < 0


@pytest.mark.parametrize("bad", [0.1, np.nan])
def test_what_is_no_likelihood_is_refused(bad: float) -> None:
    with pytest.raises(DataError, match="above 0"):
        log_target(np.array([[-1.0, bad]]), 0.1)
