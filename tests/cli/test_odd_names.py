"""Names that no file can have, and folders without a name."""

from __future__ import annotations

from pathlib import Path

import pytest
from faults import tiny
from typer.testing import CliRunner

from fairagent import load_collection
from fairagent.cli import app

LONG = "9" * 5000


@pytest.mark.parametrize(
    "arguments",
    [
        ("prompts", "eject", LONG),
        ("evaluate-run", "one.txt", "--data", LONG, "--track", "trec-fair-2022", "--task", "1"),
    ],
    ids=["prompts eject", "evaluate-run"],
)
def test_a_name_that_is_too_long(arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, arguments, prog_name="fairagent")
    assert done.exit_code in (2, 3)
    assert "(File name too long)" in " ".join(done.output.split())


@pytest.mark.parametrize("index", [".", "/"])
def test_an_index_whose_folder_has_no_name(index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tiny.write(tmp_path / "files")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    assert load_collection(file, index).groups.dimensions
