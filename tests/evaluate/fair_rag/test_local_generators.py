"""Fair RAG's matrix without a server: models in this process label LaMP's items, with beams and in batches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tiny_models

from fairagent.evaluate.check import check_experiment
from fairagent.evaluate.fingerprint import fingerprint

from .test_lamp_trial import EXPERIMENT, call, write

pytestmark = pytest.mark.usefixtures("no_variables")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.save_causal(tmp_path_factory.mktemp("generators") / "causal", seed=4, limit=2048)


def of_model(folder: Path, more: str = "device: cpu") -> str:
    model = f"{{name: {folder}, max_tokens: 4, transformers: {{beams: 2, batch: 4, {more}}}}}"
    return EXPERIMENT.replace("{name: tiny}", model)


def test_labels_by_a_model_in_this_process(tmp_path: Path, folder: Path) -> None:
    file = write(tmp_path, of_model(folder), count=2, items=3)
    told = call("estimate", file)
    assert told.exit_code == 0, told.output
    made = call("labels", file, "--workers", 2)
    assert made.exit_code == 0, made.output
    # A model of random weights knows no answer: each question alone, and with each of its three items, in vain.
    assert "0 of 2 questions count" in made.output
    (labels,) = (tmp_path / "labels").glob("*.jsonl")
    assert len(labels.read_text(encoding="utf-8").splitlines()) >= 2
    done = call("evaluate", file, "--run", tmp_path / "run")
    assert done.exit_code == 4
    assert "no question has 2 useful items" in done.output


def test_a_run_depends_on_the_beams_and_not_on_the_device(tmp_path: Path, folder: Path) -> None:
    def of(text: str) -> object:
        return fingerprint(check_experiment(write(tmp_path, text), environ={}, labeled=False))["systems"]

    plain = of(of_model(folder))
    assert plain == of(of_model(folder, "device: ''").replace("batch: 4", "batch: 2"))
    assert plain != of(of_model(folder).replace("beams: 2", "beams: 3"))
    assert "this machine" in json.dumps(plain)
