"""The files under evaluations/answers are right, ask the same systems, and can be weighed against each other."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from fairagent.guests.testing import LoopbackServer

from . import school

FOLDER = Path(__file__).resolve().parents[3] / "evaluations" / "answers"


@pytest.fixture(scope="module")
def pareto() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pareto", FOLDER / "pareto.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_utility_against_fairness(
    server: LoopbackServer, tmp_path: Path, pareto: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = []
    for task in ("accuracy", "agreement"):
        folders.append(str(tmp_path / task))
        school.run(school.write(tmp_path, task), tmp_path / task)
    # Three systems are equally accurate and agree less than the one without documents.
    assert pareto.main(folders) == 0
    assert capsys.readouterr().out.splitlines() == [
        "system      accuracy  agreement  front",
        "alone         0.7500     0.5000",
        "words         0.7500     0.2500      *",
        "filtered      0.7500     0.2500      *",
        "first step    0.7500     0.2500      *",
    ]
    assert pareto.main([*folders, str(tmp_path / "pareto.html")]) == 0
    page = (tmp_path / "pareto.html").read_text(encoding="utf-8")
    assert "words: accuracy 0.750, 1 - agreement 0.750, Pareto front" in page
    assert "first step    0.7500" in page

    assert pareto.main(folders[::-1]) == 2
    assert "does not measure accuracy; name the run of accuracy.yaml first" in capsys.readouterr().err
    assert pareto.main([str(tmp_path), folders[1]]) == 2
    assert pareto.main([]) == 2
