"""docs/architecture.md says what is so: the rooms in their order, and files that are there."""

from __future__ import annotations

import re
import tomllib

from test_layers import ROOT

DOCS = ROOT.parent / "docs"
PAGE = (DOCS / "architecture.md").read_text(encoding="utf-8")
CONTRACTS = tomllib.loads((ROOT.parent / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]


def section(title: str) -> str:
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


def rows(title: str) -> dict[str, str]:
    return dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", section(title), re.MULTILINE))


def test_the_rooms_are_those_of_the_contract_in_its_order() -> None:
    layers = [layer.removeprefix("fairagent.") for layer in reversed(CONTRACTS["contracts"][0]["layers"])]
    there = list(rows("The rooms"))
    assert there == [layer for layer in layers if layer not in ("errors", "extend")]
    assert {*there, "profiles", "__pycache__"} >= {path.name for path in ROOT.iterdir() if path.is_dir()}


def test_the_files_it_names_are_there_and_it_is_two_pages() -> None:
    named = re.findall(r"\b((?:[a-z_]+/)+[a-z_]+\.(?:py|yaml))\b", PAGE)
    assert len(named) > 30
    assert [name for name in named if not (ROOT / name).exists()] == []
    assert [link for link in re.findall(r"\]\(([^)#]+)", PAGE) if not (DOCS / link).exists()] == []
    assert len(PAGE.split()) <= 900
