"""Utility, its correlation with nDCG, paired tests, and the composition of contexts against rag_utility.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from fairagent.evaluate.kinds.utility.contexts import Order, arranged
from fairagent.measures.ndcg import graded_ndcg
from fairagent.measures.utility import paired_test, pearson, utility

pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def golden(shared: Path) -> dict[str, Any]:
    return json.loads((shared / "golden/seed_systems/rag_utility.json").read_text())


def test_utility(golden: dict[str, Any]) -> None:
    case = golden["utility"]
    found = [utility(p, p0) for p, p0 in zip(case["f_k_shot"], case["f_zero_shot"], strict=True)]
    assert found == pytest.approx(case["utility"], rel=1e-9)
    assert sum(found) / len(found) == pytest.approx(case["mean_utility"], rel=1e-9)


def test_correlation_with_ranking_quality(golden: dict[str, Any]) -> None:
    case = golden["utility"]
    found = pearson(case["utility"], case["ndcg"])
    assert found
    assert (found.r, found.p) == pytest.approx((case["pearson_r"], case["pearson_p"]), rel=1e-9)


def test_paired_t(golden: dict[str, Any]) -> None:
    case = golden["utility"]
    found = paired_test(case["utility"], case["paired_t"]["other"])
    assert found
    assert (found.t, found.p) == pytest.approx((case["paired_t"]["t"], case["paired_t"]["p"]), rel=1e-9)


def test_ndcg_of_both_gains(golden: dict[str, Any]) -> None:
    assert len(golden["ndcg"]) == 6
    for case in golden["ndcg"]:
        linear, exponential = (
            graded_ndcg(case["run"], case["judged"], case["k"], gain) for gain in ("linear", "exponential")
        )
        assert linear == pytest.approx(case["ndcg_linear"], rel=1e-9)
        assert exponential == pytest.approx(case["ndcg_exponential"], rel=1e-9)


def test_orders(golden: dict[str, Any]) -> None:
    for case in golden["orders"]:
        found = [arranged(case["items"], order) for order in get_args(Order)]
        # The authors leave out an order that is one of those before.
        assert [one for place, one in enumerate(found) if one not in found[:place]] == case["orders"]


def test_contexts_of_a_list_and_of_its_reverse(golden: dict[str, Any]) -> None:
    texts = list(golden["context"]["docs"].values())
    for case in golden["context"]["cases"]:
        for start, expected in zip(case["starts"], case["contexts"], strict=True):
            shown = arranged(texts[start : start + case["k"]], "reversed" if case["reverse"] else "rank")
            # The authors' layout, in which the golden values are written; ours is a JSON array.
            assert "".join(f'Context {i}: "{text}";\n' for i, text in enumerate(shown, start=1)) == expected
