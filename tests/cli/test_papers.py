"""`fairagent fairft train | evaluate | run`, and `fairagent avoid`."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from fairft.small import WORDS, write_lines, write_task

from fairagent.guests.testing import LoopbackServer, ServerReply, completion
from fairagent.papers.debias_rag.avoid import AvoidPassage, read_avoid, write_avoid
from fairagent.papers.fairft import run as trainings
from fairagent.papers.fairft.settings import OPENING
from fairagent.papers.fairft.train import Training

from .conftest import Call


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_task(tmp_path_factory.mktemp("fairft-cli"), epochs=1)


@pytest.mark.slow
def test_train_and_evaluate(call: Call, file: Path) -> None:
    trained = call.well("fairft", "train", str(file), "--run", "here", "--json")
    record = json.loads(trained.stdout)
    assert (Path(record["model"]) / "modules.json").is_file()
    assert len(record["measured"]) == 3

    again = call.well("fairft", "train", str(file), "--run", "here")
    assert "held-out KL before each refresh" in again.stdout

    evaluated = call("fairft", "evaluate", str(file), "--run", "here", "--json")
    for when in ("before", "after"):
        assert json.loads(evaluated.stdout)[when] == pytest.approx(record["change"][when], rel=1e-5)
    told = call("fairft", "evaluate", str(file), "--model", "here/model", "--run", "here")
    assert "overlap of the first 5" in told.stdout

    assert "--new" in call.refused(2, "fairft", "train", str(file), "--run", "here", "--seed", "3")


MODEL = "runs/small/model"
QUESTIONS = [f"the {WORDS[i]} {WORDS[(i * 3 + 1) % len(WORDS)]} ?" for i in range(4)]


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training, and questions of both kinds."""
    folder = tmp_path_factory.mktemp("chain")
    write_task(folder, epochs=1)
    prompts = [{"prompt": f"{OPENING}{question}", "bias_type": "gender"} for question in QUESTIONS]
    write_lines(folder / "agreement.jsonl", prompts)
    write_lines(folder / "accuracy.jsonl", [{"query": question, "answer": "yes"} for question in QUESTIONS[:3]])
    for kind in ("agreement", "accuracy"):
        experiment = {
            "kind": kind,
            "name": kind,
            "cache": "",
            "collection": "collection.yaml",
            "questions": {"path": f"{kind}.jsonl"},
            "trainings": ["fairft.yaml"],
            "settings": {"model": {"name": "tiny"}, "context": {"documents": 3}, "index": str(folder / "index")},
            "systems": {
                "no retrieval": {"profile": "engine", "engine": "none"},
                "untrained": {"profile": "engine", "engine": {"kind": "dense", "encoder": str(folder / "retriever")}},
                "FairFT": {"profile": "engine", "engine": {"kind": "dense", "encoder": MODEL}},
            },
        }
        if kind == "agreement":
            experiment["cases"] = ["q1"]
        (folder / f"{kind}.yaml").write_text(yaml.safe_dump(experiment, sort_keys=False), encoding="utf-8")
    return folder


def says(request: dict[str, Any]) -> ServerReply:
    """Yes with documents, no without: so it agrees, and is right, where it was given any."""
    return completion("yes" if '"number"' in str(request["messages"]) else "no")


@pytest.mark.slow
def test_one_command_from_training_to_the_table(
    call: Call, task: Path, server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script = says
    files = [str(task / f"{kind}.yaml") for kind in ("agreement", "accuracy")]
    # Before it, an experiment says which training is missing.
    early = call.refused(3, "evaluate", files[0])
    assert f"{task / 'fairft.yaml'} is not trained: there is no finished training at runs/small" in early

    # Ctrl-C in the middle of the training, then the same command.
    whole, steps = Training._step, []

    def broken(self: Training, *arguments: object) -> None:
        steps.append(1)
        if len(steps) == 3:
            raise KeyboardInterrupt
        whole(self, *arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(Training, "_step", broken)
        assert call("fairft", "run", *files).exit_code == 130
    assert not Path("runs/agreement").exists()
    done = call.well("fairft", "run", *files)
    record = json.loads(Path("runs/small/fairft.json").read_text(encoding="utf-8"))
    assert record["training"] == 9

    rows = list(csv.DictReader(Path("runs/agreement/joined.csv").read_text(encoding="utf-8").splitlines()))
    overall = [(row["run"], row["topics"], row["system"], float(row["mean"])) for row in rows if not row["dimension"]]
    assert overall == [
        *(("agreement", "4", name, mean) for name, mean in (("no retrieval", 0), ("untrained", 1), ("FairFT", 1))),
        *(("accuracy", "3", name, mean) for name, mean in (("no retrieval", 0), ("untrained", 1), ("FairFT", 1))),
    ]
    text = Path("runs/agreement/joined.txt").read_text(encoding="utf-8")
    assert text.splitlines()[1].split() == ["system", "agreement", "agreement", "accuracy"]
    assert [line.split("  ")[0] for line in text.splitlines()[2:5]] == ["no retrieval", "untrained", "FairFT"]
    assert text in done.stdout
    results = Path("runs/agreement/results.txt").read_text(encoding="utf-8")
    case = results.partition("case q1: ")[2].partition("\n\n")[0]
    assert case.startswith(QUESTIONS[0])
    assert case.count("document 3: ") == 2
    assert case.count("answer: ") == 3
    assert "Cases, side by side" in Path("runs/agreement/report.html").read_text(encoding="utf-8")

    # Repeated, nothing is trained or asked again.
    journal = Path("runs/accuracy/journal.jsonl").read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(trainings, "run_training", None)
        again = call.well("fairft", "run", *files, "--to", "tables", "--json")
    assert Path("runs/accuracy/journal.jsonl").read_bytes() == journal
    assert [run["name"] for run in json.loads(again.stdout)["runs"]] == ["agreement", "accuracy"]
    assert Path("tables/joined.md").is_file()

    # Another training of the same name is another system, which goes on with no run; in tables: tests/report.
    other = yaml.safe_load((task / "fairft.yaml").read_text(encoding="utf-8"))
    other["training"]["rate"] = 0.001
    (task / "fairft.yaml").write_text(yaml.safe_dump(other), encoding="utf-8")
    assert "runs/small holds a training of other settings" in call.refused(2, "evaluate", files[1])
    call.well("fairft", "train", str(task / "fairft.yaml"), "--new")
    assert "systems.FairFT.files.engine.encoder: was" in call.refused(2, "evaluate", files[1])


def diagnoses_of(request: dict[str, Any]) -> ServerReply:
    """Whatever speaks of all nurses is biased against a gender."""
    told = request["messages"][-1]["content"]
    found = re.findall(r'"id": "(\w+)".*?"text": "(.*?)"', told, flags=re.DOTALL)
    diagnoses = [{"id": id, "biased": "All" in text, "kind": "gender" if "All" in text else ""} for id, text in found]
    return completion(json.dumps({"diagnoses": diagnoses}))


def test_diagnose(call: Call, tmp_path: Path, server: LoopbackServer) -> None:
    server.script = diagnoses_of
    data, out = tmp_path / "passages.jsonl", tmp_path / "avoid.jsonl"
    write_avoid(data, [AvoidPassage("a", "All nurses are women."), AvoidPassage("b", "A nurse works in a hospital.")])
    arguments = ("avoid", "diagnose", "--data", str(data), "--out", str(out), "--set", "model.name=tiny")
    assert "1 of 2 passages, in 1 calls" in call.well(*arguments).stdout
    assert read_avoid(out) == (AvoidPassage("a", "All nurses are women.", "gender"),)
    write_avoid(data, [AvoidPassage("b", "A nurse works in a hospital.")])
    assert "none of 1 passages biased" in call.refused(2, *arguments)
    assert len(read_avoid(out)) == 1
