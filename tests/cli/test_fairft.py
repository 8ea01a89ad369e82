"""`fairagent fairft train | evaluate`, as a user calls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fairft.small import write_task

from .conftest import Call


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_task(tmp_path_factory.mktemp("fairft-cli"), epochs=1)


def test_train_and_evaluate(call: Call, file: Path) -> None:
    trained = call("fairft", "train", str(file), "--run", "here", "--json")
    assert trained.exit_code == 0, trained.stderr
    record = json.loads(trained.stdout)
    assert (Path(record["model"]) / "modules.json").is_file()
    assert len(record["measured"]) == 3

    again = call("fairft", "train", str(file), "--run", "here")
    assert again.exit_code == 0, again.stderr
    assert "held-out KL before each refresh" in again.stdout

    evaluated = call("fairft", "evaluate", str(file), "--run", "here", "--json")
    for when in ("before", "after"):
        assert json.loads(evaluated.stdout)[when] == pytest.approx(record["change"][when], rel=1e-5)
    told = call("fairft", "evaluate", str(file), "--model", "here/model", "--run", "here")
    assert "overlap of the first 5" in told.stdout

    other = call("fairft", "train", str(file), "--run", "here", "--seed", "3")
    assert other.exit_code == 2
    assert "--new" in other.stderr


def test_unknown_keys_and_two_models_are_refused(call: Call, file: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    text = file.read_text(encoding="utf-8").replace("epochs:", "epoch:").replace("model: causal", "model: ''")
    wrong.write_text(text, encoding="utf-8")
    result = call("fairft", "train", str(wrong))
    assert result.exit_code == 2
    assert "training.epoch: unknown key; did you mean 'epochs'?" in result.stderr
    assert "either a local `model` or an `endpoint`" in result.stderr


def test_what_is_missing_is_named(call: Call, file: Path, tmp_path: Path) -> None:
    result = call("fairft", "evaluate", str(file), "--run", str(tmp_path / "none"))
    assert result.exit_code == 3
    assert "fairagent fairft train" in result.stderr
