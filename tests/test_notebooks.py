"""The notebooks as they are committed; `make notebooks` executes them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from collecting import faults

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


def cells_of(path: Path, kind: str) -> list[dict[str, Any]]:
    found = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in found if cell["cell_type"] == kind]


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
    assert [path.stem for path in NOTEBOOKS] == ["editing_prompts", "llama_index_rag", "trec_run", "your_data"]
    assert [fault for check in checks for fault in faults(check, NOTEBOOKS)] == []
