"""Loading a collection: what makes no difference, and each fault with its file and line, all of them together."""

import dataclasses
import gzip
import re

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
    assert (dressed.topics, dressed.qrels, dressed.population) == (plain.topics, plain.qrels, plain.population)
    for name in plain.groups.dimensions:
        rows = [one.groups.memberships(name, ["d1", "d2", "d3", "d4"]).tolist() for one in (plain, dressed)]
        assert rows[0] == rows[1]


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
    for kind, shares in (
        ("population", [0.01, 0.495, 0.495]),
        ({"NB": 1.0}, [1, 0, 0]),
        ("trec", [0.005, 0.4975, 0.4975]),
        ("qrels", [0, 0.5, 0.5]),
    ):
        assert make_target(kind, "gender", collection, "T1").shares.tolist() == pytest.approx(shares)


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


def json_groups(gender: str) -> dict[str, str]:
    return {"groups.jsonl": f'{{"id": "d1", "gender": {gender}, "regions": null}}\n'}


def crossed(wanted: str) -> tuple[str, str]:
    return "population: world.json", f"population: world.json\nintersections: {wanted}"


JSON_GROUPS = ("path: groups.tsv\n", "path: groups.jsonl\n")
STANCE = ("relevant: 1", "header: true, dimensions: {stance: {}}")
KIND = ("query: title}", "query: title, group: kind}")
LABELS = ("{column: gender}", "{column: gender, labels: [female, m]}")
OF_LABELS = {"groups.tsv": "id\tgender\tregions\nd1\tm\tAsia\nd2\tmale\tAsia\n"}
TWICE = {"qrels.tsv": "t\t0\td\tr\tstance\nT1\t0\td1\t1\tpro\nT1\t0\td1\t1\tcon\n"}
MULLER = b'{"n": "T1", "title": "a"}\n{"n": "T2", "title": "M\xfcller"}\n'
# a file, its content (None: absent), the line of the fault (None: the file as a whole), words of the message
FILE_FAULTS = [
    ("docs.jsonl", None, None, "no such file"),
    ("topics.jsonl", '{"n": "T1", "title": "a"}\n{"n": "T1", "title": "b"}\n', 2, "'T1' is that of line 1"),
    ("topics.jsonl", '{"n": "", "title": "a"}\n', 1, "the topic id is empty"),
    ("topics.jsonl", '\n\n["T1", "a"]\n', 3, "expected a JSON object, got a list"),
    ("topics.jsonl", MULLER, 2, "not UTF-8 (byte 0xfc"),
    ("topics.jsonl", gzip.compress(FILES["topics.jsonl"].encode(), mtime=0)[:-20], 1, "break off"),
    ("qrels.tsv", "T1 0 d1 1\nT1 0 d1\n", 2, "3 columns, and 4 above"),
    ("qrels.tsv", "T1 Q0 d1 1 9.5 bm25\n", 1, "is this a run file?"),
    ("groups.tsv", "ID\tgender\tregions\nd1\tmale\tAsia\n", 2, "no field 'id'; did you mean 'ID'?"),
    ("groups.tsv", "id\tgender\tregions\nd1\tmale\n", 2, "expected 3 columns (id, gender, regions), got 2"),
    ("groups.tsv", "id\tgender\tregions\nd1\tmale\tAsia\nd1\tmale\tAsia\n", 3, "'d1' is that of line 2"),
    ("world.json", "[1, 2]", None, "expected dimension -> label -> share"),
    ("world.json", '{"gender": {"male": -0.5, "female": 1}}', None, "the share of 'male' is -0.5"),
    # of documents, at the end of a pass
    ("docs.jsonl", "", None, "there are no documents"),
    ("docs.jsonl", '{"id": "d1", "title": "a"}\n', 1, "no field 'text'; there are: id, title"),
    ("docs.jsonl", '{"id": "", "title": "a", "text": "b"}\n', 1, "the document id is empty"),
    ("docs.jsonl", '{"id": "a b", "title": "a", "text": "b"}\n', 1, "holds white space"),
    ("docs.jsonl", '{"id": "\\u00e9' + "x" * 254 + '", "title": "a", "text": "b"}\n', 1, "longer than 255 bytes"),
]
# what the settings say instead, other files, the file of the fault, its line, words of the message
FAULTS = [
    *((("small", "small"), {name: content}, name, line, message) for name, content, line, message in FILE_FAULTS),
    (("path: docs.jsonl", "path: 'docs/*.jsonl'"), {}, "*.jsonl", None, "no such file (documents)"),
    (LABELS, OF_LABELS, "groups.tsv", 3, "gender: 'male' is none of its labels (female, m)"),
    (JSON_GROUPS, json_groups('{"female": -1}'), "groups.jsonl", 1, "weight of 'female' is -1, expected a number >= 0"),
    (STANCE, TWICE, "qrels.tsv", 3, "judged differently"),
    (KIND, {}, "topics.jsonl", None, "no topic has a group in the field 'kind'; there are: n, title, keywords"),
    (("world.json", "{gender: {male: .4}}"), {}, "collection.yaml", None, "add up to 0.4, expected 1"),
    *(
        (crossed(wanted), {}, "collection.yaml", None, f"the intersection {message}")
        for wanted, message in (
            ("{b: [gender, age]}", "'b': no dimension 'age'; there are: gender, region"),
            ("{b: [gender]}", "'b': expected two or more different dimensions, got gender"),
            ("{gender: [gender, region]}", "'gender': this is the name of a dimension; choose another"),
            ("{b: [gender, region], c: [b, region]}", "'c': no dimension 'b'; there are: gender, region (an inters"),
        )
    ),
]


@pytest.mark.parametrize(("replacement", "files", "name", "line", "message"), FAULTS)
def test_a_fault_is_reported_with_file_and_line(write, settings, replacement, files, name, line, message):
    with pytest.raises(DataError) as error:
        list(load_collection(write({"collection.yaml": settings(replacement), **files})).documents())
    assert [(fault.path.name, fault.line) for fault in error.value.faults] == [(name, line)]
    assert message in error.value.faults[0].message
    assert re.search(rf"{re.escape(name)}{f':{line}' if line else ''}: ", str(error.value))


def test_all_faults_of_all_files_are_reported_together(write):
    files = {
        "docs.jsonl": None,
        "topics.jsonl": '{"n": "T1", "title": "a"}\nnot json\n{"n": "T1", "title": "b"}\n',
        "qrels.tsv": "T1 0 d1 1\nT1 0 d1\nT1 0 d1 x\n",
        "groups.tsv": "id\tgender\tregions\nd1\tmale\nd2\tmale\tAsia\nd2\tmale\tAsia\n",
        "world.json": '{"gender": {"male": 0.4}, "region": {"Asia": 2}}',
    }
    with pytest.raises(DataError, match=r"collection 'small' .*: 9 errors") as error:
        load_collection(write(files))
    assert [(fault.path.name, fault.line) for fault in error.value.faults] == [
        ("docs.jsonl", None),
        ("world.json", None),
        ("world.json", None),
        ("topics.jsonl", 2),
        ("topics.jsonl", 3),
        ("qrels.tsv", 2),
        ("qrels.tsv", 3),
        ("groups.tsv", 2),
        ("groups.tsv", 4),
    ]
