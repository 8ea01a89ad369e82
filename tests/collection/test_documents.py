from __future__ import annotations

import hashlib

import pytest

from fairagent.collection.config import DocumentsFile
from fairagent.collection.documents import Documents
from fairagent.errors import DataError


def documents(tmp_path, *contents: str, **fields: object) -> Documents:
    paths = []
    for number, content in enumerate(contents):
        paths.append(tmp_path / f"part{number}.jsonl")
        paths[-1].write_text(content, encoding="utf-8")
    return Documents("made", tuple(paths), DocumentsFile.model_validate({"path": "unused", **fields}))


def test_fields_templates_and_several_texts(tmp_path):
    line = '{"q": 3, "d": "7", "head": "H", "abstract": "A", "body": "", "note": "N", "year": 1999}\n'
    [document] = documents(tmp_path, line, id="{q}-{d}", title="year", text=["head", "abstract", "body", "note"])
    assert (document.id, document.title, document.text) == ("3-7", "1999", "H A N")
    assert document.extra == {"q": 3, "d": "7"}


def test_all_faults_are_found_and_no_document_follows_the_first(tmp_path):
    source = documents(
        tmp_path,
        '{"id": "a", "text": "1"}\n{"id": "b"}\n{"id": "c", "text": "3"}\nnot json\n',
        '{"id": "a", "text": "5"}\n{"id": "a", "text": "6"}\n',
    )
    seen = []
    with pytest.raises(DataError, match="4 errors") as error:
        seen.extend(document.id for document in source)
    assert seen == ["a"]
    assert [(fault.path.name, fault.line) for fault in error.value.faults] == [
        ("part0.jsonl", 2),
        ("part0.jsonl", 4),
        ("part1.jsonl", 1),
        ("part1.jsonl", 2),
    ]
    assert "the document id 'a' is that of part0.jsonl:1 already" in str(error.value)


def test_the_fingerprint_depends_on_bytes_and_fields_alone(tmp_path):
    line = '{"id": "a", "text": "1", "body": "2"}\n'
    source = documents(tmp_path, line)
    (tmp_path / "other").mkdir()
    assert documents(tmp_path / "other", line).fingerprint() == source.fingerprint()
    assert Documents("renamed", source.paths, source.fields).fingerprint() == source.fingerprint()
    assert len(source.fingerprint()) == 64
    assert documents(tmp_path, line, text="body").fingerprint() != source.fingerprint()
    assert documents(tmp_path, line, line).fingerprint() != source.fingerprint()


def test_indexes_from_before_there_were_tab_separated_texts_stay_good(tmp_path):
    line = '{"id": "a", "text": "b"}\n'
    # Of these fields without `format` and `columns`, and of the file.
    fields = '{"id": "id", "text": ["text"], "title": null}'
    digest = hashlib.sha256(fields.encode() + hashlib.sha256(line.encode()).digest())
    assert documents(tmp_path, line).fingerprint() == digest.hexdigest()
    assert documents(tmp_path, line, format="jsonl").fingerprint() != digest.hexdigest()
