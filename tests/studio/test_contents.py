"""What the start page tells of a collection: documents, groups with their shares, queries to try."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from studio_server import COLLECTION, Studio, write_collection

from fairagent import Collection, load_collection
from fairagent.studio.contents import columns, contents_record, example_queries, phrases
from fairagent.types import Document


def held(studio: Studio) -> Any:
    with studio.client() as client:
        return client.get("/api/contents").json()


def test_the_shares_are_those_of_all_documents(studio: Studio) -> None:
    found = held(studio)
    assert (found["documents"], found["exact"], found["passages"]) == (24, True, False)
    (gender,) = found["dimensions"]
    assert gender["groups"] == [
        {"label": "female", "share": pytest.approx(8 / 24)},
        {"label": "male", "share": pytest.approx(16 / 24)},
    ]
    assert gender["unknown"] == pytest.approx(0)
    assert found["examples"] == [{"query": "lawyer", "topic": "T1"}]
    assert found["columns"] == [{"name": "gender", "values": ["female", "male"]}]


def test_documents_without_a_row_or_a_label_have_none(tmp_path: Path) -> None:
    folder = write_collection(tmp_path / "some")
    rows = (folder / "groups.tsv").read_text(encoding="utf-8").splitlines()
    # Of 24 documents 18 have a row, of these 6 an empty cell.
    some = [*rows[:13], *(row.split("\t")[0] + "\t" for row in rows[13:19])]
    (folder / "groups.tsv").write_text("\n".join(some) + "\n", encoding="utf-8")
    collection = load_collection(folder / "collection.yaml")
    (gender,) = contents_record(collection, folder / "index")["dimensions"]
    assert [group["share"] for group in gender["groups"]] == pytest.approx([0, 12 / 24])
    assert gender["unknown"] == pytest.approx(12 / 24)


def test_without_an_index_it_is_about_so_many(tmp_path: Path) -> None:
    folder = write_collection(tmp_path / "some")
    found = contents_record(load_collection(folder / "collection.yaml"), tmp_path / "nowhere")
    assert not found["exact"]
    assert found["documents"] > 0


def test_columns_have_the_values_that_documents_have() -> None:
    rows = [
        {"id": n, "text": "x", "city": "Oslo" if n else "Rome", "no": n, "tags": ["a", "b"], "of": {}}
        for n in range(99)
    ]
    assert columns(Collection.from_records(rows)) == [
        {"name": "city", "values": ["Oslo", "Rome"]},
        {"name": "no", "values": []},
        {"name": "tags", "values": ["a", "b"]},
    ]


def texts(rows: Sequence[str]) -> list[Document]:
    return [Document(f"d{number}", row, title=f"Title {number}") for number, row in enumerate(rows)]


def test_examples_are_phrases_of_the_documents() -> None:
    rows = [f"report {n} about the solar panel and more" for n in range(3)] + [
        f"an early tide mill, {n}" for n in range(2)
    ]
    rows += [f"nothing of it {n}, report" for n in range(30)]
    # "report" is in most of them, "about the" is of a stop word.
    assert list(phrases(texts(rows)))[:2] == ["solar panel", "early tide"]


def test_titles_stand_in_where_nothing_is_shared() -> None:
    assert list(phrases(texts(["alpha", "beta"]))) == ["Title 0", "Title 1"]
    assert list(phrases([])) == []


def test_a_collection_without_topics_has_examples_of_its_own_that_find_something(tmp_path: Path) -> None:
    folder = write_collection(tmp_path / "some")
    collection = replace(load_collection(folder / "collection.yaml"), topics={})
    examples = example_queries(collection)
    assert len(examples) == 3
    said = " ".join(f"{one.title} {one.text}".lower() for one in collection.documents())
    assert all(word in said for one in examples for word in one["query"].lower().split())
    assert {one["topic"] for one in examples} == {""}


def test_documents_that_cannot_be_read_give_no_examples(tmp_path: Path) -> None:
    folder = write_collection(tmp_path / "some")
    collection: Collection = replace(load_collection(folder / "collection.yaml"), topics={})
    (folder / "docs.jsonl").unlink()
    assert example_queries(collection) == []


def test_no_dimension_is_no_fault(tmp_path: Path) -> None:
    folder = write_collection(tmp_path / "some")
    (folder / "collection.yaml").write_text(COLLECTION.partition("groups:")[0], encoding="utf-8")
    found = contents_record(load_collection(folder / "collection.yaml"), folder / "index")
    assert found["dimensions"] == []
    assert found["documents"] == 24
