"""The papers' tables in small: each has a twin that loads, and the page says what the stored results say."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evaluate import words

ROOT = Path(__file__).resolve().parents[2]
PAPERS = ROOT / "evaluations" / "papers"
SMALL = PAPERS / "small"
FILES = sorted(SMALL.glob("*.yaml"))
TABLES = sorted(f"{path.parent.name}/{path.stem}" for path in PAPERS.glob("*/*.yaml") if path.parent.name[0] in "fud")


@pytest.fixture(scope="module")
def scripts() -> Iterator[SimpleNamespace]:
    """The modules beside the tables, which import each other by their own names."""
    names = ("run_small", "small_page", "generate", "overview", "tables")
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in names}
    for name in before:
        del sys.modules[name]
    sys.path.insert(0, str(PAPERS))
    try:
        yield SimpleNamespace(**{name: importlib.import_module(name) for name in names})
    finally:
        sys.path.remove(str(PAPERS))
        for name in [name for name in sys.modules if name.partition(".")[0] in names]:
            del sys.modules[name]
        sys.modules.update(before)


def test_every_table_has_a_twin(scripts: SimpleNamespace) -> None:
    of = [name for _, names in scripts.tables.twins().values() for name in names]
    assert sorted(of) == TABLES
    assert sorted(scripts.tables.twins()) == [file.stem for file in FILES]


# --- the page -------------------------------------------------------------------------------------------------------


def test_the_page_is_what_its_script_makes(scripts: SimpleNamespace) -> None:
    found = {
        file.name: scripts.generate.numbers_in((PAPERS / f"{file.name}.yaml").read_text(encoding="utf-8"))
        for file in scripts.tables.files()
    }
    texts = {file.stem: file.read_text(encoding="utf-8") for file in FILES}
    assert scripts.small_page.page(found, texts) == (PAPERS / "SMALL.md").read_text(encoding="utf-8")


# --- run_small.py ---------------------------------------------------------------------------------------------------

EXPERIMENT = """\
name: words
collection: collection.yaml
topics: [T10, T11]
systems: {one: {profile: engine, engine: words}}
"""


@pytest.fixture
def run(scripts: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The script, with two small files, nothing to prepare, and its results elsewhere."""
    module = scripts.run_small
    for name in ("a", "b"):
        words.write(tmp_path, EXPERIMENT).rename(tmp_path / f"{name}.yaml")
    monkeypatch.setattr(module, "twins", lambda: {"a": ({}, ()), "b": ({}, ())})
    monkeypatch.setattr(module, "prepare", lambda needed: None)
    monkeypatch.setattr(module, "write", lambda: None)
    monkeypatch.setattr(module, "SMALL", tmp_path)
    monkeypatch.setattr(module, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(module, "RESULTS", tmp_path / "results.json")
    return module


def test_what_is_done_is_stored_and_not_done_again(
    run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    def evaluate(name: str, environment: dict[str, str], seconds: float) -> str:
        asked.append(name)
        if name == "b":
            return "it failed"
        words.run(tmp_path / f"{name}.yaml", run.folder_of(name))
        (run.folder_of(name) / "results.csv").touch()
        return ""

    monkeypatch.setattr(run, "evaluate", evaluate)
    assert run.main([]) == 7
    assert "left: b (it failed)" in capsys.readouterr().out
    stored = json.loads(run.RESULTS.read_text(encoding="utf-8"))
    assert list(stored) == ["a"]
    assert stored["a"]["topics"] == 2
    assert {measure for measure in stored["a"]["values"]["one"] if measure.startswith("nDCG")}
    assert run.main([]) == 7
    assert asked == ["a", "b", "b"]
    # The times of what took several goes add up.
    stored["a"]["seconds"] = 100
    run.RESULTS.write_text(json.dumps(stored), encoding="utf-8")
    monkeypatch.setattr(run, "is_whole", lambda name: False)
    run.main(["a"])
    assert json.loads(run.RESULTS.read_text(encoding="utf-8"))["a"]["seconds"] >= 100
