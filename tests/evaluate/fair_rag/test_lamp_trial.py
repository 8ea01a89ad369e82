"""Fair RAG on LaMP, from files of that form to the table, by a server on the loopback and by models in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lamp_files
import pytest
from typer.testing import CliRunner

from fairagent.cli.app import app
from fairagent.evaluate.run import load_run
from fairagent.guests.testing import LoopbackServer, ServerReply, completion
from fairagent.papers.fair_rag.trial import HIGHEST

from ..conftest import Loopback

EXPERIMENT = """\
kind: lamp
name: drawn profiles
seed: 3
cache: ''
fair_rag:
  k: 2
  samples: 12
  alphas: [1, 8]
lamp: {task: LaMP-2, questions: dev_questions.json, outputs: dev_outputs.json}
settings: {model: {name: tiny}, attribute: {kind: ATTRIBUTION}}
systems:
  Okapi: {profile: engine, engine: okapi}
"""


def says(request: dict[str, Any]) -> ServerReply:
    """Right where it sees a clown, and it knows the answer to nothing else."""
    text = str(request["messages"])
    if "numbers" in text and "rests" in text:
        return completion(json.dumps({"documents": []}))
    return completion("comedy" if "clown" in text.lower() else "no idea")


@pytest.fixture
def server(loopback: Loopback) -> LoopbackServer:
    return loopback(says)


def write(folder: Path, text: str = EXPERIMENT, attribution: str = "none", count: int = 3, items: int = 6) -> Path:
    lamp_files.write(folder, lamp_files.questions("LaMP-2", count, items), lamp_files.outputs("LaMP-2", count))
    file = folder / "experiment.yaml"
    file.write_text(text.replace("ATTRIBUTION", attribution))
    return file


def call(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_labels_then_the_table(tmp_path: Path, server: LoopbackServer) -> None:
    file = write(tmp_path)
    early = call("evaluate", file, "--run", tmp_path / "run")
    assert early.exit_code == 4
    assert "fairagent labels FILE" in early.output

    told = call("estimate", file)
    assert told.exit_code == 0, told.output
    # Three questions: each alone, and with each of its six items.
    assert "labels for tiny   tiny       3     21" in told.output

    made = call("labels", file)
    assert made.exit_code == 0, made.output
    assert "3 of 3 questions count" in made.output
    assert len(server.requests) == 21
    assert "labels" not in call("estimate", file).output
    call("labels", file)
    assert len(server.requests) == 21

    done = call("evaluate", file, "--run", tmp_path / "run")
    assert done.exit_code == 0, done.output
    run = load_run(tmp_path / "run")
    assert run.systems == ("Okapi", "Okapi α=1", "Okapi α=8", "oracle α=8")
    assert not run.dimensions
    of = {(outcome.system, outcome.topic): outcome for outcome in run.outcomes}
    own = of["Okapi", "10"]
    # Every other item is of the clown, and helps; both kinds are alike for Okapi, so the first two stand first.
    assert [hit.relevant for hit in of["oracle α=8", "10"].hits] == [True, True]
    assert own.values[""].keys() == {"nDCG", "EE-R", "EE-D", "EE-L", "EU", HIGHEST, "normalized EU"}
    assert own.values[""]["EU"] == float(any(hit.relevant for hit in own.hits))
    assert of["oracle α=8", "10"].values[""]["EU"] == 1.0
    assert of["oracle α=8", "10"].values[""]["EE-R"] == 1.0
    assert "EAR" not in (tmp_path / "run" / "results.csv").read_text()
    # Nothing is asked twice within a row: of six items there are 30 rankings of two.
    assert of["Okapi α=1", "10"].calls <= 12
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Fairness, quality and utility of drawn rankings" in page
    # The card of findings names every other measure once.
    assert page.partition('class="findings"')[2].partition("</section>")[0].count("<dt>EE-D</dt>") == 1


def test_less_is_better_in_lamp_3(tmp_path: Path, server: LoopbackServer) -> None:
    lamp_files.write(tmp_path, lamp_files.questions("LaMP-3", 2, 4), lamp_files.outputs("LaMP-3", 2))
    file = tmp_path / "experiment.yaml"
    file.write_text(EXPERIMENT.replace("LaMP-2", "LaMP-3").replace("ATTRIBUTION", "none"))
    server.script = lambda request: completion("2" if "It leaks." in str(request["messages"]) else "5")
    assert call("labels", file).exit_code == 0
    done = call("evaluate", file, "--run", tmp_path / "run")
    assert done.exit_code == 0, done.output
    run = load_run(tmp_path / "run")
    values = {outcome.system: outcome.values[""] for outcome in run.outcomes if outcome.topic == "10"}
    # The right score is 2: with a pen that leaks among the items the error is 0, which is worth 4, else 3, worth 1.
    assert values["oracle α=8"]["EU"] == 4.0
    assert values["oracle α=8"]["normalized EU"] == 1.0
    assert 1.0 <= values["Okapi α=1"]["EU"] <= 4.0
    assert values["Okapi α=1"]["normalized EU"] == pytest.approx(values["Okapi α=1"]["EU"] / 4)
