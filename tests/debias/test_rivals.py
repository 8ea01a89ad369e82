"""The files of evaluations/debias on rivals: they are right, and run on tiny models and made-up sentences."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tiny_models
from evaluate import words
from evaluate.stereotypes import bench
from evaluate.stereotypes.test_seat import SIDES
from fairft.small import save_retriever, write_lines

from fairagent.evaluate.check import check_experiment
from fairagent.papers.debias_rag.sentence_debias import save_debiased

FOLDER = Path(__file__).resolve().parents[2] / "evaluations" / "debias"
README = (FOLDER / "README.md").read_text(encoding="utf-8")
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
    assert f"({name}.yaml)" in README
    if name == "rewrites":
        assert plan.systems["rewrites by perplexity"].settings.debias.scorer == str(models / "causal")
        assert not plan.systems["fair documents only"].searches
    if name == "time":
        assert plan.cache == ""


@pytest.mark.usefixtures("no_variables")
@pytest.mark.parametrize("name", ["prompting", "self_debias"])
def test_rivals_run_on_a_tiny_model(tmp_path: Path, name: str, models: Path) -> None:
    run = words.run(write(tmp_path, name, models), tmp_path / "run")
    assert len(run.answered) == 4 * len(bench.STEREOSET)
    rows = run.kind.set_rows(run)  # type: ignore[attr-defined]
    assert {system for system, _ in rows} == {"no retrieval", "retrieval", "DebiasRAG", "fair documents only"}
    told = (tmp_path / "run" / "results.txt").read_text(encoding="utf-8")
    assert {"prompting": "with an instruction", "self_debias": "Self-Debias"}[name] in told


@pytest.mark.usefixtures("no_variables")
def test_seat_runs_on_tiny_encoders(tmp_path: Path, models: Path) -> None:
    run = words.run(write(tmp_path, "seat", models), tmp_path / "run")
    effects = {one.system: one.record["effect"] for one in run.answered if one.record}
    assert len({round(effect, 6) for effect in effects.values()}) == 3
