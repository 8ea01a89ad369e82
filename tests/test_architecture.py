"""docs/architecture.md says what is so: the rooms in their order, the slots, and files that are there."""

from __future__ import annotations

import re
from pathlib import Path

from test_layers import FLOW, ROOT

from fairagent.settings.parts import BUILT_IN, SLOTS

WITHOUT = "fairagent.settings.parts:Without"
DOCS = ROOT.parent / "docs"
PAGE = (DOCS / "architecture.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


def test_the_rooms_are_those_of_the_test_in_its_order() -> None:
    assert re.findall(r"^\| `(\w+)` \|", section("The rooms, in order"), re.MULTILINE) == FLOW


def test_the_slots_are_all() -> None:
    (line,) = re.findall(r"^\| slot \| a place for a part: (.*) \|$", section("Glossary"), re.MULTILINE)
    assert line.split(", ") == list(SLOTS)


def test_every_part_is_where_the_page_says() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+?) \| .+ \|$", section("Where each part lives"), re.MULTILINE))
    assert list(rows) == list(SLOTS)
    for slot, kinds in BUILT_IN.items():
        for place in {place for place in kinds.values() if place.startswith("fairagent.")} - {WITHOUT}:
            file = place.partition(":")[0].removeprefix("fairagent.").replace(".", "/") + ".py"
            assert any(file.startswith(named) for named in re.findall(r"`([\w/.]+)`", rows[slot])), f"{slot}: {file}"


def test_the_files_it_names_are_there() -> None:
    named = re.findall(r"`([\w/]+\.py)`", PAGE)
    assert len(named) > 10
    assert [name for name in named if not any((folder / name).exists() for folder in places())] == []
    assert [link for link in re.findall(r"\]\(([^)#]+)", PAGE) if not (DOCS / link).exists()] == []


def places() -> tuple[Path, ...]:
    return (ROOT, ROOT / "evaluate", ROOT.parent)
