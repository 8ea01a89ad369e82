"""What `--check-only` looks for besides engines: the weights of attribution and of debiasing."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiny_models

from evaluate import words
from fairagent.evaluate.check import readiness

from .stereotypes import bench

DRAWN = """\
kind: fair-rag
name: drawn
collection: collection.yaml
topics: 3
fair_rag: {k: 2, samples: 4, alphas: [8], pool: 10}
systems:
  citations: {profile: engine, engine: words}
  nli: {profile: engine, engine: words, attribute: {kind: nli, encoder: nowhere/nli}}
  not nli: {profile: engine, engine: words, attribute: {kind: nli, encoder: FOLDER}}
"""
DEBIASED = """\
kind: stereoset
name: debiased
questions: {path: benchmark.txt, likelihoods: {kind: causal, name: FOLDER}}
systems:
  alone: {profile: engine, engine: none}
  elsewhere: {profile: engine, engine: none, debias: {kind: debias-rag, library: avoid.jsonl, encoder: nowhere/sbert}}
"""


@pytest.mark.usefixtures("no_variables")
def test_weights_of_entailment(tmp_path: Path) -> None:
    folder = tiny_models.save_classifier(tmp_path / "classes", ("good", "bad"))
    found = readiness(words.write(tmp_path, DRAWN.replace("FOLDER", str(folder))))
    said = {name: [found.lacks[place] for place in lacking] for name, lacking in found.systems.items()}
    assert said["citations"] == []
    assert len(said["nli"]) == len(said["not nli"]) == 1
    assert "no classifier of text pairs 'nowhere/nli' on this machine" in said["nli"][0]
    assert 'one of whose labels is "entailment"' in said["not nli"][0]


@pytest.mark.usefixtures("no_variables")
def test_weights_of_debiasing(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    causal = tiny_models.save_causal(tmp_path / "causal")
    file = words.write(tmp_path, DEBIASED.replace("FOLDER", str(causal)))
    bench.write_stereoset(tmp_path / "benchmark.txt")
    (tmp_path / "avoid.jsonl").write_text('{"id": "a1", "text": "Women cannot drive.", "class": "gender"}\n')
    found = readiness(file)
    said = {name: [found.lacks[place] for place in lacking] for name, lacking in found.systems.items()}
    assert said["alone"] == []
    assert ["no embedding model 'nowhere/sbert' on this machine" in one for one in said["elsewhere"]] == [True]
