"""Each case of cases.yaml, which docs/reference/cases.md is made of, has a test of its number here."""

from __future__ import annotations

import re
from pathlib import Path

from fairagent.storage.yaml_text import parse_yaml

FAULTS = Path(__file__).parent
CASES = parse_yaml((FAULTS / "cases.yaml").read_text(encoding="utf-8"))
SOURCE = "\n".join(path.read_text(encoding="utf-8") for path in FAULTS.glob("test_*.py"))


def test_every_row_has_its_tests() -> None:
    rows = [number for cases in CASES.values() for number in cases]
    assert len(set(rows)) == len(rows)
    # A test may stand for two cases: test_11_and_12_...
    tested = re.findall(r"^def test_(\d+)_(?:and_(\d+)_)?", SOURCE, re.MULTILINE)
    assert set(rows) == {int(number) for pair in tested for number in pair if number}
