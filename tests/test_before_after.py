"""The picture of the README: its numbers are those of the demo, and it can be read on white and on black."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "docs" / "before_after.py"


def test_the_readme_shows_it_first() -> None:
    picture = SCRIPT.with_suffix(".svg")
    above = (ROOT / "README.md").read_text(encoding="utf-8").partition("## ")[0]
    assert re.findall(r"!\[.+\]\((.+)\)", above) == [picture.relative_to(ROOT).as_posix()]
    ElementTree.parse(picture)
    text = picture.read_text(encoding="utf-8")
    assert "prefers-color-scheme:dark" in text
    assert len(re.findall(r"\d+% → \d+% of \d+%", text)) == 9


@pytest.mark.slow
@pytest.mark.vectors
def test_it_is_what_the_demo_comes_to() -> None:
    done = subprocess.run([sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
