"""String utilities against the code of Fair RAG (lamp_metrics.json) and of rag-utility (rag_utility.json)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairagent.measures.answers import absolute_error, accuracy, parse_utility, rouge_l

pytestmark = pytest.mark.shared


def golden(shared: Path, name: str) -> dict[str, Any]:
    return dict(json.loads((shared / "golden" / "seed_systems" / name).read_text(encoding="utf-8")))


@pytest.mark.parametrize("case", ["accuracy", "accuracy_tags"])
def test_accuracy(shared: Path, case: str) -> None:
    expected = golden(shared, "lamp_metrics.json")[case]
    pairs = zip(expected["preds"], expected["targets"], strict=True)
    assert [accuracy(*pair, labels=expected["labels"]) for pair in pairs] == expected["authors"]


def test_absolute_error(shared: Path) -> None:
    expected = golden(shared, "lamp_metrics.json")["mae"]
    pairs = zip(expected["preds"], expected["targets"], strict=True)
    assert [absolute_error(*pair) for pair in pairs] == expected["authors"]


def test_rouge_l(shared: Path) -> None:
    expected = golden(shared, "lamp_metrics.json")["rouge_l"]
    pairs = zip(expected["preds"], expected["targets"], strict=True)
    assert [rouge_l(*pair) for pair in pairs] == pytest.approx(expected["authors"], rel=1e-9)


def test_exact_match_and_f1(shared: Path) -> None:
    cases = golden(shared, "rag_utility.json")["em_f1"]
    assert len(cases) >= 5
    for case in cases:
        assert parse_utility("exact-match")(case["prediction"], case["golds"]) == case["em"]
        assert parse_utility("f1")(case["prediction"], case["golds"]) == pytest.approx(case["f1"], rel=1e-9)
