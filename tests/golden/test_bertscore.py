"""BERTScore's greedy matching against the values of bert_score 0.3.12, and the rule over several references."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairagent.measures.bertscore import best_of_references, greedy_match

pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def golden(shared: Path) -> dict[str, list[dict[str, object]]]:
    return json.loads((shared / "golden/seed_systems/bertscore_matching.json").read_text())


def test_greedy_matching(golden: dict[str, list[dict[str, object]]]) -> None:
    assert len(golden["cases"]) == 4
    for case in golden["cases"]:
        found = greedy_match(
            case["hypothesis_embeddings"],
            case["reference_embeddings"],
            case["hypothesis_weights"],
            case["reference_weights"],
        )
        expected = [case["precision"], case["recall"], case["f1"]]
        assert [found.precision, found.recall, found.f1] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_the_best_of_several_references(golden: dict[str, list[dict[str, object]]]) -> None:
    for case in golden["max_over_references"]:
        values = {2: case["level2"], 3: case["level3"]}
        assert best_of_references(values, (2, 3)) == case["perf_labels_2_3"]
        assert best_of_references(values, (3,)) == case["perf_label_3"]
