"""Which documents are of a dimension's type, and which memberships are predicted: read, saved, refused."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from fairagent.collection import GroupTable
from fairagent.collection.config import GroupsFile
from fairagent.collection.groups import JoinedGroups
from fairagent.collection.labels import read_groups
from fairagent.collection.records import Faults
from fairagent.errors import DataError, UsageError

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
