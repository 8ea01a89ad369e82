"""The notebooks as they are committed; `make notebooks` executes them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from collecting import faults

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


def cells_of(path: Path, kind: str) -> list[dict[str, Any]]:
    found = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in found if cell["cell_type"] == kind]


def test_there_are_four() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["editing_prompts", "llama_index_rag", "trec_run", "your_data"]


def committed_with_outputs_that_say_nothing_of_a_machine(path: Path) -> None:
    """`make notebooks` fails where they are not those of a fresh run."""
    cells = cells_of(path, "code")
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert sum(bool(cell["outputs"]) for cell in cells) > len(cells) / 2
    assert [one for cell in cells for one in cell["outputs"] if one["output_type"] == "error"] == []
    text = path.read_text(encoding="utf-8")
    assert len(text) < 40_000
    assert re.findall(r"/(?:tmp|root|home|Users|work|var)/[\w./-]+", text) == []
    assert re.findall(r"iopub|\d{4}-\d\d-\d\dT\d\d:", text) == []


def links_lead_to_files(path: Path) -> None:
    text = "\n".join("".join(cell["source"]) for cell in cells_of(path, "markdown"))
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", text)]
    assert links
    assert [link for link in links if not (path.parent / link).is_file()] == []


def pages_lead_to(path: Path) -> None:
    for page in ("README.md", "docs/gallery.md", "docs/mkdocs.yml"):
        assert f"{path.parent.name}/{path.stem}." in (ROOT / page).read_text(encoding="utf-8"), page


def test_each_is_whole_and_found() -> None:
    checks = (committed_with_outputs_that_say_nothing_of_a_machine, links_lead_to_files, pages_lead_to)
    assert [fault for check in checks for fault in faults(check, NOTEBOOKS)] == []


def notebook(code: str) -> str:
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "execution_count": None, "outputs": [], "source": code}
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


@pytest.mark.slow
def test_what_fails_in_one_is_said_and_the_others_are_executed(tmp_path: Path) -> None:
    """A cell that raises, and a command that ends with an error, which IPython alone would not notice."""
    pytest.importorskip("nbclient", reason="no nbclient is installed (make setup)")
    pytest.importorskip("ipykernel", reason="no ipykernel is installed (make setup)")
    cells = {
        "good": "import os\n'FAIRAGENT_N' in os.environ",
        "raises": "1 / 0",
        "command": "!exit 3",
    }
    for name, code in cells.items():
        (tmp_path / f"{name}.ipynb").write_text(notebook(code), encoding="utf-8")
    out = tmp_path / "out"
    command = [sys.executable, str(ROOT / "docs" / "notebooks.py"), str(out), "--of", str(tmp_path)]
    settings = {**os.environ, "FAIRAGENT_N": "3"}
    done = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert [path.name for path in out.iterdir()] == ["good.ipynb"]
    assert cells_of(out / "good.ipynb", "code")[0]["outputs"][0]["data"]["text/plain"] == ["False"]
    assert "good.ipynb: the outputs of code cells [1] are not those stored" in done.stderr
    assert "raises.ipynb: " in done.stderr
    assert "ZeroDivisionError" in done.stderr
    assert "non-zero exit status 3" in done.stderr


@pytest.mark.slow
def test_stored_outputs_are_those_of_the_next_run_but_for_seconds(tmp_path: Path) -> None:
    pytest.importorskip("nbclient", reason="no nbclient is installed (make setup)")
    pytest.importorskip("ipykernel", reason="no ipykernel is installed (make setup)")
    code = "import time\nprint(f'took {time.time_ns() % 10**9} s')\nprint()\n40 + 2"
    (tmp_path / "good.ipynb").write_text(notebook(code), encoding="utf-8")
    command = [sys.executable, str(ROOT / "docs" / "notebooks.py"), str(tmp_path / "out"), "--of", str(tmp_path)]
    for more in (["--store"], []):
        done = subprocess.run([*command, *more], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    (cell,) = cells_of(tmp_path / "good.ipynb", "code")
    assert cell["outputs"][1]["data"]["text/plain"] == ["42"]
    assert "execution" not in cell["metadata"]
    changed = (tmp_path / "good.ipynb").read_text(encoding="utf-8").replace('"42"', '"43"')
    (tmp_path / "good.ipynb").write_text(changed, encoding="utf-8")
    assert subprocess.run(command, capture_output=True, check=False).returncode == 1
