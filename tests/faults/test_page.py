"""Each case of cases.yaml, which docs/reference/cases.md is made of, has its test: of its number, or one it names."""

from __future__ import annotations

import re
from pathlib import Path

from fairagent.storage.readers import parse_yaml

FAULTS = Path(__file__).parent
CASES = parse_yaml((FAULTS / "cases.yaml").read_text(encoding="utf-8"))


def test_every_row_has_its_tests() -> None:
    rows = [number for cases in CASES.values() for number in cases]
    named = {number: case[2] for cases in CASES.values() for number, case in cases.items() if len(case) > 2}
    source = "\n".join(path.read_text(encoding="utf-8") for path in FAULTS.parent.rglob("test_*.py"))
    assert set(named.values()) <= set(re.findall(r"def (\w+)", source))
    # A test may stand for several cases: test_11_and_12_...
    tested = re.findall(r"^def test_((?:\d+_and_)*\d+)_", source, re.MULTILINE)
    numbers = {int(number) for found in tested for number in found.split("_and_")}
    assert len(set(rows)) == len(rows)
    assert set(rows) == numbers | set(named)
