"""Each case of cases.yaml, which docs/reference/cases.md is made of, has its test: here, or where ELSEWHERE says."""

from __future__ import annotations

import re
from pathlib import Path

from fairagent.storage.yaml_text import parse_yaml

FAULTS = Path(__file__).parent
CASES = parse_yaml((FAULTS / "cases.yaml").read_text(encoding="utf-8"))
ELSEWHERE = {
    3: "test_overload_is_tried_exactly_as_often_as_set",
    **dict.fromkeys((9, 10), "test_odd_successes"),
    13: "test_missing_usage_is_estimated",
    14: "test_it_opens_for_a_while_and_closes_by_one_answer",
    15: "test_the_first_object_is_read",
    16: "test_three_invalid_replies_are_an_error_with_text_and_usage",
    128: "test_another_encoder_is_found_by_its_dimensions",
    130: "test_an_experiment_notices_another_index",
    134: "test_nothing_is_written_into_the_index",
}
"""Cases that are shown where the module is tested, each by a test of this name."""


def test_every_row_has_its_tests() -> None:
    rows = [number for cases in CASES.values() for number in cases]
    assert len(set(rows)) == len(rows)
    source = "\n".join(path.read_text(encoding="utf-8") for path in FAULTS.glob("test_*.py"))
    # A test may stand for several cases: test_11_and_12_...
    tested = re.findall(r"^def test_((?:\d+_and_)*\d+)_", source, re.MULTILINE)
    numbers = {int(number) for found in tested for number in found.split("_and_")}
    there = {name for path in FAULTS.parent.rglob("test_*.py") for name in re.findall(r"def (\w+)", path.read_text())}
    assert set(ELSEWHERE.values()) - there == set()
    assert set(rows) == numbers | set(ELSEWHERE)
