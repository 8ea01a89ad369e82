"""Expected exposure beside the authors' code and an independent computation, all cases in both readings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairagent.measures.expected_exposure import expected_exposure, item_exposure, target_exposure

pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def cases(shared: Path) -> list[dict[str, Any]]:
    found = json.loads((shared / "golden/seed_systems/expected_exposure.json").read_text())["cases"]
    assert len(found) == 34
    return found


def mask(case: dict[str, Any]) -> np.ndarray:
    return np.isin(np.arange(case["n"]), case["useful"])


def test_the_papers_reading(cases: list[dict[str, Any]]) -> None:
    for case in cases:
        paper, useful = case["paper"], mask(case)
        exposure = item_exposure(case["rankings"], case["n"])
        assert exposure == pytest.approx(paper["exposure"], rel=1e-9, abs=1e-12), case["id"]
        target = target_exposure(useful, case["k"])
        for items, name in ((useful, "target_useful"), (~useful, "target_nonuseful")):
            if paper[name] is not None:
                assert target[items] == pytest.approx(paper[name], rel=1e-9), case["id"]
        found = expected_exposure(exposure, useful, case["k"])
        for value, name in ((found.disparity, "ee_d"), (found.relevance, "ee_r")):
            assert value.raw == pytest.approx(paper[name], rel=1e-9), case["id"]
            bounds = paper[f"{name}_bounds"]
            assert (value.least, value.most) == pytest.approx(tuple(bounds), rel=1e-9, abs=1e-12), case["id"]
            assert value.normalized == pytest.approx(paper[f"{name}_norm"], rel=1e-9, abs=1e-12), case["id"]
        assert found.difference.raw == pytest.approx(paper["ee_l"], rel=1e-9, abs=1e-12), case["id"]
        assert exposure[useful] @ target[useful] == pytest.approx(paper["ee_r_useful_only"], rel=1e-9), case["id"]


def test_the_authors_reading(cases: list[dict[str, Any]]) -> None:
    compared = 0
    for case in cases:
        authors, useful = case["authors"], mask(case)
        exposure = item_exposure(case["rankings"], case["n"])
        found = expected_exposure(exposure, useful, case["k"], compat="authors")
        if authors.get("error"):
            # Where their code ends in an exception, the paper's values stand.
            assert found == expected_exposure(exposure, useful, case["k"]), case["id"]
            continue
        for name, expected in authors["full"].items():
            value = getattr(found, name)
            numbers = (value.raw, value.least, value.most, value.normalized)
            wanted = tuple(expected[key] for key in ("raw", "lower", "upper", "normalized"))
            assert numbers == pytest.approx(wanted, rel=1e-9, abs=1e-9), (case["id"], name)
            assert round(value.normalized, 6) == pytest.approx(authors["normalized_6dp"][name], abs=1.1e-6)
            assert round(value.raw, 6) == pytest.approx(authors["raw_6dp"][name], abs=1.1e-6)
            compared += 1
    assert compared == 3 * 32
