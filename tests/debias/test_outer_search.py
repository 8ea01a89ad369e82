"""The outer search for theta as an experiment: on tiny models, against likelihoods that are computed by hand."""

from __future__ import annotations

import importlib.util
import json
import random
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import tiny_models
import yaml
from evaluate.stereotypes import bench
from fairft.small import save_retriever

from fairagent.papers.debias_rag.theta import grid

from .parts import written

SCRIPT = Path(__file__).resolve().parents[2] / "evaluations" / "debias" / "theta.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("theta_search", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_search_and_the_test(
    tmp_path: Path, script: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "STEREOSET", bench.STEREOSET * 2)
    monkeypatch.setattr(bench, "TERMS", (*bench.TERMS, "doctor", "doctor", "city", "city"))
    monkeypatch.setattr(bench, "KINDS", bench.KINDS * 2)
    encoder, causal = save_retriever(tmp_path / "encoder"), tiny_models.save_causal(tmp_path / "causal")
    bench.write_stereoset(tmp_path / "benchmark.txt", 8)
    texts = ("She was a nurse.", "He was a doctor.", "The woman wrote.", "A man is bad.")
    lines = [f'{{"id": "a{number}", "text": "{text}"}}' for number, text in enumerate(texts)]
    written(tmp_path / "avoid.jsonl", "\n".join(lines) + "\n")
    own = {"kind": "debias-rag", "library": "avoid.jsonl", "encoder": str(encoder), "k": 1, "tau": 1}
    described = {
        "kind": "stereoset",
        "name": "small",
        "questions": {"path": "benchmark.txt", "likelihoods": {"kind": "causal", "name": str(causal)}},
        "expected": {"alone": {"ICAT": 1.0}},
        "systems": {
            "alone": {"profile": "engine", "engine": "none"},
            "DebiasRAG": {"profile": "engine", "engine": "none", "debias": own},
        },
    }
    file = tmp_path / "stereoset.yaml"
    file.write_text(yaml.safe_dump(described, sort_keys=False), encoding="utf-8")
    options = [str(file), "--points", "3", "--questions", "1", "2", "--runs", str(tmp_path / "runs")]
    found = script.main(options)
    said = capsys.readouterr().out
    assert set(found) == {1, 2}
    assert set(found.values()) <= set(grid(3))
    # What is chosen has the highest ICAT of all that were tried, over the first questions of the same half.
    with script.checked(file, {**described, "topics": "tune"}) as experiment:
        tune = experiment.plan.topics
    lines = (tmp_path / "runs" / "search" / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    outcomes = [one for one in map(json.loads, lines) if one.get("record")]
    assert {one["topic"] for one in outcomes} == set(random.Random(1).sample(tune, 2))
    for count, best in found.items():
        asked = random.Random(1).sample(tune, 2)[:count]
        reached = {}
        for theta in grid(3):
            of_theta = [one for one in outcomes if one["system"] == f"theta {theta[0]:.4g}" and one["topic"] in asked]
            reached[theta] = icat([one["record"] for one in of_theta])
        assert reached[best] == max(reached.values())
    assert "on the half test" in said
    assert "optimized by 2" in said
    again = script.main(options)
    assert again == found
    assert not list(tmp_path.glob("tmp*.yaml"))
    with pytest.raises(SystemExit):
        script.main([*options, "--system", "alone"])


def icat(records: list[dict[str, Any]]) -> float:
    """By the formulas: both shares are means over target terms."""
    terms = {record["target"] for record in records}
    shares = []
    for term in terms:
        scores = [record["scores"] for record in records if record["target"] == term]
        shares.append((np.mean([a > b for a, b, _ in scores]), np.mean([[a > c, b > c] for a, b, c in scores])))
    ss, lms = 100 * np.mean(shares, axis=0)
    return float(lms * min(ss, 100 - ss) / 50)
