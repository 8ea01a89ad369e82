from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairagent.collection.trec_fair import read_metadata
from fairagent.errors import DataError

PAGE: dict[str, Any] = {
    "page_id": 12,
    "qual_cat": "C",
    "page_subcont_regions": ["Caribbean"],
    "source_subcont_regions": {"UNK": 1, "Polynesia": 3},
    "gender": ["female"],
    "occupations": ["chemist", "jurist"],
    "first_letter_category": "a-d",
    "creation_date_category": "2001-2006",
    "relative_pageviews_category": "Low",
    "num_sitelinks_category": "English only",
    "title": "is not read",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "articles.jsonl"


def write(path: Path, *records: Any) -> Path:
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def without(field: str) -> dict[str, Any]:
    return {name: value for name, value in PAGE.items() if name != field}


def test_a_page_has_a_row_in_all_eight_dimensions(path: Path) -> None:
    metadata = read_metadata(write(path, PAGE))
    assert (metadata.pages.ids.tolist(), metadata.pages.quality.tolist(), metadata.notes) == ([12], [2], ())
    for name, row in {
        "sub-geo": {"Caribbean": 1.0},
        "src-geo": {"@UNKNOWN": 0.25, "Oceania": 0.75},
        "gender": {"female": 1.0},
        "occ": {"chemist": 0.5, "jurist": 0.5},
        "alpha": {"a-d": 1.0},
        "age": {"2001-2006": 1.0},
        "pop": {"Low": 1.0},
        "langs": {"English only": 1.0},
    }.items():
        labels, weights = metadata.pages.dimension(name).labels, metadata.pages.matrix(name)[0].tolist()
        assert {label: weight for label, weight in zip(labels, weights, strict=True) if weight} == row


def test_the_first_line_of_a_page_wins_and_the_others_are_counted(path: Path) -> None:
    other = PAGE | {"gender": ["male"], "qual_cat": "FA"}
    metadata = read_metadata(write(path, PAGE | {"page_id": 99}, PAGE, other, other))
    assert metadata.pages.ids.tolist() == [12, 99]
    assert metadata.pages.quality.tolist() == [2, 2]
    assert metadata.pages.matrix("gender")[0].tolist() == [0.0, 1.0, 0.0, 0.0]
    assert metadata.notes == ("lines that repeat a page, whose first line counts: 2",)


def test_missing_fields_are_counted_and_named(path: Path) -> None:
    records = [without(field) | {"page_id": number} for number, field in enumerate(PAGE) if number]
    metadata = read_metadata(
        write(path, *records, PAGE | {"page_id": 90, "first_letter_category": None, "gender": None})
    )
    assert set(metadata.notes) == {
        f"pages without {field!r}: {1 + (field == 'first_letter_category')}"
        for field in PAGE
        if field not in ("page_id", "title")
    }
    assert metadata.pages.quality[0] == -1  # no qual_cat
    assert metadata.pages.matrix("occ")[4].tolist()[0] == 1.0  # unknown
    assert not metadata.pages.matrix("alpha")[5].any()  # a dimension without an unknown: no weight
    assert metadata.pages.matrix("gender")[-1].tolist()[0] == 1.0  # null is an empty list


def test_labels_that_are_none_are_counted_and_named(path: Path) -> None:
    metadata = read_metadata(
        write(
            path,
            PAGE | {"page_subcont_regions": ["Atlantis", "Caribbean"]},
            PAGE | {"page_id": 13, "page_subcont_regions": ["Atlantis"], "occupations": ["alchemist"]},
            PAGE | {"page_id": 14, "relative_pageviews_category": "Huge", "qual_cat": "Superb"},
        )
    )
    assert metadata.notes == tuple(
        f"values of {field!r} that are no label and count for nothing: {label!r} ({count})"
        for field, label, count in (
            ("page_subcont_regions", "Atlantis", 2),
            ("occupations", "alchemist", 1),
            ("relative_pageviews_category", "Huge", 1),
            ("qual_cat", "Superb", 1),
        )
    )
    regions = metadata.pages.matrix("sub-geo")
    assert (regions[0].max(), regions[1][0]) == (1.0, 1.0)
    assert not metadata.pages.matrix("pop")[2].any()
    assert metadata.pages.quality.tolist() == [2, 2, -1]


def test_every_fault_is_named_with_its_line(path: Path) -> None:
    no_ids = [PAGE | {"page_id": id} for id in ("13", -1, 2**31, True)]
    fields = {"gender": "male"}, {"source_subcont_regions": {"Caribbean": "x"}}, {"qual_cat": 3}
    wrong = [PAGE | {"page_id": id} | field for id, field in enumerate(fields, start=20)]
    write(path, PAGE, "{not json", without("page_id"), *no_ids, *wrong, "[1]")
    with pytest.raises(DataError, match="TREC Fair 2022 metadata: 10 errors") as caught:
        read_metadata(path)
    messages = {fault.line: fault.message for fault in caught.value.faults}
    assert list(messages) == list(range(2, 12))
    assert "not JSON" in messages[2]
    assert messages[3] == "field 'page_id' is None, expected a whole number from 0 to 2147483647"
    assert "'13'" in messages[4]
    assert "page 20, field 'gender': expected a list of labels" in messages[8]
    assert "page 21, field 'source_subcont_regions': the count of 'Caribbean' is 'x'" in messages[9]
    assert messages[10] == "page 22, field 'qual_cat': expected a quality class, got 3"
