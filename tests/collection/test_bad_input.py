"""One table of bad files: each fault is reported with its file and line, and all of them together."""

from __future__ import annotations

import gzip
import re

import pytest

from fairagent.collection import load_collection
from fairagent.errors import DataError

from .conftest import FILES

# file, its content (None: absent), line of the fault (None: the file as a whole), words of the message
FILE_FAULTS = [
    ("docs.jsonl", None, None, "no such file"),
    ("topics.jsonl", '{"n": "T1", "title": "a"}\n{"n": "T1", "title": "b"}\n', 2, "'T1' is that of line 1"),
    ("topics.jsonl", '{"n": "", "title": "a"}\n', 1, "the topic id is empty"),
    ("topics.jsonl", '\n\n["T1", "a"]\n', 3, "expected a JSON object, got a list"),
    ("topics.jsonl", b'{"n": "T1", "title": "a"}\n{"n": "T2", "title": "M\xfcller"}\n', 2, "not UTF-8 (byte 0xfc"),
    ("topics.jsonl", gzip.compress(FILES["topics.jsonl"].encode(), mtime=0)[:-20], 1, "break off"),
    ("qrels.tsv", "T1 0 d1 1\nT1 0 d1\n", 2, "3 columns, and 4 above"),
    ("qrels.tsv", "T1 Q0 d1 1 9.5 bm25\n", 1, "is this a run file?"),
    ("groups.tsv", "ID\tgender\tregions\nd1\tmale\tAsia\n", 2, "no field 'id'; did you mean 'ID'?"),
    ("groups.tsv", "id\tgender\tregions\nd1\tmale\n", 2, "expected 3 columns (id, gender, regions), got 2"),
    ("groups.tsv", "id\tgender\tregions\nd1\tmale\tAsia\nd1\tmale\tAsia\n", 3, "'d1' is that of line 2"),
    ("world.json", "[1, 2]", None, "expected dimension -> label -> share"),
    ("world.json", '{"gender": {"male": -0.5, "female": 1}}', None, "the share of 'male' is -0.5"),
]


@pytest.mark.parametrize(("name", "content", "line", "message"), FILE_FAULTS)
def test_a_fault_is_reported_with_file_and_line(write, name, content, line, message):
    with pytest.raises(DataError) as error:
        load_collection(write({name: content}))
    assert [(fault.path.name, fault.line) for fault in error.value.faults] == [(name, line)]
    assert message in error.value.faults[0].message
    assert re.search(rf"{re.escape(name)}{f':{line}' if line else ''}: ", str(error.value))


JSON_GROUPS = ("path: groups.tsv\n", "path: groups.jsonl\n")
STANCE = ("relevant: 1", "header: true, dimensions: {stance: {}}")
KIND = ("query: title}", "query: title, group: kind}")


def json_groups(gender: str) -> dict[str, str]:
    return {"groups.jsonl": f'{{"id": "d1", "gender": {gender}, "regions": null}}\n'}


# what the settings say instead, a file, line and message
LABELS = ("{column: gender}", "{column: gender, labels: [female, m]}")
OF_LABELS = {"groups.tsv": "id\tgender\tregions\nd1\tm\tAsia\nd2\tmale\tAsia\n"}
TWICE = {"qrels.tsv": "t\t0\td\tr\tstance\nT1\t0\td1\t1\tpro\nT1\t0\td1\t1\tcon\n"}
SETTING_FAULTS = [
    (("path: docs.jsonl", "path: 'docs/*.jsonl'"), {}, "*.jsonl", None, "no such file (documents)"),
    (LABELS, OF_LABELS, "groups.tsv", 3, "gender: 'male' is none of its labels (female, m)"),
    (JSON_GROUPS, json_groups('{"female": -1}'), "groups.jsonl", 1, "weight of 'female' is -1, expected a number >= 0"),
    (STANCE, TWICE, "qrels.tsv", 3, "judged differently"),
    (KIND, {}, "topics.jsonl", None, "no topic has a group in the field 'kind'; there are: n, title, keywords"),
    (("world.json", "{gender: {male: .4}}"), {}, "collection.yaml", None, "add up to 0.4, expected 1"),
]


@pytest.mark.parametrize(("replacement", "files", "name", "line", "message"), SETTING_FAULTS)
def test_a_fault_of_another_form_is_reported_too(write, settings, replacement, files, name, line, message):
    with pytest.raises(DataError) as error:
        load_collection(write({"collection.yaml": settings(replacement), **files}))
    assert [(fault.path.name, fault.line) for fault in error.value.faults] == [(name, line)]
    assert message in error.value.faults[0].message


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


DOCUMENT_FAULTS = [
    ("", None, "there are no documents"),
    ('{"id": "d1", "title": "a"}\n', 1, "no field 'text'; there are: id, title"),
    ('{"id": "", "title": "a", "text": "b"}\n', 1, "the document id is empty"),
    ('{"id": "a b", "title": "a", "text": "b"}\n', 1, "holds white space"),
    ('{"id": "\\u00e9' + "x" * 254 + '", "title": "a", "text": "b"}\n', 1, "longer than 255 bytes"),
]


@pytest.mark.parametrize(("content", "line", "message"), DOCUMENT_FAULTS)
def test_a_fault_of_a_document_is_reported_at_the_end_of_the_pass(write, content, line, message):
    collection = load_collection(write({"docs.jsonl": content}))
    with pytest.raises(DataError) as error:
        list(collection.documents())
    assert [(fault.path.name, fault.line) for fault in error.value.faults] == [("docs.jsonl", line)]
    assert message in error.value.faults[0].message
