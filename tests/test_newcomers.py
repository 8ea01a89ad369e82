"""The newcomers' scripts: their commands are those of the pages, and, without the installation, they come to an end."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from running import environment

from fairagent.storage.packages import is_installed

ROOT = Path(__file__).resolve().parents[1]
ENDS = {
    "own_csv": "regions: Asia gets",
    "trec": "page: runs/first/report.html",
    "openai": "3 hits; gender: female 0% -> 38%",
    "studio": '"collection": "open"',
}


@pytest.mark.slow
@pytest.mark.vectors
@pytest.mark.parametrize("name", ENDS)
def test_they_come_to_an_end(name: str) -> None:
    if name == "studio" and not is_installed("fastapi"):
        pytest.skip("fastapi is not installed")
    variables = environment(NEWCOMER_BIN=str(Path(sys.executable).parent), PYTHONPATH=str(ROOT), COLUMNS="80")
    command = ["sh", str(ROOT / "examples" / "newcomers" / f"{name}.sh")]
    done = subprocess.run(command, env=variables, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ENDS[name] in done.stdout
    assert re.search(r"^=== total: [\d.]+ s$", done.stdout, re.MULTILINE)
