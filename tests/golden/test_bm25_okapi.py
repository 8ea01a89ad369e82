"""Okapi scores against rank_bm25 as Fair RAG's code uses it (bm25_okapi.json)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairagent.retrieve.okapi import EPSILON, K1, B, descending, okapi_scores


@pytest.mark.shared
def test_scores_and_order(shared: Path) -> None:
    cases = json.loads((shared / "golden" / "seed_systems" / "bm25_okapi.json").read_text(encoding="utf-8"))["cases"]
    assert len(cases) >= 4
    assert any(min(case["scores"]) < 0 for case in cases)
    for case in cases:
        assert (case["k1"], case["b"], case["epsilon"]) == (K1, B, EPSILON)
        scores = okapi_scores(case["query"], case["docs"])
        assert scores.tolist() == pytest.approx(case["scores"], rel=1e-9, abs=1e-12)
        assert descending(scores).tolist() == case["authors_order"]
