"""What `fairagent init` sees in files: columns, encodings, topics; and the collection file that says so."""

import bz2
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairagent.collection import load_collection
from fairagent.collection.labels import label_notes
from fairagent.collection.look import Look, guessed_encoding, look_at
from fairagent.collection.qrels import has_topics, topic_records
from fairagent.collection.records import Faults
from fairagent.errors import UsageError


def rows(n: int = 40) -> list[dict[str, Any]]:
    return [
        {
            "doc_id": f"p{at}",
            "Name": f"Person {at}",
            "body": f"The text about person {at}, which is longer than a title.",
            "gender": ("female", "male", "", "male")[at % 4],
            "regions": ("Asia|Europe", "Africa", "Europe|Africa", "Asia")[at % 4],
            "tags": [["x", "y"], ["y"]][at % 2],
            "woman": at % 2 == 0,
            **{"year": 1900 + at % 5, "city": f"city {at % 35}", "empty": "", "price": at * 1.5},
        }
        for at in range(n)
    ]


def look(folder: Path, records: list[dict[str, Any]], **named: Any) -> Look:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in records), encoding="utf-8")
    return look_at(path, **named)


def test_columns_are_told_by_names_and_values(tmp_path: Path) -> None:
    found = look(tmp_path, rows())
    assert (found.id, found.text, found.title, found.rows, found.whole) == ("doc_id", ("body",), "Name", 40, True)
    # No years, no 35 cities, nothing empty.
    assert {name: found.labels_of(name) for name in found.groups} == {
        "gender": "male 20, female 10, (unknown) 10",
        "regions": "Asia 20, Europe 20, Africa 20",
        "tags": "y 40, x 20",
        "woman": "true 20, false 20",
    }


@pytest.mark.parametrize(
    ("ids", "chosen", "bad"),
    [
        ({"Object Number": lambda n: f"1990.{n}" if n else ""}, "Object Number", 1),
        ({"objectID": lambda n: n if n > 1 else 5}, "objectID", 2),
        ({"user_id": lambda n: n // 2, "id": lambda n: f"a {n}" if n % 20 else None}, "id", 200),
        ({"signature": lambda n: f"KS-{n}/b"}, "signature", 0),
        (
            {"views": lambda n: 17 * n, "seen": lambda n: f"2024-01-{n:02}T10:00", "width": lambda n: f"{n}.5 cm"},
            "@content",
            0,
        ),
        ({"id": lambda n: f" {n // 2}" if n == 3 else str(n)}, "id", 1),
    ],
)
def test_the_column_that_identifies_nearly_all_rows_has_the_ids(
    tmp_path: Path, ids: dict[str, Any], chosen: str, bad: int
) -> None:
    made = [{name: value(n) for name, value in ids.items()} | {"text": f"A text about {n}."} for n in range(200)]
    found = look(tmp_path, made)
    assert (found.id, len(found.mended)) == (chosen, bad)


def test_a_column_of_many_labels_joins_the_rare_ones(tmp_path: Path) -> None:
    """And none of the others that have as many values."""
    counts = {f"Country {n}": max(1, 900 // (n + 1) ** 2) for n in range(58)} | {"Other": 3}
    labels = [label for label, count in counts.items() for _ in range(count)]
    others = {
        "date": lambda n: f"{n % 28 + 1}.{n % 12 + 1}.1990",
        "decade": lambda n: f"c. {1800 + n % 150}",
        "height": lambda n: f"{n % 90},5 cm",
        "rating": lambda n: f"{n % 9 / 2}",
        "artist_id": lambda n: n % 150,
        "shelf": lambda n: f"A{n % 90}",
        "even": lambda n: f"word {n % 100}",
    }
    made = [
        {"id": n, "text": f"A text about {n}.", "born in": label, **{name: of(n) for name, of in others.items()}}
        for n, label in enumerate(labels)
    ]
    found, output = look(tmp_path, made), tmp_path / "collection.yaml"
    assert found.groups == ("born in",)
    kept = found.columns["born in"].labels.chosen
    assert list(kept) == [f"Country {n}" for n in range(7)]  # 900 / 49 = 18 of 1,483 rows; the next has less than 1 %
    assert found.columns["born in"].labels.rest == "Other"
    assert all(words in found.notes()[0] for words in ("59 values", "12.5% instead of 1.7%"))
    output.write_text(found.file(output), encoding="utf-8")
    groups = load_collection(output).groups
    assert groups.labels("born in") == (*kept, "Other")
    rest = sum(count for label, count in counts.items() if label not in kept)
    assert groups.shares("born in")[-1] == pytest.approx(rest / len(labels))


DIRTY = (
    ["M"] * 3 + ["male"] * 9 + ["Male "] * 2 + ["Female"] * 7 + ["F"] * 2 + ["N/A"] * 4 + ["  ", "prefer not to say"]
)


def dirty() -> list[dict[str, Any]]:
    regions = ("Asia|Europe", "asia", "EUROPE", "n/a|Africa", "unknown")
    return [
        {"id": f"d{place}", "text": f"A text about {place}.", "gender": label, "region": regions[place % 5]}
        for place, label in enumerate(DIRTY)
    ]


def test_spellings_are_joined_by_a_map_with_their_numbers_of_rows(tmp_path: Path) -> None:
    found, output = look(tmp_path, dirty()), tmp_path / "collection.yaml"
    assert found.groups == ("gender", "region")
    assert found.labels_of("gender") == "male 14, Female 9, (unknown) 6"
    assert found.labels_of("region") == "asia 12, Europe 12, Africa 6, (unknown) 5"
    output.write_text(found.file(output), encoding="utf-8")
    lines = [line.strip() for line in output.read_text(encoding="utf-8").splitlines()]
    assert {"M: male  # 3", "Male: male  # 2", "F: Female  # 2", "N/A: []  # 4", "EUROPE: Europe  # 6"} <= set(lines)
    collection = load_collection(output)
    assert collection.groups.labels("gender") == ("Female", "male")
    assert collection.groups.shares("gender").tolist() == pytest.approx([6 / 29, 9 / 29, 14 / 29])
    assert collection.groups.labels("region") == ("Africa", "Europe", "asia")
    assert label_notes(collection.groups, "joined") == []
    (gender, region) = found.notes()
    assert gender.endswith("Male, M -> male; F -> Female; N/A, prefer not to say -> no label")
    assert "Asia -> asia; EUROPE -> Europe" in region


def test_a_label_cannot_write_into_the_file(tmp_path: Path) -> None:
    hostile = ("a\nname: b", "A\nname: b", "c # d", "C # D", "e: [f", "*g", "*G", "map-0", "\u2028h", "\u2028H")
    records = [row | {"gender": hostile[place % 10]} for place, row in enumerate(rows())]
    output = tmp_path / "collection.yaml"
    text = look(tmp_path, records, groups=["gender"]).file(output)
    assert [line for line in text.splitlines() if line.startswith("name:")] == ["name: rows"]
    output.write_text(text, encoding="utf-8")
    assert len(load_collection(output).groups.labels("gender")) == 6


WORDS = "id,text,group\n1,Der Zug fährt über die Brücke,süd\n2,“Ça va” – 5 €,nord\n"
FORMS = """
<top>
<num> Number: 301
<title> International Organized Crime

<desc> Description:
Identify organizations that participate in
international criminal activity.

<narr> Narrative:
A relevant document must say so.
</top>

<top>
<head> Tipster Topic Description
<num> Number:  051
<dom> Domain:  International Economics
<title> Topic:  Airbus &amp; Subsidies
<desc> Description:
Document will discuss.
</top>
<top><num>9</num><title></title><desc>A description alone</desc></top>
"""
XML = """<?xml version="1.0"?>
<topics task="x"><topic number="1"><query>virus origin</query><question>Where from?</question></topic>
<topic number="2" type="faceted"><query>q two</query><subtopic number="1">not this</subtopic></topic></topics>"""


SMART = ".I 1\n.W\nwhat laws\n?\n.I 007\n.T\nA title\n.A\nSomebody\n"


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize(
    ("content", "found"),
    [
        (WORDS.encode(), ()),
        (WORDS.encode("utf-16"), ("utf-16",)),
        (WORDS.encode("utf-16-le"), ("utf-16-le",)),
        (WORDS.encode("cp1252"), ("utf-8", "cp1252", "latin-1")),
        (WORDS.encode() * 3 + WORDS.encode("cp1252"), ("utf-8", "cp1252", "latin-1")),
    ],
)
def test_encodings_are_guessed(
    tmp_path: Path, content: bytes, found: tuple[str, ...], pack: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "words.csv"
    path.write_bytes(pack(content))
    assert guessed_encoding(path) == found
    path.write_bytes(pack("Привет, мир".encode("koi8-r")))
    with pytest.raises(UsageError, match="--encoding"):
        guessed_encoding(path)


def test_topics_in_several_forms(tmp_path: Path) -> None:
    first, second, third = topics_of(tmp_path, FORMS)
    assert first == {
        "id": "301",
        "query": "International Organized Crime",
        "description": "Identify organizations that participate in international criminal activity.",
        "narrative": "A relevant document must say so.",
    }
    assert (second["id"], second["query"]) == ("051", "Airbus & Subsidies")
    assert (third["id"], third["query"]) == ("9", "A description alone")
    assert topics_of(tmp_path, XML, "utf-16") == [
        {"id": "1", "query": "virus origin", "description": "Where from?"},
        {"id": "2", "query": "q two"},
    ]
    assert topics_of(tmp_path, SMART) == [{"id": "1", "query": "what laws ?"}, {"id": "007", "query": "A title"}]
    for other in ("<DOC>", '{"id": 1}', '{"text": "<topic> is a tag"}', ".Index 1"):
        (tmp_path / "topics").write_text(other, encoding="utf-8")
        assert not has_topics(tmp_path / "topics")


def topics_of(folder: Path, text: str, encoding: str = "utf-8") -> list[dict[str, str]]:
    path, faults = folder / "topics", Faults()
    path.write_bytes(bz2.compress(text.encode(encoding)))
    assert has_topics(path, [encoding])
    found = [record for _, record in topic_records(path, faults, [encoding])]
    faults.check("topics")
    return found
