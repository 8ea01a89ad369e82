"""FairFT's losses and gradients equal the golden values: the paper's, and the released code's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import softmax

from fairagent.fairft.loss import Direction, Reduction, kl_gradient, kl_loss, log_target, torch_loss

pytestmark = pytest.mark.shared

FORMS: list[tuple[Direction, Reduction, str, str, float]] = [
    ("p-q", "mean", "paper_loss_KL_P_Q", "paper_grad_wrt_scores", 1e-9),
    ("q-p", "mean", "kl_Q_P", "kl_Q_P_grad", 1e-9),
    ("q-p", "documents", "authors_loss", "authors_grad_wrt_scores", 1e-5),
]


@pytest.fixture(scope="module")
def cases(shared: Path) -> list[dict[str, Any]]:
    path = shared / "golden" / "seed_systems" / "fairft.json"
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cases"]
    assert len(found) >= 4
    return found


@pytest.mark.parametrize(("direction", "reduction", "loss", "gradient", "tolerance"), FORMS)
def test_losses_and_gradients(
    cases: list[dict[str, Any]], direction: Direction, reduction: Reduction, loss: str, gradient: str, tolerance: float
) -> None:
    for case in cases:
        scores = np.array(case["retriever_scores"])
        log_q = log_target(np.log(case["lm_likelihood"]), case["beta"])
        form = (case["gamma"], direction, reduction)
        assert kl_loss(scores, log_q, *form) == pytest.approx(case[loss], rel=tolerance), case["id"]
        np.testing.assert_allclose(kl_gradient(scores, log_q, *form), case[gradient], rtol=1e-7, atol=1e-11)

        tensor = torch.tensor(scores, requires_grad=True)
        value = torch_loss(tensor, torch.tensor(log_q), *form)
        value.backward()
        assert value.item() == pytest.approx(case[loss], rel=tolerance), case["id"]
        np.testing.assert_allclose(tensor.grad, case[gradient], rtol=1e-7, atol=1e-11)


def test_distributions(cases: list[dict[str, Any]]) -> None:
    for case in cases:
        target = np.exp(log_target(np.log(case["lm_likelihood"]), case["beta"]))
        np.testing.assert_allclose(target, case["lm_probs"], rtol=1e-9)
        np.testing.assert_allclose(
            softmax(np.array(case["retriever_scores"]) / case["gamma"], axis=-1), case["retriever_probs"], rtol=1e-9
        )
