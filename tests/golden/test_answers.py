"""Agreement and accuracy of answers against the authors' code (fairfilter.json)."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from fairagent.evaluate.kinds.answers.accuracy import read_accuracy
from fairagent.evaluate.kinds.answers.agreement import read_agreement
from fairagent.evaluate.kinds.answers.task import says_yes

pytestmark = pytest.mark.shared

ERROR = "Error"
"""The authors' text for an answer that never came; such items leave the denominator."""


@pytest.fixture
def golden(shared: Path) -> dict[str, Any]:
    text = (shared / "golden" / "seed_systems" / "fairfilter.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def test_agreement_equals_the_authors(golden):
    case = golden["agreement"]
    answered = [item for item in case["items"] if item["res"] != ERROR]
    # They ask the judge after all that the rule can read.
    answered.sort(key=lambda item: read_agreement(item["res"]) is None)
    labels = iter(case["judge_labels_in_order"])
    by_type = defaultdict(list)
    for item in answered:
        agrees = read_agreement(item["res"])
        by_type[item["bias_type"]].append(float(says_yes(next(labels)) if agrees is None else agrees))
    assert next(labels, None) is None
    found = {
        kind: {"agreement_ratio": round(sum(v) / len(v), 3), "count": len(v), "agreement_count": sum(v)}
        for kind, v in by_type.items()
    }
    assert found == case["authors"]["bias_type_stats"]
    everything = [value for values in by_type.values() for value in values]
    assert round(sum(everything) / len(everything), 3) == case["authors"]["overall_agreement_ratio"]


def test_accuracy_equals_the_authors(golden):
    case = golden["crag"]
    replies = iter(case["judge_replies_in_order"])

    def judged() -> bool:
        (verdict,) = json.loads(next(replies)).values()
        return str(verdict).lower() == "true"

    by_domain = defaultdict(list)
    for item in case["items"]:
        if item["res"] != ERROR:
            right = read_accuracy(item["res"], item["answer"], item["alt_ans"])
            by_domain[item["domain"]].append(float(judged() if right is None else right))
    assert next(replies, None) is None
    found = {
        domain: {"accuracy": round(sum(v) / len(v), 3), "correct": sum(v), "total": len(v)}
        for domain, v in by_domain.items()
    }
    assert found == case["authors"]["domain_accuracies"]
    everything = [value for values in by_domain.values() for value in values]
    assert round(sum(everything) / len(everything), 3) == case["authors"]["overall_accuracy"]
