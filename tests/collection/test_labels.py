"""How the cells and fields of group files become memberships."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from fairagent.collection.config import GroupsFile
from fairagent.collection.labels import read_groups
from fairagent.collection.records import Faults


def memberships(tmp_path, name: str, content: str, **column: object) -> tuple[tuple[str, ...], list[float]]:
    """The labels, and the row of document `d` of a file with the dimension `g`."""
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    faults = Faults()
    table = read_groups(path, GroupsFile.model_validate({"path": name, "dimensions": {"g": column}}), faults)
    faults.check(name)
    assert table is not None
    return table.labels("g"), table.memberships("g", ["d"])[0].tolist()


@pytest.mark.parametrize(
    ("cell", "column", "labels", "row"),
    [
        ("", {}, (), [1]),
        ("a|b", {"separator": "|"}, ("a", "b"), [0, 0.5, 0.5]),
        ("b | a | b||", {"separator": "|"}, ("a", "b"), [0, 0.5, 0.5]),
        ("both", {"map": {"both": ["f", "m"]}}, ("f", "m"), [0, 0.5, 0.5]),
        ("N|f", {"separator": "|", "map": {"N": []}, "labels": ["f", "m"]}, ("f", "m"), [0, 1, 0]),
        ("a|b|c", {"separator": "|", "map": {"b": "a"}}, ("a", "c"), [0, 0.5, 0.5]),
        ("a|b", {"separator": "|", "normalize": False}, ("a", "b"), [0, 1, 1]),
        ("@UNKNOWN|a", {"separator": "|"}, ("a",), [0.5, 0.5]),
    ],
)
def test_cells_of_a_table(tmp_path, cell, column, labels, row):
    assert memberships(tmp_path, "groups.tsv", f"id\tg\nd\t{cell}\n", **column) == (labels, row)


@pytest.mark.parametrize(
    ("value", "column", "labels", "row"),
    [
        ("null", {"labels": ["a"]}, ("a",), [1, 0]),
        ("{}", {}, (), [1]),
        ("7", {}, ("7",), [0, 1]),
        ("7.0", {"labels": [7, 8]}, ("7", "8"), [0, 1, 0]),
        ("[true, 0]", {"map": {True: "x", 0: 5}}, ("5", "x"), [0, 0.5, 0.5]),
        ('["b", "a", "b"]', {}, ("a", "b"), [0, 0.5, 0.5]),
        ('{"a": 1, "b": 3}', {}, ("a", "b"), [0, 0.25, 0.75]),
        ('{"a": 0, "b": 2}', {}, ("b",), [0, 1]),
        ('{"UNK": 1, "a": 3}', {"map": {"UNK": "@UNKNOWN"}}, ("a",), [0.25, 0.75]),
        ('{"both": 1, "a": 1}', {"map": {"both": ["a", "b"]}}, ("a", "b"), [0, 0.75, 0.25]),
        ('{"a": 0.5, "b": 2}', {"normalize": False}, ("a", "b"), [0, 0.5, 2]),
    ],
)
def test_values_of_json_lines(tmp_path, value, column, labels, row):
    content = f'{{"id": "d", "g": {value}}}\n'
    assert memberships(tmp_path, "groups.jsonl", content, **column) == (labels, row)


def test_the_map_of_the_page(tmp_path):
    text = (Path(__file__).resolve().parents[2] / "docs" / "your_data.md").read_text(encoding="utf-8")
    (page,) = re.findall(r"^```yaml\ngender:\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    for cell, row in {"F": [0, 1, 0], "male": [0, 0, 1], "both": [0, 0.5, 0.5], "N/A": [1, 0, 0]}.items():
        content = f"id\tg\nd\t{cell}\ne\tF\nf\tM\n"
        assert memberships(tmp_path, "groups.tsv", content, **yaml.safe_load(page)) == (("female", "male"), row)
