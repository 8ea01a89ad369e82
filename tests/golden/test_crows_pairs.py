"""CrowS-Pairs' measure and its alignment of tokens against its authors' code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairagent.measures.stereotypes import crows_pairs_score, preferences, shared_tokens

pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def golden(shared: Path) -> dict[str, Any]:
    path = shared / "golden" / "seed_systems" / "crows_pairs.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    assert (len(found["cases"]), len(found["get_span"])) == (3, 6)
    return found


def test_scores(golden: dict[str, Any]) -> None:
    for case in golden["cases"]:
        pairs, authors = case["pairs"], case["authors"]
        more, less = (np.array([pair[name] for pair in pairs]) for name in ("more_score", "less_score"))
        found = crows_pairs_score(more, less, [pair["stereo_antistereo"] == "stereo" for pair in pairs])
        # The authors round to two places.
        assert round(found.score, 2) == authors["metric_score"]
        assert found.stereotype is not None
        assert round(found.stereotype, 2) == authors["stereotype_score"]
        rounded = None if found.anti_stereotype is None else round(found.anti_stereotype, 2)
        assert rounded == authors["antistereotype_score"]
        assert found.neutral == authors["num_neutral"]
        assert preferences(more, less)[0].tolist() == authors["per_pair"]


def test_tokens_in_common(golden: dict[str, Any]) -> None:
    for case in golden["get_span"]:
        assert shared_tokens(case["ids1"], case["ids2"]) == (case["template1"], case["template2"])
