"""The notebooks as they are committed; `make notebooks` executes them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
named = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def cells_of(path: Path, kind: str) -> list[dict[str, Any]]:
    found = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in found if cell["cell_type"] == kind]


def test_there_are_four() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["editing_prompts", "llama_index_rag", "trec_run", "your_data"]


@named
def test_they_are_committed_without_outputs(path: Path) -> None:
    cells = cells_of(path, "code")
    assert cells
    assert [cell["id"] for cell in cells if cell["outputs"] or cell["execution_count"] is not None] == []


@named
def test_their_links_lead_to_files(path: Path) -> None:
    text = "\n".join("".join(cell["source"]) for cell in cells_of(path, "markdown"))
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", text)]
    assert links
    assert [link for link in links if not (path.parent / link).is_file()] == []


@named
@pytest.mark.parametrize("page", ["README.md", "docs/gallery.md", "docs/mkdocs.yml"])
def test_the_pages_lead_to_them(path: Path, page: str) -> None:
    assert f"{path.parent.name}/{path.stem}." in (ROOT / page).read_text(encoding="utf-8")
