from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairagent.collection import GroupTable
from fairagent.errors import DataError

ROWS = [
    ("b", {"gender": "male", "region": ["Asia", "Europe"]}),
    ("c", {"gender": None}),
    ("ä", {"gender": "female", "region": {"Asia": 1, "Africa": 3}}),
]


def test_look_up_by_hand():
    table = GroupTable.from_rows(ROWS, ["gender", "region"])
    assert len(table) == 3
    assert repr(table) == "GroupTable(3 documents, gender, region)"
    assert table.dimensions == ("gender", "region")
    assert table.labels("gender") == ("female", "male")
    assert table.labels("region") == ("Africa", "Asia", "Europe")
    np.testing.assert_array_equal(table.memberships("gender", ["ä", "b", "c"]), [[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    np.testing.assert_array_equal(
        table.memberships("region", ["ä", "b", "c"]), [[0, 0.75, 0.25, 0], [0, 0, 0.5, 0.5], [1, 0, 0, 0]]
    )
    np.testing.assert_allclose(table.shares("gender"), [1 / 3, 1 / 3, 1 / 3])
    np.testing.assert_allclose(table.shares("region"), [1 / 3, 0.25, 0.25, 0.5 / 3])


@pytest.mark.parametrize("dimension", ["gender", "region"])
def test_absent_strange_and_repeated_ids(dimension):
    table = GroupTable.from_rows(ROWS, ["gender", "region"])
    strange = ["", "zz", "b" * 300, "b\n", "b\nc", "\ud83d", "bb", "b"]
    rows = table.memberships(dimension, strange)
    np.testing.assert_array_equal(rows[:-1, 0], 1)
    np.testing.assert_array_equal(rows[:-1, 1:], 0)
    np.testing.assert_array_equal(rows[-1], table.memberships(dimension, ["b"])[0])
    np.testing.assert_array_equal(table.memberships(dimension, ["b", "b"]), table.memberships(dimension, ["b"])[[0, 0]])
    assert table.memberships(dimension, []).shape == (0, 1 + len(table.labels(dimension)))


def test_all_faults_of_the_rows_are_raised_together():
    rows = [
        ("a", {"g": "x"}),
        ("a", {"g": "y"}),
        ("b c", {"g": "x"}),
        ("", {"g": "x"}),
        ("d", {"g": {"x": float("nan")}}),
        ("e", {"g": {"x": 10**400}}),
        ("f", {"g": {"x": True}}),
        ("h", {"other": "x"}),
        ("i", {"g": ["z"]}),
        ("k" * 256, {"g": "x"}),
    ]
    with pytest.raises(DataError, match="groups: 9 errors") as error:
        GroupTable.from_rows(rows, {"g": ["x", "y"]})
    assert sorted(fault.line for fault in error.value.faults if fault.line) == [2, 3, 4, 5, 6, 7, 8, 9, 10]


def test_save_and_load(tmp_path):
    table = GroupTable.from_rows(ROWS, ["gender", "region"], unnormalized=["region"])
    table.save(tmp_path / "t")
    table.save(tmp_path / "t")
    mapped = GroupTable.load(str(tmp_path / "t"))
    assert len(mapped) == 3
    for dimension in table.dimensions:
        assert mapped.labels(dimension) == table.labels(dimension)
        ids = ["c", "ä", "zz", "b"]
        np.testing.assert_array_equal(mapped.memberships(dimension, ids), table.memberships(dimension, ids))
        np.testing.assert_array_equal(mapped.shares(dimension), table.shares(dimension))
    assert mapped.memberships("region", ["ä"]).tolist() == [[0, 3, 1, 0]]
    assert isinstance(mapped.ids.base, np.memmap)


def damage_head(folder, **changes):
    head = json.loads((folder / "groups.json").read_text(encoding="utf-8"))
    (folder / "groups.json").write_text(json.dumps(head | changes), encoding="utf-8")


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "groups.json").unlink(),
        lambda folder: damage_head(folder, documents=4),
        lambda folder: (folder / "ids.npy").write_bytes((folder / "ids.npy").read_bytes()[:-4]),
        lambda folder: np.save(folder / "0.codes.npy", np.zeros(2, np.uint8)),
    ],
)
def test_a_damaged_table_is_refused(tmp_path, damage):
    GroupTable.from_rows(ROWS, ["gender", "region"]).save(tmp_path)
    damage(tmp_path)
    with pytest.raises(DataError, match="not a complete group table"):
        GroupTable.load(tmp_path)


IDS = st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1, max_size=12)
LABEL = st.sampled_from(["a", "b", "c", "@UNKNOWN"])
VALUES = st.one_of(
    st.none(),
    LABEL,
    st.lists(LABEL, max_size=4),
    st.dictionaries(LABEL, st.floats(0, 1e6, allow_subnormal=False), max_size=4),
)


@settings(max_examples=80, deadline=None)
@given(st.dictionaries(IDS, VALUES, min_size=1, max_size=30), st.booleans(), st.lists(IDS, max_size=5))
def test_the_table_says_what_a_dictionary_says(values, normalize, others):
    """Law: compact storage changes nothing; the reference is a plain dictionary."""
    labels = ["a", "b", "c"]
    table = GroupTable.from_rows(
        ((id, {"g": value}) for id, value in values.items()), {"g": labels}, () if normalize else ["g"]
    )
    asked = [*reversed(values), *others]
    matrix = table.memberships("g", asked)
    for id, row in zip(asked, matrix, strict=True):
        expected = dict.fromkeys(["@UNKNOWN", *labels], 0.0)
        value = values.get(id)
        weights = {value: 1} if isinstance(value, str) else value or {}
        weights = dict(weights) if isinstance(weights, dict) else dict.fromkeys(weights, 1.0)
        weights = {label: weight for label, weight in weights.items() if weight} or {"@UNKNOWN": 1.0}
        total = sum(weights.values()) if normalize else 1.0
        expected.update({label: weight / total for label, weight in weights.items()})
        np.testing.assert_allclose(row, list(expected.values()), rtol=1e-12)
    np.testing.assert_allclose(
        table.shares("g"), table.memberships("g", list(values)).mean(axis=0), rtol=1e-9, atol=1e-12
    )
