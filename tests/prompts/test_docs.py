"""The template that docs/prompts_and_models.md shows can be read."""

from __future__ import annotations

import re
from pathlib import Path

from fairagent.llm.prompts import Prompts

DOCS = Path(__file__).resolve().parents[2] / "docs"
GUIDE = (DOCS / "prompts_and_models.md").read_text(encoding="utf-8")


def test_the_template_shown_can_be_read(tmp_path: Path) -> None:
    (shown,) = re.findall(r"^```jinja\n(---\n.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
    filled = shown.replace(
        '"group"', '"at": [{{ dimension|tojson }}, {{ share|tojson }}, {{ target|tojson }}], "group"'
    )
    (tmp_path / "refine_query.j2").write_text(filled, encoding="utf-8")
    assert Prompts(tmp_path)["refine_query"].head.version == 3
