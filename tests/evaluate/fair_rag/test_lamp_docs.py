"""docs/lamp.md says what is so, and its code runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import lamp_files
import pytest

from fairagent.guests.testing import LoopbackServer, completion
from fairagent.measures.answers import ACCURACY, UTILITIES
from fairagent.papers.fair_rag.lamp import LIMIT, TASKS, TOKENS

GUIDE = (Path(__file__).resolve().parents[3] / "docs" / "lamp.md").read_text(encoding="utf-8")


def test_the_code_runs(
    no_variables: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("rouge")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    lamp_files.load(tmp_path, "LaMP-4")
    reading, labeling = re.findall(r"^```python\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
    with LoopbackServer(lambda request: completion("A court")) as server:
        code = labeling.replace("http://localhost:8000/v1", server.url)
        assert code != labeling
        exec(compile(reading + code, "docs/lamp.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "LaMP-4: 2 of 2 questions" in printed
    assert "calls=6" in printed
    assert "2 of 2 questions have fewer than 2 useful items" in printed


def test_the_tables_name_all_tasks_and_utilities() -> None:
    for name, task in TASKS.items():
        (row,) = re.findall(rf"^\| {name}, .*\|$", GUIDE, re.MULTILINE)
        _, _, fields, _, _, query, labeled_by, metric, _ = (cell.strip() for cell in row.split("|"))
        assert fields.split(", ") == list(task.fields)
        assert (labeled_by.lower().replace(" ", "-"), metric.lower().replace(" ", "-")) == (
            task.label_metric,
            task.metric,
        )
        if name != "LaMP-1":
            assert f"`{task.find_query.mark}`" in query  # type: ignore[attr-defined]
    utilities = GUIDE.partition("## What answers are worth")[2]
    named = {
        name for row in re.findall(r"^\| (`.*?) \|", utilities, re.MULTILINE) for name in re.findall(r"`(.*?)`", row)
    }
    assert named == {*UTILITIES, ACCURACY}
    assert f"The first {LIMIT:,} questions" in GUIDE
    assert f"at most {TOKENS} tokens" in GUIDE
