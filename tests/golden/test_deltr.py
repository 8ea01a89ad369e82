"""DELTR's loss, exposures and gradient against fairsearchdeltr and finite differences."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairagent.rerank.deltr_loss import JudgedQuery, TrainingBatch, deltr_gradient, deltr_loss, exposure_gap, top_one
from fairagent.types import FloatArray

pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def cases(shared: Path) -> list[dict[str, Any]]:
    path = shared / "golden" / "seed_systems" / "deltr.json"
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cases"]
    assert {len(case["per_query"]) for case in found} == {1, 2, 3}
    assert any(query["exposure_diff"] > 0 and case["gamma"] > 0 for case in found for query in case["per_query"])
    return found


def queries(case: dict[str, Any], standardized: bool = False) -> list[JudgedQuery]:
    rows = np.array(case["rows"])
    features = rows[:, 2:-1].copy()
    if standardized:
        # The library's way: one mean and deviation over the whole matrix, then the protected column as it was.
        features = (features - features.mean()) / features.std()
    of = rows[:, 0]
    return [
        JudgedQuery(features[of == q, 1:], rows[of == q, -1], rows[of == q, 2] == 1) for q in np.unique(of).tolist()
    ]


def sizes(batch: TrainingBatch) -> FloatArray:
    """The library counts a query once a document."""
    return np.bincount(batch.query).astype(np.float64)


def test_loss_and_exposures(cases: list[dict[str, Any]]) -> None:
    for case in cases:
        batch = TrainingBatch.of(queries(case))
        weights = np.array(case["omega"])
        losses = deltr_loss(weights, batch, case["gamma"])
        assert losses == pytest.approx([query["loss"] for query in case["per_query"]], rel=1e-9), case["id"]
        assert losses.sum() == pytest.approx(case["loss_sum_over_queries"], rel=1e-9), case["id"]
        assert losses @ sizes(batch) == pytest.approx(case["loss_sum_over_rows"], rel=1e-9), case["id"]

        p = top_one(batch.features @ weights, batch.query, batch.starts)
        gap = exposure_gap(p, batch)
        for number, query in enumerate(case["per_query"]):
            of_query = batch.query == number
            protected = batch.features[of_query, 0] == 1
            exposure = p[of_query] / math.log(2)
            assert p[of_query] == pytest.approx(query["top_prob"], rel=1e-9), case["id"]
            assert exposure[protected].mean() == pytest.approx(query["exposure_protected"], rel=1e-9), case["id"]
            assert exposure[~protected].mean() == pytest.approx(query["exposure_nonprotected"], rel=1e-9), case["id"]
            assert max(0.0, gap[number]) == pytest.approx(query["exposure_diff"], rel=1e-9), case["id"]


def test_gradient(cases: list[dict[str, Any]]) -> None:
    for case in cases:
        batch = TrainingBatch.of(queries(case))
        found = deltr_gradient(np.array(case["omega"]), batch, case["gamma"], per_query=sizes(batch))
        # The reference is by finite differences.
        assert found == pytest.approx(case["true_gradient_of_loss_sum_over_rows"], rel=1e-5), case["id"]
        if all(case["gamma"] == 0 or query["exposure_diff"] == 0 for query in case["per_query"]):
            assert found == pytest.approx(case["library_gradient"], rel=1e-9), case["id"]


@pytest.mark.parametrize("kind", ["raw", "standardized"])
def test_training_steps(cases: list[dict[str, Any]], kind: str) -> None:
    whole_runs = 0
    for case in cases:
        run = case["library_runs"][kind]
        judged = queries(case, standardized=kind == "standardized")
        batch = TrainingBatch.of(judged)
        weights = np.array(run["omega0"])
        listwise = deltr_loss(weights, batch, gamma=0) @ sizes(batch)
        assert listwise == pytest.approx(run["loss_standard"][0], rel=1e-9), case["id"]
        first = deltr_loss(weights, batch, case["gamma"]) @ sizes(batch)
        assert first == pytest.approx(run["losses"][0], rel=1e-9), case["id"]
        if any(run["loss_exposure"]):
            continue  # the library's exposure gradient is not that of its loss: only the first loss can agree
        whole_runs += 1
        for expected in run["losses"]:
            assert deltr_loss(weights, batch, case["gamma"]) @ sizes(batch) == pytest.approx(expected, rel=1e-9)
            weights -= run["learning_rate"] * deltr_gradient(weights, batch, case["gamma"], per_query=sizes(batch))
        assert weights == pytest.approx(run["omega"], rel=1e-9), case["id"]
    assert whole_runs >= 1
