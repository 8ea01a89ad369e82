"""The real track as a collection, from its files."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from track_files import FILES_2021, FILES_2022, PAGES, write_track

from fairagent.collection import Collection, make_target
from fairagent.collection.trec_fair import metadata as groups_module
from fairagent.collection.trec_fair import read_metadata
from fairagent.collection.trec_fair.metadata import track_groups
from fairagent.collection.trec_fair.track import load_track
from fairagent.errors import DataError
from fairagent.measures.trec_fair import DIMENSIONS_2022
from fairagent.storage.digests import RECORD
from fairagent.types import UNKNOWN


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_track(tmp_path / "track")


def labels_of(collection: Collection, dimension: str, id: str) -> dict[str, float]:
    labels = (UNKNOWN, *collection.groups.labels(dimension))
    row = collection.groups.memberships(dimension, [id])[0].tolist()
    return {label: weight for label, weight in zip(labels, row, strict=True) if weight}


def test_the_year_2022(folder: Path) -> None:
    collection = load_track(folder)
    assert collection.name == "trec-fair-2022-eval"
    assert [document.id for document in collection.documents()] == ["12", "7", "70000001"]
    assert {id: topic.query for id, topic in collection.topics.items()} == {"101": "Computing", "102": "Islands"}
    assert collection.topics["101"].extra["keywords"] == ["programs", "wrote"]
    assert {topic: dict(judged) for topic, judged in collection.qrels.items()} == {
        "101": {"12": 1, "99": 1, "70000001": 1},
        "102": {"7": 1},
    }
    assert collection.groups.dimensions == ("sub-geo", "gender")
    assert collection.groups.labels("gender") == ("female", "male", "NB")
    assert len(collection.groups.labels("sub-geo")) == 20
    # The track's alignments: two genders weigh 1 each, regions are divided by their number, Oceania is one.
    assert labels_of(collection, "gender", "12") == {"female": 1.0, "male": 1.0}
    assert labels_of(collection, "gender", "70000001") == {"NB": 1.0}
    assert labels_of(collection, "sub-geo", "12") == {"Northern Europe": 0.5, "Southern Asia": 0.5}
    assert labels_of(collection, "sub-geo", "7") == pytest.approx({"Oceania": 2 / 3, "Caribbean": 1 / 3})
    assert labels_of(collection, "sub-geo", "99") == {UNKNOWN: 1.0}
    # The track does not say which pages are about people.
    assert [collection.groups.of_type(name, ["12", "7"]) for name in ("sub-geo", "gender")] == [None, None]
    assert collection.population["gender"] == {"female": 0.495, "male": 0.495, "NB": 0.01}
    assert collection.population.keys() == {"sub-geo", "gender"}
    notes = "\n".join(collection.notes)
    assert "relevant pages that are listed again" in notes
    assert "Atlantis" in notes
    assert len(collection.notes) == 3


def test_the_year_2021(tmp_path: Path) -> None:
    collection = load_track(write_track(tmp_path, FILES_2021), 2021)
    topic = collection.topics["101"]
    assert topic.query == "Computing"
    assert topic.extra["keywords"] == ["programs", "wrote"]
    assert set(topic.extra) == {"keywords", "scope", "homepage"}
    # 2021 does not divide by the number of continents.
    assert labels_of(collection, "geo", "12") == {"Europe": 1.0, "Asia": 1.0}
    assert labels_of(collection, "gender", "12") == {"female": 1.0}
    assert make_target("trec", "geo", collection, "101").shares.sum() == pytest.approx(1, abs=1e-6)
    assert len(list(collection.documents())) == 3


BAD = [
    ("trec_2022_articles_discrete_assessed.json.gz", {"page_id": "12"}, "field 'page_id' is '12'"),
    ("trec_2022_eval_reldocs.jsonl", {"id": 5, "title": 5.5, "rel_docs": []}, "field 'title' is 5.5"),
    ("trec_2022_eval_reldocs.jsonl", {"id": 101, "title": "x", "rel_docs": []}, "topic 101 is that of line 1 already"),
]


@pytest.mark.parametrize(("name", "record", "message"), BAD, ids=range(len(BAD)))
def test_faults_are_named_with_file_and_line(tmp_path: Path, name: str, record: object, message: str) -> None:
    records = [*FILES_2022[name], record]
    folder = write_track(tmp_path, changed={name: records})
    with pytest.raises(DataError, match=message) as error:
        load_track(folder)
    assert [(fault.path, fault.line) for fault in error.value.faults] == [(folder / name, len(records))]


def test_groups_are_the_official_alignments(golden: Path, tmp_path: Path) -> None:
    articles = Path(shutil.copy(golden / "trec_fair" / "raw8" / "articles.jsonl", tmp_path))
    table, notes = track_groups(articles, 2022, [dimension.name for dimension in DIMENSIONS_2022])
    pages = read_metadata(articles).pages
    assert (len(table), notes) == (len(pages), ())
    for dimension in DIMENSIONS_2022:
        ours = table.memberships(dimension.name, [str(id) for id in pages.ids])
        known = ours if dimension.labels[0] == UNKNOWN else ours[:, 1:]
        # The table has counts as 32-bit floats only where they are the same.
        assert np.array_equal(known, pages.matrix(dimension.name)), dimension.name


def test_groups_are_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_track(folder)
    read, reads = groups_module.json_records, list[Path]()

    def reading(path: Path, faults: Any) -> Any:
        reads.extend([path] * ("articles" in path.name))
        return read(path, faults)

    monkeypatch.setattr(groups_module, "json_records", reading)
    second = load_track(folder)
    assert (reads, second.notes) == ([], first.notes)
    ids = ["12", "7", "70000001", "99"]
    for dimension in first.groups.dimensions:
        assert np.array_equal(first.groups.memberships(dimension, ids), second.groups.memberships(dimension, ids))
    load_track(folder, dimensions=["gender"])
    write_track(folder, {"trec_2022_articles_discrete_assessed.json.gz": PAGES[:2]})
    assert labels_of(load_track(folder), "gender", "70000001") == {UNKNOWN: 1.0}
    assert len(reads) == 2


@pytest.mark.parametrize("name", ["notes.json", RECORD])
def test_damaged_groups_are_read_anew(folder: Path, name: str) -> None:
    load_track(folder)
    (cached,) = folder.rglob(name)
    before = cached.read_text()
    cached.write_text("[]")
    assert labels_of(load_track(folder), "gender", "70000001") == {"NB": 1.0}
    assert cached.read_text() == before
