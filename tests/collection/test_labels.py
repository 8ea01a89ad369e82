"""Labels of groups: read, mapped, joined, typed, predicted, saved and refused; and which are spellings of one."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fairagent import Collection
from fairagent.collection import GroupTable
from fairagent.collection.config import GroupsFile
from fairagent.collection.labels import join_spellings, read_groups
from fairagent.collection.records import Faults
from fairagent.collection.table import JoinedGroups
from fairagent.errors import DataError, FairAgentError, UsageError

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "your_data.md").read_text(encoding="utf-8")


def read(folder: Path, content: str, **column: object) -> GroupTable:
    """The table of a file with the dimension `g`; DataError with its faults."""
    path, faults = folder / ("groups.jsonl" if content.startswith("{") else "groups.tsv"), Faults()
    path.write_text(content, encoding="utf-8")
    table = read_groups(path, GroupsFile.model_validate({"path": path.name, "dimensions": {"g": column}}), faults)
    faults.check(path.name)
    assert table is not None
    return table


def refused(folder: Path, content: str, line: int | None, message: str, **column: object) -> None:
    with pytest.raises(DataError) as error:
        read(folder, content, **column)
    assert [fault.line for fault in error.value.faults] == [line]
    assert message in error.value.faults[0].message


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
        # values of JSON lines
        ({"null"}, {"labels": ["a"]}, ("a",), [1, 0]),
        ({"{}"}, {}, (), [1]),
        ({"7"}, {}, ("7",), [0, 1]),
        ({"7.0"}, {"labels": [7, 8]}, ("7", "8"), [0, 1, 0]),
        ({"[true, 0]"}, {"map": {True: "x", 0: 5}}, ("5", "x"), [0, 0.5, 0.5]),
        ({'["b", "a", "b"]'}, {}, ("a", "b"), [0, 0.5, 0.5]),
        ({'{"a": 1, "b": 3}'}, {}, ("a", "b"), [0, 0.25, 0.75]),
        ({'{"a": 0, "b": 2}'}, {}, ("b",), [0, 1]),
        ({'{"UNK": 1, "a": 3}'}, {"map": {"UNK": "@UNKNOWN"}}, ("a",), [0.25, 0.75]),
        ({'{"both": 1, "a": 1}'}, {"map": {"both": ["a", "b"]}}, ("a", "b"), [0, 0.75, 0.25]),
        ({'{"a": 0.5, "b": 2}'}, {"normalize": False}, ("a", "b"), [0, 0.5, 2]),
    ],
)
def test_cells_of_tables_and_values_of_json_lines(tmp_path, cell, column, labels, row):
    content = f"id\tg\nd\t{cell}\n" if isinstance(cell, str) else f'{{"id": "d", "g": {next(iter(cell))}}}\n'
    table = read(tmp_path, content, **column)
    assert (table.labels("g"), table.memberships("g", ["d"])[0].tolist()) == (labels, row)


def test_the_map_and_the_predicted_labels_of_the_page(tmp_path):
    (map,) = re.findall(r"^```yaml\ngender:\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    table = read(tmp_path, "id\tg\na\tF\nb\tmale\nc\tboth\nd\tN/A\n", **yaml.safe_load(map))
    assert table.labels("g") == ("female", "male")
    assert table.memberships("g", list("abcd")).tolist() == [[0, 1, 0], [0, 0, 1], [0, 0.5, 0.5], [1, 0, 0]]
    (line,) = re.findall(r"```json\n(.*)\n```", PAGE)
    table = read(tmp_path, line.replace('"gender"', '"g"'), predicted=True)
    np.testing.assert_allclose(table.memberships("g", ["d1"]), [[0.1, 0.7, 0.2]])


IDS = ["a", "b", "c", "nobody"]
KINDS = "id\tg\tkind\tperson\na\tx\tperson\t1\nb\t\t person \t1\nc\t\triver\t\n"
PERSON = {"column": "kind", "values": ["person"]}


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (PERSON, [True, True, False, False]),
        ({"column": "kind", "values": "river"}, [False, False, True, False]),
        ({"column": "person", "values": [1]}, [True, True, False, False]),
    ],
)
def test_a_column_says_which_documents_are_of_the_type(tmp_path, of, expected):
    table, untyped = read(tmp_path, KINDS, applies_to=of), read(tmp_path, KINDS)
    assert table.of_type("g", [*IDS, *IDS], "T1").tolist() == expected * 2
    assert table.of_type("g", []).shape == (0,)
    # b is a person without a label, c a river: two of three documents where nobody says what they are.
    assert table.missing("g") == JoinedGroups([table]).missing("g") == pytest.approx(1 / 3)
    assert untyped.missing("g") == pytest.approx(2 / 3)
    assert untyped.of_type("g", IDS) is None
    with pytest.raises(UsageError, match="no dimension 'h'; there are: g"):
        table.missing("h")


@pytest.mark.parametrize(
    ("content", "of", "line", "message"),
    [
        (KINDS, {"column": "sort"}, 1, "the type of dimension 'g': no column 'sort'; there are: id, g, kind"),
        (KINDS, {"column": "kind", "values": ["human"]}, None, "'kind' never says human"),
        ("id\tg\tkind\na\tx\t\n", {"column": "kind"}, None, "'kind' never says anything"),
    ],
)
def test_a_column_that_says_nothing_is_refused(tmp_path, content, of, line, message):
    refused(tmp_path, content, line, message, applies_to=of)


def test_probabilities_are_memberships(tmp_path):
    values = '{"f": 0.7, "m": 0.3}', '{"f": 0.25, "m": 0.25, "@UNKNOWN": 0.5}', '{"f": 0.3334, "m": 0.6661}'
    lines = zip("abcdef", (*values, '"m"', "null", "{}"), strict=True)
    table = read(tmp_path, "".join(f'{{"id": "{id}", "g": {value}}}\n' for id, value in lines), predicted=True)
    assert table.predicted == ("g",)
    np.testing.assert_allclose(
        table.memberships("g", list("abcdef")),
        [[0, 0.7, 0.3], [0.5, 0.25, 0.25], [0, 0.3334 / 0.9995, 0.6661 / 0.9995], [0, 0, 1], [1, 0, 0], [1, 0, 0]],
    )
    first = '{"id": "a", "g": {"f": 0.5, "m": 0.5}}\n'
    for value, message in (
        ('{"f": 0.7, "m": 0.2}', "g: predicted labels that do not add up: f 0.7, m 0.2 make 0.9, expected 1"),
        ('{"f": -0.5, "m": 1.5}', "the weight of 'f' is -0.5, expected a number >= 0"),
    ):
        refused(tmp_path, f'{first}{{"id": "b", "g": {value}}}\n', 2, message, predicted=True)


def test_a_saved_table_keeps_types_and_probabilities(tmp_path):
    content = '{"id": "a", "g": {"f": 0.7, "m": 0.3}, "kind": "person"}\n{"id": "b", "kind": "river"}\n'
    table = read(tmp_path, content, predicted=True, applies_to=PERSON)
    table.save(tmp_path / "table")
    loaded = GroupTable.load(tmp_path / "table")
    np.testing.assert_array_equal(loaded.memberships("g", IDS), table.memberships("g", IDS))
    loaded.save(tmp_path / "table")
    for one in (loaded, loaded.relabeled("g", ["m", "f"]), GroupTable.load(tmp_path / "table")):
        assert one.predicted == ("g",)
        assert one.of_type("g", IDS).tolist() == [True, False, False, False]


DIRTY = ["M", "male", "Male ", "female", "Female", "F", "N/A", "unknown", "prefer not to say", None] * 2


def given_rows(values: list[Any], **how: Any) -> Collection:
    rows = [{"id": f"d{place}", "text": "law", "gender": value} for place, value in enumerate(values)]
    return Collection.from_records(iter(rows), **{"groups": "gender"} | how)


@pytest.mark.parametrize("labels", ["join", {"gender": "join"}])
def test_spellings_are_joined_where_that_is_asked_for(labels: Any, caplog: pytest.LogCaptureFixture) -> None:
    collection = given_rows(DIRTY, labels=labels)
    assert collection.groups.labels("gender") == ("female", "male")
    assert collection.groups.shares("gender").tolist() == pytest.approx([0.4, 0.3, 0.3])
    assert collection.notes == ()
    collection = given_rows(DIRTY)
    assert len(collection.groups.labels("gender")) == 9
    (note,) = collection.notes
    assert note in caplog.text
    for words in ("Female, F -> female", "prefer not to say, unknown, N/A -> no label", 'labels="join"'):
        assert words in note


def test_lists_separators_columns_and_own_maps() -> None:
    lists = given_rows([["A x", "a X"], ["b", "N/A"], "a x"], labels="join")
    assert lists.groups.labels("gender") == ("a x", "b")
    split = given_rows(["ab|CD", "Cd|Cd", "AB|unknown"], groups={"sex": "gender"}, separator="|", labels="join")
    assert split.groups.labels("sex") == ("Cd", "ab")
    own = given_rows(DIRTY, groups={"gender": {"map": {"M": "m"}}}, labels="join")
    assert {"m", "Male"} < set(own.groups.labels("gender"))


WRONG: list[tuple[list[Any], dict[str, Any], type[FairAgentError], str]] = [
    (DIRTY, {"labels": {"sex": "join"}}, UsageError, "no dimension 'sex'; there are: gender"),
    (DIRTY, {"labels": {"gender": {"M": "m"}}, "groups": {"gender": {"map": {"F": "f"}}}}, UsageError, "has a `map`"),
    (["N/A", "-"], {"labels": "join"}, DataError, "leaves no label: it makes nothing of 'N/A' (1), '-' (1)"),
    (["f", 1, True], {}, DataError, "mixed types: text ('f', records:1), whole numbers (1, records:2), true or false"),
]


@pytest.mark.parametrize(("values", "how", "error", "words"), WRONG)
def test_bad_input_is_one_error(values: list[Any], how: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error) as raised:
        given_rows(values, **how)
    assert words in str(raised.value)


WORDS = ["non-binary", "non binary", "Nonbinary", "DE", "A B", "AB", "C++", "c", "18-25", "ß", "US", "U.S.", "us", "h"]
WORDS += ["female", "male", "m", "f", "w", "d", "weiblich", "divers", "NA", "N/A", "na", "none", "unknown", "-", "+"]
WORDS += ["woman", "Man", "Mujer", "?"]
VALUES = st.one_of(
    st.sampled_from(WORDS),
    st.sampled_from(WORDS).map(lambda word: f" {word.upper()}."),
    st.sampled_from(WORDS).map(str.title),
    st.text("aAfFmM.-_ 1ßſ\u0301É/", min_size=1, max_size=5),
)


def joined(values: dict[str, int], map: dict[str, tuple[str, ...]]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for value, count in values.items():
        counts.update(dict.fromkeys(map.get(value, (value,)), count))
    return dict(counts)


@given(st.dictionaries(VALUES, st.integers(1, 9), max_size=12), st.lists(VALUES, max_size=6))
def test_joined_labels_are_joined_no_further_and_known_ones_never(values: dict[str, int], known: list[str]) -> None:
    for names in ((), known):
        once = joined(values, join_spellings(values, names).map)
        assert join_spellings(once, names).map == {}
    values = dict.fromkeys(known, 1) | values
    map = join_spellings(values, known).map
    assert not map.keys() & set(known)
    assert all(len(labels) <= 1 for labels in map.values())
    # Nothing is joined to a label that is neither in the column nor known.
    assert {label for labels in map.values() for label in labels} <= values.keys() | set(known)


@pytest.mark.parametrize(
    ("values", "groups"),
    [
        ({"M": 9, "Male": 4, "Man": 2, "männlich": 1, "F": 7, "Woman": 3, "divers": 1}, ("Male", "Woman", "divers")),
        ({"w": 3, "weiblich": 2, "m": 4, "Mann": 1, "d": 1, "divers": 1}, ("weiblich", "Mann", "divers")),
        ({"M": 4, "male": 9, "Male ": 2, "MALE": 1, "Prefer-not-to-say": 1, "-": 1, "other": 2}, ("male", "other")),
        ({"H": 3, "M": 2, "Hombre": 4, "Mujer": 5}, ("Hombre", "Mujer")),
        ({"M": 3, "F": 2}, ("M", "F")),
        ({"M": 3, "Mujer": 2, "Hombre": 1}, ("M", "Mujer", "Hombre")),  # M may be masculino
        ({"female": 3, "woman": 2, "trans woman": 1}, ("female", "trans woman")),
        # What stays apart: no column of genders, signs, one and two words, Namibia, results of a test, names.
        ({"Jersey": 9, "Man": 3, "Wales": 4, "woman": 1}, ("Jersey", "Man", "Wales", "woman")),
        ({"C": 3, "C++": 2, "C#": 1}, ("C", "C++", "C#")),
        ({"AB": 3, "A B": 1}, ("AB", "A B")),
        ({"NA": 3, "DE": 2, "US": 4}, ("NA", "DE", "US")),
        ({"+": 3, "-": 2}, ("+", "-")),
        ({"Nan": 1, "Na": 2, "Ada": 2}, ("Nan", "Na", "Ada")),
    ],
)
def test_what_is_one_label(values: dict[str, int], groups: tuple[str, ...]) -> None:
    assert set(joined(values, join_spellings(values).map)) == set(groups)


def test_what_is_in_doubt_is_said() -> None:
    for values, word in (
        ({"m": 3, "male": 2, "mixed": 2}, "'M' could be short for 'male' or 'mixed'"),
        ({"NA": 3, "DE": 2, "US": 4}, "'NA' stays a label"),
        ({"none": 3, "Jewish": 2}, "'none' is taken for no label"),
    ):
        (doubt,) = join_spellings(values).doubts
        assert word in doubt
