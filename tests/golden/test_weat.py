"""WEAT against the authors' code: effect sizes, and p-values over every partition."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairagent.measures.weat import association_test

pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def cases(shared: Path) -> list[dict[str, Any]]:
    path = shared / "golden" / "seed_systems" / "weat_seat.json"
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cases"]
    assert len(found) == 5
    return found


def test_effect_and_p(cases: list[dict[str, Any]]) -> None:
    for case in cases:
        found = association_test(*(np.array(case[name]) for name in "XYAB"))
        assert found.effect == pytest.approx(case["authors_effect_size"], rel=1e-9, abs=1e-12), case["id"]
        assert found.p == pytest.approx(case["authors_p_value"], rel=1e-9), case["id"]
        assert found.exact is case["exact"]
        assert math.comb(2 * len(case["X"]), len(case["X"])) == case["n_partitions"]


def test_a_sample_of_partitions_comes_close(cases: list[dict[str, Any]]) -> None:
    for case in cases:
        x, y, a, b = (np.array(case[name]) for name in "XYAB")
        # Too few samples for all partitions of the largest; of the others, all are looked at all the same.
        samples = case["n_partitions"] - 1
        found = association_test(x, y, a, b, samples, np.random.default_rng(4))
        assert not found.exact
        assert found.p == pytest.approx(case["authors_p_value"], abs=3.5 * 0.5 / math.sqrt(samples) + 1 / samples)
        assert found.effect == pytest.approx(case["authors_effect_size"], rel=1e-9, abs=1e-12)
