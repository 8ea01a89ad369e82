"""DebiasRAG as a system of an experiment: with and without retrieval, checked, estimated, and never leaking."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairagent.errors import DataError, SettingsError
from fairagent.evaluate.check import check_experiment
from fairagent.guests.testing import LoopbackServer, ServerReply, completion

from ..conftest import Loopback
from . import school

LIBRARY = [
    {"id": "a1", "text": "Every nurse is a woman.", "class": "gender"},
    {"id": "a2", "text": "The old judge is always late."},
]
SYSTEMS = """\
settings: {model: {name: tiny}, context: {documents: 4}}
systems:
  alone: {profile: engine, engine: none}
  made: {profile: engine, engine: none, debias: {kind: debias-rag, library: avoid.jsonl}}
  both: {profile: engine, engine: words, debias: {kind: debias-rag, library: avoid.jsonl, k: 2, rewrites: 2}}
"""


def write(folder: Path, library: list[dict[str, str]], systems: str = SYSTEMS) -> Path:
    (folder / "avoid.jsonl").write_text("".join(json.dumps(one) + "\n" for one in library), encoding="utf-8")
    file = school.write(folder)
    file.write_text(file.read_text(encoding="utf-8").replace(school.SYSTEMS, systems), encoding="utf-8")
    return file


def model(request: dict[str, object]) -> ServerReply:
    """Rewrites what it is asked to rewrite; answers by rote else, yes where there is a document that was made."""
    user = request["messages"][-1]["content"]  # type: ignore[index]
    if '"rewrites"' in user:
        return completion(json.dumps({"rewrites": ["Every nurse is a man, they say.", "So they say."]}))
    if school.judged(request):
        return completion("No")
    return completion("Yes" if "not from the collection" in user else "No")


@pytest.fixture
def asked(loopback: Loopback) -> LoopbackServer:
    return loopback(model)


def test_three_systems_and_their_answers(asked: LoopbackServer, tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers")
    file = write(tmp_path, LIBRARY)
    run = school.run(file, tmp_path / "run")
    assert school.means(run, "alone")[""] == 0
    assert school.means(run, "made")[""] == 1
    assert 0 <= school.means(run, "both")[""] <= 1
    answers = school.words.rows(tmp_path / "run" / "answers.csv")
    told = [tuple(one[name] for name in ("system", "made", "survived", "placed")) for one in answers]
    assert told.count(("alone", "", "", "")) == 4
    assert {line[1] for line in told if line[0] != "alone"} == {"2"}
    assert {line[2:] for line in told if line[0] == "made"} == {("2", "2")}
    assert all(abs(float(one["theta_moved"])) < 0.5 for one in answers if one["system"] != "alone")
    rewriting = [one for one in asked.requests if '"rewrites"' in str(one)]
    assert rewriting
    # A question each, and of the third system for 4 questions 2 rewrites at most.
    assert len(rewriting) <= 8


def test_a_library_that_holds_a_question_is_refused(asked: LoopbackServer, tmp_path: Path) -> None:
    leaking = [*LIBRARY, {"id": "a3", "text": "He asked: is every MINER late?"}]
    with pytest.raises(DataError) as raised:
        check_experiment(write(tmp_path, leaking))
    said = str(raised.value)
    assert "1 text of the test questions stands in the avoid library avoid.jsonl too" in said
    assert "Is every miner late" in said
    assert "nothing was run" in said


def test_faults_are_told_before_anything_runs(asked: LoopbackServer, tmp_path: Path) -> None:
    without = SYSTEMS.replace("library: avoid.jsonl, ", "")
    with pytest.raises(SettingsError, match="`library` is missing"):
        check_experiment(write(tmp_path, LIBRARY, without))
    file = write(tmp_path, LIBRARY)
    ranked = "".join(line for line in file.read_text("utf-8").splitlines(True) if "no-retr" not in line)
    file.write_text(
        ranked.replace("questions:", "# questions:").replace("kind: agreement", "kind: ranking"), encoding="utf-8"
    )
    with pytest.raises(SettingsError, match=r"systems\.both\.debias cannot be set: it chooses what questions are"):
        check_experiment(file)
