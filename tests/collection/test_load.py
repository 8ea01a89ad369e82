from __future__ import annotations

import dataclasses
import gzip

import numpy as np
import pytest

from fairagent.collection import load_collection, make_target
from fairagent.errors import DataError, SettingsError
from fairagent.types import Document

from .conftest import FILES


def test_the_small_collection(write):
    collection = load_collection(str(write()))
    assert collection.name == "small"
    assert [(topic.id, topic.query) for topic in collection.topics.values()] == [("T1", "one or two"), ("T2", "three")]
    assert collection.topics["T1"].extra == {"keywords": "first second"}
    assert collection.qrels == {"T1": {"d1": 1, "d2": 2, "d4": 0}, "T2": {"d3": 1}}
    assert collection.groups.dimensions == ("gender", "region")
    assert collection.groups.labels("region") == ("Africa", "Asia", "Europe")
    np.testing.assert_allclose(
        collection.groups.memberships("region", ["d1", "d3", "d4"]), [[0, 0, 0.5, 0.5], [1, 0, 0, 0], [0, 1, 0, 0]]
    )
    assert collection.population["gender"] == {"female": 0.5, "male": 0.5}
    assert collection.notes == ()
    documents = list(collection.documents())
    assert documents[0] == Document("d1", "first text", "One", {"year": 1901})
    assert [document.id for document in documents] == ["d1", "d2", "d3", "d4"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        collection.name = "other"


def test_byte_order_mark_crlf_gzip_and_blank_lines_make_no_difference(write, settings):
    plain = load_collection(write())
    files: dict[str, bytes] = {}
    for name, text in FILES.items():
        if not name.endswith(".yaml"):
            raw = b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode() + b"\r\n\r\n"
            files[name] = gzip.compress(raw, mtime=0) if name in ("docs.jsonl", "groups.tsv", "qrels.tsv") else raw
    dressed = load_collection(write(files))
    assert list(dressed.documents()) == list(plain.documents())
    assert dressed.topics == plain.topics
    assert dressed.qrels == plain.qrels
    assert dressed.population == plain.population
    for dimension in plain.groups.dimensions:
        assert dressed.groups.labels(dimension) == plain.groups.labels(dimension)
        ids = ["d1", "d2", "d3", "d4"]
        np.testing.assert_array_equal(
            dressed.groups.memberships(dimension, ids), plain.groups.memberships(dimension, ids)
        )


def test_judgments_may_be_missing(write, settings):
    text = settings(("qrels: {path: qrels.tsv, format: trec, relevant: 1}", ""))
    collection = load_collection(write({"collection.yaml": text, "qrels.tsv": None}))
    assert list(collection.topics) == ["T1", "T2"]
    assert collection.qrels == {}
    assert collection.notes == ("there are no judgments: exposure can be measured, relevance cannot",)
    assert make_target("population", "gender", collection, "T1").shares.tolist() == [0.5, 0.5]
    with pytest.raises(DataError, match="topic 'T1': no relevant document has a label of 'gender'"):
        make_target("qrels", "gender", collection, "T1")


def test_a_group_only_in_the_population_gets_a_column_and_a_note(write):
    world = '{"gender": {"NB": 0.01, "female": 0.495, "male": 0.495}, "region": {"Asia": 1.0}}'
    collection = load_collection(write({"world.json": world}))
    assert collection.groups.labels("gender") == ("NB", "female", "male")
    np.testing.assert_array_equal(
        collection.groups.memberships("gender", ["d1", "d2", "d3"]), [[0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0]]
    )
    np.testing.assert_array_equal(collection.groups.shares("gender"), [0.25, 0, 0.25, 0.5])
    assert collection.notes == (
        "no document is in these groups of 'gender': NB",
        "no share is given for these groups of 'region', so 0: Africa, Europe",
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("id: id, title", "id: '{id.x}', title", "no template of plain {field} names"),
        ("{column: gender}", "{column: gender, labels: ['@UNKNOWN']}", "labels must be distinct"),
        ("topics: {path: topics.jsonl, id: n, query: title}", "", "`qrels` need `topics`"),
        ("relevant: 1", "header: true, dimensions: {gender: {}}", "dimension defined twice: gender"),
    ],
)
def test_a_wrong_setting_is_named(write, settings, old, new, message):
    text = settings((old, new)).replace("format: trec, header: true, format", "header: true, format")
    with pytest.raises(SettingsError) as error:
        load_collection(write({"collection.yaml": text}))
    assert message in str(error.value)
    assert "collection.yaml" in str(error.value)
