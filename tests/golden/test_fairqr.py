"""FAIR-QR's definitions against values computed independently of this project: 1e-9 relative, every case."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairagent.measures import (
    DIVERGENCES,
    Log2Max2,
    Uniform,
    gaps,
    group_exposure,
    known_part,
    most_underexposed,
)
from fairagent.types import FloatArray

pytestmark = pytest.mark.shared

DISCOUNTS = {"log": Log2Max2(), "uniform": Uniform()}


@pytest.fixture(scope="module")
def cases(shared: Path) -> list[dict[str, Any]]:
    path = shared / "golden" / "seed_systems" / "fairqr_mmr_dlf.json"
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["exposure"]
    assert {case["discount"] for case in found} == set(DISCOUNTS)
    assert any(case["exposure_known"] is None for case in found)
    return found


def exposure(case: dict[str, Any]) -> FloatArray:
    rows = np.array(case["membership_in_rank_order"])
    return group_exposure(rows, DISCOUNTS[case["discount"]](len(rows)))


def test_exposure(cases: list[dict[str, Any]]) -> None:
    for case in cases:
        shares = exposure(case)
        assert shares == pytest.approx(case["exposure_with_unknown"], rel=1e-9), case["id"]
        known = case["exposure_known"] or [0.0] * len(case["target_known"])
        assert known_part(shares) == pytest.approx(known, rel=1e-9), case["id"]


@pytest.mark.parametrize(("name", "key"), [("kl", "kl_eps_target"), ("kl-reverse", "kl_target_eps"), ("js", "js")])
def test_divergence(cases: list[dict[str, Any]], name: str, key: str) -> None:
    for case in cases:
        shares, target = known_part(exposure(case)), np.array(case["target_known"])
        value = DIVERGENCES[name](shares, target, case["smoothing"])
        assert value == pytest.approx(case[key], rel=1e-9), case["id"]


def test_the_most_underexposed_group(cases: list[dict[str, Any]]) -> None:
    for case in cases:
        shares, target = known_part(exposure(case)), np.array(case["target_known"])
        assert gaps(shares, target) == pytest.approx(case["gap"], rel=1e-9), case["id"]
        place = most_underexposed([shares], [target])
        label = None if place is None else case["groups"][1:][place[1]]
        if case["exposure_known"] is None:
            # Nothing labeled: the reference names no group; the loop looks for that with the largest target.
            assert case["most_underrepresented"] is None, case["id"]
            assert label == case["groups"][1:][int(target.argmax())], case["id"]
        else:
            assert label == case["most_underrepresented"], case["id"]
