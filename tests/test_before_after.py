"""The picture of the README: its numbers are those of the demo, and it can be read on white and on black."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "docs" / "before_after.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("before_after", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_readme_shows_it_first() -> None:
    picture = SCRIPT.with_suffix(".svg")
    above = (ROOT / "README.md").read_text(encoding="utf-8").partition("## ")[0]
    assert re.findall(r"!\[.+\]\((.+)\)", above) == [picture.relative_to(ROOT).as_posix()]
    ElementTree.parse(picture)
    text = picture.read_text(encoding="utf-8")
    assert "prefers-color-scheme:dark" in text
    assert len(re.findall(r"\d+% → \d+% of \d+%", text)) == 9


def test_bars_end_at_their_shares(script: ModuleType) -> None:
    """One group has all before, and what it should have after."""
    shares = {
        (script.BEFORE, "a & b"): 1.0,
        (script.BEFORE, "c"): 0.0,
        (script.AFTER, "a & b"): 0.5,
        (script.AFTER, "c"): 0.5,
    }
    rows = [
        {"dimension": "side", "system": system, "group": group, "exposure": share, "target": 0.5}
        for (system, group), share in shares.items()
    ]
    rows.append({"dimension": "side", "system": script.AFTER, "group": "none", "exposure": 0.1, "target": None})
    drawn = ElementTree.fromstring(script.picture(2, {"exposures": rows}))
    rects = [one for one in drawn.iter() if one.tag.endswith("rect") and float(one.get("x", "")) == script.LEFT]
    assert [float(one.get("width", "")) / script.LONGEST for one in rects] == [1, 0.5, 0, 0.5]
    texts = ["".join(one.itertext()) for one in drawn.iter() if one.tag.endswith("text")]
    assert "a & b" in texts
    assert "100% → 50% of 50%" in texts
    assert "none" not in texts


@pytest.mark.slow
@pytest.mark.vectors
def test_it_is_what_the_demo_comes_to() -> None:
    done = subprocess.run([sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
