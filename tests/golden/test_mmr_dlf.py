"""MMR's picks and DLF's loss, gradients and fusion against values computed independently of this project."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

from fairagent.measures import group_exposure
from fairagent.rerank.dlf_loss import exposure_loss, fuse
from fairagent.rerank.mmr import mmr
from fairagent.types import FloatArray

pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def golden(shared: Path) -> dict[str, Any]:
    path = shared / "golden" / "seed_systems" / "fairqr_mmr_dlf.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    assert len(found["mmr"]) == len(found["dlf"]) == 4
    return found


def test_mmr(golden: dict[str, Any]) -> None:
    for case in golden["mmr"]:
        similarity = np.array(case["similarity"])
        picked = mmr(np.array(case["relevance"]), similarity.__getitem__, case["lam"], case["k"])
        assert picked == case["selected"], case["lam"]


def test_dlf_exposure(golden: dict[str, Any]) -> None:
    for case in golden["dlf"]:
        found = group_exposure(np.array(case["membership"]), softmax(case["scores"]))
        assert found == pytest.approx(case["exposure"], rel=1e-9)


@pytest.mark.parametrize(
    ("direction", "loss_key"), [("kl", "kl_exposure_target"), ("kl-reverse", "kl_target_exposure")]
)
def test_dlf_loss_and_gradient(golden: dict[str, Any], direction: Any, loss_key: str) -> None:
    for case in golden["dlf"]:
        scores, membership, target = (np.array(case[key]) for key in ("scores", "membership", "target"))
        loss, gradient = exposure_loss(scores, membership, target, direction)
        assert loss == pytest.approx(case[loss_key], rel=1e-9)
        # The reference's gradients are central differences: they add up to 1e-10 instead of 0, and are 1e-8 to 3e-7
        # off the derivative of the reference's own loss, which the complex step gives without cancellation.
        assert gradient == pytest.approx(case[f"grad_of_{loss_key}"], rel=1e-5)
        assert gradient == pytest.approx(complex_step(scores, membership, target, direction), rel=1e-9)


def complex_step(scores: FloatArray, membership: FloatArray, target: FloatArray, direction: str) -> FloatArray:
    """The derivative of the divergence in each score: Im f(s + ih) / h."""
    derivative = np.zeros(len(scores))
    for i in range(len(scores)):
        shifted = scores.astype(np.complex128)
        shifted[i] += 1e-30j
        share = np.exp(shifted) / np.exp(shifted).sum() @ membership
        terms = share * np.log(share / target) if direction == "kl" else target * np.log(target / share)
        derivative[i] = terms.sum().imag / 1e-30
    return derivative


def test_dlf_fusion(golden: dict[str, Any]) -> None:
    for case in golden["dlf"]:
        fused = fuse(np.array(case["scores"]), np.array(case["relevance"]), case["alpha_on_fairness"])
        assert fused == pytest.approx(case["fused"], rel=1e-9)
        assert np.argsort(-fused, kind="stable").tolist() == case["order"]
