"""What `--check-only` looks for besides engines: the weights of attribution and of debiasing."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiny_models

from evaluate import words
from fairagent.evaluate.check import readiness

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


@pytest.mark.usefixtures("no_variables")
def test_weights_of_entailment(tmp_path: Path) -> None:
    folder = tiny_models.save_classifier(tmp_path / "classes", ("good", "bad"))
    found = readiness(words.write(tmp_path, DRAWN.replace("FOLDER", str(folder))))
    said = {name: [found.lacks[place] for place in lacking] for name, lacking in found.systems.items()}
    assert said["citations"] == []
    assert len(said["nli"]) == len(said["not nli"]) == 1
    assert "no classifier of text pairs 'nowhere/nli' on this machine" in said["nli"][0]
    assert 'one of whose labels is "entailment"' in said["not nli"][0]
