"""The guide's experiment: systems that differ in their templates alone, on a small collection with a scripted model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml
from experiment_files import read_file
from faults import life

from fairagent.evaluate.check import check_experiment, estimate
from fairagent.evaluate.experiment import build_indexes, run_experiment
from fairagent.evaluate.workers import threads
from fairagent.guests.testing import LoopbackServer
from fairagent.llm.prompts import Prompts

FOLDER = Path(__file__).resolve().parents[2] / "evaluations" / "prompts"
FILE = FOLDER / "compare.yaml"


def test_the_file_is_right() -> None:
    _, systems = read_file(FILE)
    others = {"terse": str(FOLDER / "terse"), "few-shot": "few-shot", "reasoning": "reasoning"}
    plain = dict.fromkeys(("default", "labeled only", "grounded", "feedback"), "")
    assert {name: system.settings.prompts for name, system in systems.items()} == plain | others


@pytest.fixture
def file(tmp_path: Path, no_variables: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The experiment with its folder of templates, on a small collection."""
    monkeypatch.setenv("FAIRAGENT_CACHE", str(tmp_path / "replies"))
    life.write(tmp_path / "small")
    shutil.copytree(FOLDER, tmp_path / "compared")
    described = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    described["collection"] = "../small/collection.yaml"
    described["settings"] |= {"index": str(tmp_path / "small" / "index"), "expansion": {"documents": 0}}
    described["settings"] |= {"target": "uniform", "iterations": 2}
    copy = tmp_path / "compared" / "compare.yaml"
    copy.write_text(yaml.safe_dump(described, sort_keys=False), encoding="utf-8")
    return copy


@pytest.mark.slow
def test_each_system_asks_with_its_own_template(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(request: dict[str, object]) -> str:
        system, user = request["messages"][0]["content"], request["messages"][-1]["content"]
        if user.startswith("A keyword search for"):
            return json.dumps({"keywords": ["he"]})
        reasoning = {"reasoning": "Pronouns."} if "Think in four steps" in system else {}
        return json.dumps({**reasoning, "keywords": ["she"]})

    with LoopbackServer(answer) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        with threads(1) as workers:
            checked = check_experiment(file)
            build_indexes(checked)
            run = run_experiment(checked, tmp_path / "run", workers)
    schemas = [request["response_format"]["json_schema"]["name"] for request in server.requests]
    assert set(schemas) == {"Keywords", "ReasonedKeywords"}
    used: dict[str, set[str]] = {name: set() for name in run.systems}
    for outcome in run.outcomes:
        used[outcome.system] |= {term for step in outcome.steps for term, _ in step.terms}
    assert used["terse"] == {"he"}
    assert used["default"] == used["few-shot"] == used["reasoning"] == used["grounded"] == {"she"}
    # Which templates they were is written down.
    written = (tmp_path / "run" / "run.json").read_text(encoding="utf-8")
    for source in ("", file.parent / "terse", "few-shot", "reasoning"):
        assert Prompts(source)["refine_query"].sha256 in written
    assert Prompts()["refine_query_grounded"].sha256 in written


def test_what_it_takes_is_known_before(file: Path) -> None:
    rows = {row.system: row for row in estimate(check_experiment(file, environ={"OPENAI_API_KEY": "none"}))}
    assert rows["feedback"].calls == rows["labeled only"].calls == 0
    assert rows["terse"].input_tokens < rows["default"].input_tokens < rows["few-shot"].input_tokens
    assert rows["default"].input_tokens < rows["grounded"].input_tokens
    assert {row.calls for name, row in rows.items() if name not in ("feedback", "labeled only")} == {2 * 20}
