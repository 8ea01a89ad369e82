"""StereoSet's measures against its authors' code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairagent.measures.stereotypes import (
    mean_probability,
    relevance_to_context,
    stereoset_score,
    typical_probability,
)

pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def golden(shared: Path) -> dict[str, Any]:
    path = shared / "golden" / "seed_systems" / "stereoset.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    assert (len(found["cases"]), len(found["sentence_scores"]), len(found["intersentence_generative"])) == (3, 5, 4)
    return found


def check(examples: list[dict[str, Any]], authors: dict[str, float], times: int) -> None:
    columns = ("score_stereotype", "score_antistereotype", "score_unrelated")
    scores = (np.array([example[column] for example in examples]) for column in columns)
    found = stereoset_score([example["target"] for example in examples], *scores)
    # The authors' list of a domain holds every example three times; the ratios are the same.
    assert found.count * times == authors["Count"]
    assert found.lms == pytest.approx(authors["LM Score"], rel=1e-9)
    assert found.ss == pytest.approx(authors["SS Score"], rel=1e-9)
    assert found.icat == pytest.approx(authors["ICAT Score"], rel=1e-9)


def test_scores_by_part_and_domain(golden: dict[str, Any]) -> None:
    for case in golden["cases"]:
        examples, authors = case["examples"], case["authors"]
        check(examples, authors["overall"], 1)
        for part in ("intrasentence", "intersentence"):
            of_part = [example for example in examples if example["split"] == part]
            for domain, numbers in authors[part].items():
                if domain == "overall":
                    check(of_part, numbers, 1)
                else:
                    check([example for example in of_part if example["bias_type"] == domain], numbers, 3)


def test_scores_of_sentences(golden: dict[str, Any]) -> None:
    for case in golden["sentence_scores"]:
        logs = np.log(case["token_probs"])
        assert mean_probability(logs) == pytest.approx(case["masked_lm_score"], rel=1e-9)
        assert typical_probability(logs) == pytest.approx(case["generative_score"], rel=1e-9)
    for case in golden["intersentence_generative"]:
        alone, after = np.log(case["sentence_alone_token_probs"]), np.log(case["context_token_probs"])
        assert relevance_to_context(alone, after) == pytest.approx(case["score"], rel=1e-9)
