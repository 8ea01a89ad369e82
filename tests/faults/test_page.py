"""docs/reliability.md has rows that are numbered, and each has a test of its number here."""

from __future__ import annotations

import re
from pathlib import Path

FAULTS = Path(__file__).parent
PAGE = (FAULTS.parents[1] / "docs" / "reliability.md").read_text(encoding="utf-8")
SOURCE = "\n".join(path.read_text(encoding="utf-8") for path in FAULTS.glob("test_*.py"))


def test_every_row_has_its_tests() -> None:
    rows = [int(number) for number in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)]
    assert len(set(rows)) == len(rows)
    # A test may stand for two cases: test_11_and_12_...
    tested = re.findall(r"^def test_(\d+)_(?:and_(\d+)_)?", SOURCE, re.MULTILINE)
    assert set(rows) == {int(number) for pair in tested for number in pair if number}
