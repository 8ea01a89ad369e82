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


def source(name: str) -> str:
    return (FOLDER / f"{name}.sh").read_text(encoding="utf-8")


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_there_is_one_for_each_and_the_page_has_their_times() -> None:
    assert {path.stem for path in FOLDER.glob("*.sh")} == {*NAMES, "steps"}
    rows = re.findall(r"^\| `(\w+)\.sh` \| .+ \| ([\d.]+) \|$", page("examples/newcomers/README.md"), re.MULTILINE)
    assert [name for name, _ in rows] == list(NAMES)


def test_the_commands_are_those_of_the_pages() -> None:
    guide = page("docs/your_data.md")
    commands = re.findall(r'^step "[^"]+" (fairagent .+)$', source("own_csv"), re.MULTILINE)
    assert len(commands) == 3
    assert [command for command in commands if f"$ {command}\n" not in guide] == []
    (rows,) = re.findall(r"<<'CSV'\n(.*?)^CSV$", source("own_csv"), re.MULTILINE | re.DOTALL)
    assert f"```text\n{rows}```" in guide
    api = page("fairagent/studio/README.md")
    for part in ('-H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json"', '{"query": "famous lawyers"'):
        assert part in api
        assert part in source("studio")
    assert "fairagent init docs.jsonl --topics FILE --qrels FILE" in page("README.md")
    assert "fairagent init docs.jsonl --topics topics.txt --qrels qrels.txt" in source("trec")


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
