"""The newcomers' scripts: their commands are those of the pages, and, without the installation, they come to an end."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fairagent.storage.packages import is_installed

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "examples" / "newcomers"
NAMES = ("own_csv", "trec", "openai", "studio")
ENDS = {
    "own_csv": "regions: Asia gets",
    "trec": "page: runs/first/report.html",
    "openai": "3 hits; gender: female 0% -> 38%",
    "studio": '"collection": "open"',
}


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.vectors
@pytest.mark.parametrize("name", NAMES)
def test_they_come_to_an_end(name: str) -> None:
    if name == "studio" and not is_installed("fastapi"):
        pytest.skip("fastapi is not installed")
    environment = {one: value for one, value in os.environ.items() if not one.startswith(("FAIRAGENT_", "OPENAI_"))}
    environment |= {"NEWCOMER_BIN": str(Path(sys.executable).parent), "PYTHONPATH": str(ROOT), "COLUMNS": "80"}
    done = subprocess.run(
        ["sh", str(FOLDER / f"{name}.sh")], env=environment, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert ENDS[name] in done.stdout
    assert re.search(r"^=== total: [\d.]+ s$", done.stdout, re.MULTILINE)
