"""The README of Fair RAG and the experiments in evaluations/fair_rag: what stands there is so."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from evaluate import words
from fairagent.evaluate.plan import as_kind

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "fairagent" / "papers" / "fair_rag" / "README.md").read_text(encoding="utf-8")


def test_the_experiment_is_one(tmp_path: Path) -> None:
    described = yaml.safe_load(re.findall(r"^```yaml\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)[0])
    assert as_kind(described).kind == "fair-rag"
    # On a small collection: with its engine, and few draws.
    described["fair_rag"] |= {"samples": 3, "k": 2}
    described["systems"] = {"words": {"profile": "engine", "engine": "words"}}
    run = words.run(words.write(tmp_path, yaml.safe_dump(described)), tmp_path / "run", limit=2)
    assert run.systems == ("words", *(f"words α={alpha}" for alpha in (0, 1, 2, 4, 8)), "oracle α=8")
