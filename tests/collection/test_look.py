"""What `fairagent init` sees in a file: which column is what, and the collection file that says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairagent.collection import load_collection
from fairagent.collection.look import MOST_ROWS, Look, look_at
from fairagent.errors import DataError, SettingsError, UsageError


def rows(n: int = 40) -> list[dict[str, Any]]:
    return [
        {
            "doc_id": f"p{place}",
            "Name": f"Person {place}",
            "body": f"The text about person {place}, which is longer than a title.",
            "gender": ("female", "male", "", "male")[place % 4],
            "regions": ("Asia|Europe", "Africa", "Europe|Africa", "Asia")[place % 4],
            "tags": [["x", "y"], ["y"]][place % 2],
            "woman": place % 2 == 0,
            "year": 1900 + place % 5,
            "city": f"city {place % 35}",
            "empty": "",
            "price": place * 1.5,
        }
        for place in range(n)
    ]


def look(folder: Path, records: list[dict[str, Any]], **named: Any) -> Look:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in records), encoding="utf-8")
    return look_at(path, **named)


def test_columns_are_told_by_names_and_values(tmp_path: Path) -> None:
    found = look(tmp_path, rows())
    assert (found.id, found.text, found.title) == ("doc_id", ("body",), "Name")
    assert found.groups == ("gender", "regions", "tags", "woman")  # no years, no 35 cities, nothing empty
    assert (found.rows, found.whole) == (40, True)
    assert found.labels_of("gender") == "male 20, female 10, (unknown) 10"
    assert found.labels_of("regions") == "Asia 20, Europe 20, Africa 20"
    assert found.labels_of("tags") == "y 40, x 20"
    assert found.labels_of("woman") == "true 20, false 20"


def test_the_file_says_what_was_seen_and_can_be_loaded(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    output = tmp_path / "elsewhere" / "collection.yaml"
    output.write_text(look(tmp_path, rows()).file(output), encoding="utf-8")
    assert "# gender: male 20, female 10, (unknown) 10\n" in output.read_text(encoding="utf-8")
    collection = load_collection(output)
    assert collection.name == "rows"
    assert collection.groups.labels("regions") == ("Africa", "Asia", "Europe")
    assert collection.groups.memberships("regions", ["p0"]).tolist() == [[0, 0, 0.5, 0.5]]
    assert collection.groups.labels("woman") == ("false", "true")
    assert next(iter(collection.documents())).title == "Person 0"


def test_what_is_named_is_taken(tmp_path: Path) -> None:
    found = look(tmp_path, rows(), id="Name", text=["body", "city"], title="doc_id", groups=["year"])
    assert (found.id, found.text, found.title, found.groups) == ("Name", ("body", "city"), "doc_id", ("year",))


@pytest.mark.parametrize("change", [{"doc_id": "p1"}, {"doc_id": ""}, {"doc_id": "a b"}, {"doc_id": None}])
def test_ids_that_are_none_are_numbers_of_rows(tmp_path: Path, change: dict[str, Any]) -> None:
    records = rows()
    records[7] |= change
    found = look(tmp_path, records)
    assert found.id == "@row"
    output = tmp_path / "collection.yaml"
    output.write_text(found.file(output), encoding="utf-8")
    assert [one.id for one in load_collection(output).documents()][:2] == ["1", "2"]


def test_ids_that_some_rows_lack_are_none(tmp_path: Path) -> None:
    records = rows()
    del records[3]["doc_id"]
    assert look(tmp_path, records).id == "@row"


def test_the_text_is_the_longest_where_no_column_is_named_so(tmp_path: Path) -> None:
    records = [{"short": f"a {place}", "story": f"a long story, {place}"} for place in range(5)]
    found = look(tmp_path, records)
    assert (found.text, found.title, found.groups) == (("story",), None, ())
    assert "groups:" not in found.file(tmp_path / "collection.yaml")


def test_a_label_cannot_write_into_the_file(tmp_path: Path) -> None:
    records = [row | {"gender": "a\nname: b" if row["gender"] else "c"} for row in rows()]
    text = look(tmp_path, records, groups=["gender"]).file(tmp_path / "collection.yaml")
    assert [line for line in text.splitlines() if line.startswith("name:")] == ["name: rows"]


def test_a_name_that_no_folder_can_have(tmp_path: Path) -> None:
    path = tmp_path / "my rows, (new) ü.csv"
    path.write_text("text\nsome words\n", encoding="utf-8")
    output = tmp_path / "collection.yaml"
    output.write_text(look_at(path).file(output), encoding="utf-8")
    assert load_collection(output).name == "my-rows-new-ü"


def test_a_part_of_a_long_file_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairagent.collection.look.MOST_ROWS", 10)
    found = look(tmp_path, rows())
    assert (found.rows, found.whole) == (10, False)
    assert "from the first 10 rows of rows.jsonl" in found.file(tmp_path / "collection.yaml")
    assert MOST_ROWS == 200_000


@pytest.mark.parametrize(
    ("named", "error", "said"),
    [
        ({"text": ["txt"]}, UsageError, "no column 'txt'; there are: doc_id, Name, body"),
        ({"groups": ["gendr"]}, UsageError, "no column 'gendr'; there are: doc_id"),
        ({"format": "xlsx"}, SettingsError, "format"),
        ({"format": "csv"}, DataError, "rows.jsonl:"),
    ],
)
def test_what_cannot_be_is_said(tmp_path: Path, named: dict[str, Any], error: Any, said: str) -> None:
    with pytest.raises(error) as raised:
        look(tmp_path, rows(), **named)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("content", "error", "said"),
    [
        ("", DataError, "there are no rows"),
        ("a,b\n1,2,3\n", DataError, "rows.csv:2: expected 2 columns (a, b), found 3"),
        ("a,b\n1,2\n", UsageError, "no column holds text; there are: a, b; name one with --text"),
    ],
)
def test_files_that_hold_no_documents(tmp_path: Path, content: str, error: Any, said: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(error) as raised:
        look_at(path)
    assert said in str(raised.value)
