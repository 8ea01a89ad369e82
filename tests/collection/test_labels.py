"""Labels of groups: read, mapped, joined, typed, predicted, saved and refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from fairagent import Collection
from fairagent.collection import GroupTable
from fairagent.collection.config import GroupsFile
from fairagent.collection.labels import read_groups
from fairagent.collection.records import Faults
from fairagent.collection.table import JoinedGroups
from fairagent.errors import DataError, FairAgentError, UsageError


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


DIRTY = ["M", "male", "Male ", "female", "Female", "F", "N/A", "unknown", "prefer not to say", None] * 2


def rows(values: list[Any], column: str = "gender") -> list[dict[str, Any]]:
    return [{"id": f"d{place}", "text": "law", column: value} for place, value in enumerate(values)]


@pytest.mark.parametrize("labels", ["join", {"gender": "join"}])
def test_spellings_are_joined(labels: Any) -> None:
    collection = Collection.from_records(iter(rows(DIRTY)), groups="gender", labels=labels)
    assert collection.groups.labels("gender") == ("female", "male")
    assert collection.groups.shares("gender").tolist() == pytest.approx([0.4, 0.3, 0.3])
    assert collection.notes == ()


def test_lists_separators_columns_and_own_maps() -> None:
    lists = Collection.from_records(rows([["A x", "a X"], ["b", "N/A"], "a x"]), groups="gender", labels="join")
    assert lists.groups.labels("gender") == ("a x", "b")
    split = Collection.from_records(
        rows(["ab|CD", "Cd|Cd", "AB|unknown"], "who"), groups={"sex": "who"}, separator="|", labels="join"
    )
    assert split.groups.labels("sex") == ("Cd", "ab")
    own = {"gender": {"map": {"M": "m"}}}
    assert "Male" in Collection.from_records(rows(DIRTY), groups=own, labels="join").groups.labels("gender")


def test_spellings_that_look_alike_are_said_and_left(caplog: pytest.LogCaptureFixture) -> None:
    collection = Collection.from_records(rows(DIRTY), groups="gender")
    assert len(collection.groups.labels("gender")) == 9
    (note,) = collection.notes
    assert "Female, F -> female" in note
    assert "prefer not to say, unknown, N/A -> no label" in note
    assert 'labels="join"' in note
    assert note in caplog.text


WRONG: list[tuple[list[Any], dict[str, Any], type[FairAgentError], str]] = [
    (DIRTY, {"labels": {"sex": "join"}}, UsageError, "no dimension 'sex'; there are: gender"),
    (DIRTY, {"labels": {"gender": {"M": "m"}}, "groups": {"gender": {"map": {"F": "f"}}}}, UsageError, "has a `map`"),
    (["N/A", "-"], {"labels": "join"}, DataError, "leaves no label: it makes nothing of 'N/A' (1), '-' (1)"),
    (["f", 1, True], {}, DataError, "mixed types: text ('f', records:1), whole numbers (1, records:2), true or false"),
]


@pytest.mark.parametrize(("values", "how", "error", "words"), WRONG)
def test_bad_input_is_one_error(values: list[Any], how: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error) as raised:
        Collection.from_records(rows(values), **{"groups": "gender"} | how)
    assert words in str(raised.value)


IDS = ["a", "b", "c", "nobody"]


def read(tmp_path, content: str, name: str = "groups.tsv", **column: object) -> GroupTable:
    """The table of a file with the dimension `g`; DataError with its faults."""
    (tmp_path / name).write_text(content, encoding="utf-8")
    faults = Faults()
    table = read_groups(tmp_path / name, GroupsFile.model_validate({"path": name, "dimensions": {"g": column}}), faults)
    faults.check(name)
    assert table is not None
    return table


KINDS = "id\tg\tkind\tperson\na\tx\tperson\t1\nb\t\t person \t1\nc\t\triver\t\n"


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        ({"column": "kind", "values": ["person"]}, [True, True, False, False]),
        ({"column": "kind", "values": "river"}, [False, False, True, False]),
        ({"column": "person", "values": [1]}, [True, True, False, False]),
    ],
)
def test_a_column_says_so(tmp_path, of, expected):
    table = read(tmp_path, KINDS, applies_to=of)
    assert table.of_type("g", IDS).tolist() == expected
    assert table.of_type("g", [*IDS, *IDS], "T1").tolist() == expected * 2
    assert table.of_type("g", []).shape == (0,)


def test_what_is_missing_is_of_those_that_can_have_a_label(tmp_path):
    """b is a person without a label, c a river: one of three documents, two where nobody says what they are."""
    of = {"column": "kind", "values": ["person"]}
    table, untyped = read(tmp_path, KINDS, applies_to=of), read(tmp_path, KINDS)
    assert table.missing("g") == JoinedGroups([table]).missing("g") == pytest.approx(1 / 3)
    assert untyped.missing("g") == pytest.approx(2 / 3)
    assert untyped.of_type("g", IDS) is None
    for ask in (table.missing, lambda name: table.of_type(name, IDS)):
        with pytest.raises(UsageError, match="no dimension 'h'; there are: g"):
            ask("h")


@pytest.mark.parametrize(
    ("content", "of", "line", "message"),
    [
        (KINDS, {"column": "sort"}, 1, "the type of dimension 'g': no column 'sort'; there are: id, g, kind"),
        (KINDS, {"column": "kind", "values": ["human"]}, None, "'kind' never says human"),
        ("id\tg\tkind\na\tx\t\n", {"column": "kind"}, None, "'kind' never says anything"),
    ],
)
def test_a_column_that_says_nothing_is_refused(tmp_path, content, of, line, message):
    with pytest.raises(DataError) as error:
        read(tmp_path, content, applies_to=of)
    assert [(fault.path.name, fault.line) for fault in error.value.faults] == [("groups.tsv", line)]
    assert message in error.value.faults[0].message


def test_probabilities_are_memberships(tmp_path):
    content = (
        '{"id": "a", "g": {"f": 0.7, "m": 0.3}}\n'
        '{"id": "b", "g": {"f": 0.25, "m": 0.25, "@UNKNOWN": 0.5}}\n'
        '{"id": "c", "g": {"f": 0.3334, "m": 0.6661}}\n'
        '{"id": "d", "g": "m"}\n{"id": "e", "g": null}\n{"id": "f", "g": {}}\n'
    )
    table = read(tmp_path, content, "groups.jsonl", predicted=True)
    assert table.predicted == ("g",)
    np.testing.assert_allclose(
        table.memberships("g", list("abcdef")),
        [[0, 0.7, 0.3], [0.5, 0.25, 0.25], [0, 0.3334 / 0.9995, 0.6661 / 0.9995], [0, 0, 1], [1, 0, 0], [1, 0, 0]],
    )


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ('{"f": 0.7, "m": 0.2}', "g: predicted labels that do not add up: f 0.7, m 0.2 make 0.9, expected 1"),
        ('{"f": -0.5, "m": 1.5}', "the weight of 'f' is -0.5, expected a number >= 0"),
    ],
)
def test_probabilities_that_do_not_add_up(tmp_path, value, message):
    content = f'{{"id": "a", "g": {{"f": 0.5, "m": 0.5}}}}\n{{"id": "b", "g": {value}}}\n'
    with pytest.raises(DataError) as error:
        read(tmp_path, content, "groups.jsonl", predicted=True)
    assert [(fault.path.name, fault.line) for fault in error.value.faults] == [("groups.jsonl", 2)]
    assert message in error.value.faults[0].message


def test_a_saved_table_keeps_both(tmp_path):
    content = '{"id": "a", "g": {"f": 0.7, "m": 0.3}, "kind": "person"}\n{"id": "b", "kind": "river"}\n'
    of = {"column": "kind", "values": ["person"]}
    table = read(tmp_path, content, "groups.jsonl", predicted=True, applies_to=of)
    table.save(tmp_path / "table")
    loaded = GroupTable.load(tmp_path / "table")
    assert loaded.predicted == ("g",)
    assert loaded.of_type("g", IDS).tolist() == [True, False, False, False]
    np.testing.assert_array_equal(loaded.memberships("g", IDS), table.memberships("g", IDS))
    assert loaded.relabeled("g", ["m", "f"]).of_type("g", IDS).tolist() == [True, False, False, False]
    assert loaded.relabeled("g", ["m", "f"]).predicted == ("g",)
    loaded.save(tmp_path / "table")
    assert GroupTable.load(tmp_path / "table").of_type("g", IDS).tolist() == [True, False, False, False]


def test_the_predicted_labels_of_the_page(tmp_path):
    page = Path(__file__).resolve().parents[2] / "docs" / "your_data.md"
    (line,) = re.findall(r"```json\n(.*)\n```", page.read_text(encoding="utf-8"))
    table = read(tmp_path, line.replace('"gender"', '"g"'), "groups.jsonl", predicted=True)
    np.testing.assert_allclose(table.memberships("g", ["d1"]), [[0.1, 0.7, 0.2]])
