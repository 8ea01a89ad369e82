"""docs/reliability.md has a row for each case, and tests of its number in the file that it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FAULTS = Path(__file__).parent
PAGE = (FAULTS.parents[1] / "docs" / "reliability.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (\d+) [^|]+\| [^|]+\| (test_\w+\.py) \|$", PAGE, re.MULTILINE)


def test_every_case_has_a_row() -> None:
    assert [int(number) for number, _ in ROWS] == list(range(1, 54))


@pytest.mark.parametrize(("number", "file"), ROWS)
def test_every_row_has_its_tests(number: str, file: str) -> None:
    source = (FAULTS / file).read_text(encoding="utf-8")
    # A test may stand for two cases: test_11_and_12_...
    assert re.search(rf"^def test_(?:\d+_and_)?0?{number}_", source, re.MULTILINE)
