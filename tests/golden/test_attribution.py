"""Attribution measures against values computed independently of this project: 1e-9 relative, every case."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairagent.measures.attribution import (
    attributed_disparity,
    attributed_exposure,
    disparity_bounds,
    expected_attribution_rate,
    normalized_attributed_disparity,
)

pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def cases(shared: Path) -> list[dict[str, Any]]:
    path = shared / "golden" / "seed_systems" / "attribution.json"
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cases"]
    assert len(found) == 6
    return found


def close(value: object) -> object:
    return pytest.approx(value, rel=1e-9, abs=1e-12)


def test_rate_and_exposure(cases: list[dict[str, Any]]) -> None:
    for case in cases:
        exposure = attributed_exposure(case["rankings"], case["entail"], case["n"])
        assert expected_attribution_rate(case["entail"]) == close(case["ear"]), case["id"]
        assert exposure.tolist() == close(case["attributed_exposure"]), case["id"]
        assert exposure.sum() == close(case["l1"]), case["id"]
        assert attributed_disparity(exposure) == close(case["eae_d"]), case["id"]


def test_three_normalizations(cases: list[dict[str, Any]]) -> None:
    for case in cases:
        exposure, k = case["attributed_exposure"], case["k"]
        for given in ("conditional", "unconditional"):
            assert disparity_bounds(exposure, k, given) == close(tuple(case[f"bounds_{given}"])), case["id"]
            assert normalized_attributed_disparity(exposure, k, given) == close(case[f"eae_d_norm_{given}"]), case["id"]
        rescaled = normalized_attributed_disparity(exposure, k, "rescaled")
        assert rescaled == close(case["eae_d_norm_rescaled"]), case["id"]
        least, most = disparity_bounds(exposure, k, "rescaled")
        if case["l1"] and most > least:
            assert least + rescaled * (most - least) == close(case["eae_d_rescaled_raw"]), case["id"]


def test_all_attributed_is_expected_exposure(cases: list[dict[str, Any]]) -> None:
    (case,) = (case for case in cases if case["id"] == "all_attributed")
    assert attributed_disparity(case["attributed_exposure"]) == close(case["ee_d"])
