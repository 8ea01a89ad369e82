"""Documents of files and in memory: the same collection from every form of rows, wrong rows by number, passages."""

import hashlib
import json
import math
from collections import namedtuple
from collections.abc import Callable, Iterator
from dataclasses import make_dataclass
from datetime import date
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.collection import Collection
from fairagent.collection.collection import Documents
from fairagent.collection.config import START, Chunks, DocumentsFile, joined, passages
from fairagent.errors import DataError, UsageError
from fairagent.types import Document


def documents(tmp_path, *contents: str, share: float = 1.0, **fields: object) -> Documents:
    paths = []
    for number, content in enumerate(contents):
        paths.append(tmp_path / f"part{number}.jsonl")
        paths[-1].write_text(content, encoding="utf-8")
    return Documents("made", tuple(paths), DocumentsFile.model_validate({"path": "unused", **fields}), share)


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


@pytest.mark.parametrize("form", ["jsonl", "parquet", "frame", "rows"])
def test_a_null_is_an_empty_text_in_every_form_and_counted(tmp_path, form):
    rows = [{"id": "a", "text": "jazz", "g": 1}, {"id": "b", "text": None, "g": 0}, {"id": "c", "text": "", "g": None}]
    source: Any = tmp_path / f"rows.{form}"
    frame = import_module("pandas").DataFrame(rows).assign(text=["jazz", math.nan, ""])
    if form == "jsonl":
        source.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    elif form == "parquet":
        frame.to_parquet(source)
    else:
        source = frame if form == "frame" else [row | {"text": row["text"] or math.nan} for row in rows]
    collection = Collection.from_records(source, groups="g")
    assert [document.text for document in collection.source] == ["jazz", "", ""]
    assert "2 of 3 documents without a text" in collection.notes
    assert collection.groups.labels("g") == ("0", "1")


def test_the_fingerprint_depends_on_bytes_and_fields_alone(tmp_path):
    line = '{"id": "a", "text": "1", "body": "2"}\n'
    source = documents(tmp_path, line)
    (tmp_path / "other").mkdir()
    assert documents(tmp_path / "other", line).fingerprint() == source.fingerprint()
    assert Documents("renamed", source.paths, source.fields).fingerprint() == source.fingerprint()
    for other in (documents(tmp_path, line, text="body"), documents(tmp_path, line, format="jsonl")):
        assert other.fingerprint() != source.fingerprint()
    assert documents(tmp_path, line, line).fingerprint() != source.fingerprint()
    # Of these fields without `format` and `columns`, and of the file: indexes from before there were any stay good.
    fields = '{"id": "id", "text": ["text"], "title": null}'
    digest = hashlib.sha256(fields.encode() + hashlib.sha256(line.encode()).digest())
    assert source.fingerprint() == digest.hexdigest()


def test_a_share_of_the_documents_is_always_the_same(tmp_path):
    lines = "".join(f'{{"id": "d{number}", "text": "t"}}\n' for number in range(400))
    source, tenth = (documents(tmp_path, lines, share=share) for share in (1.0, 0.1))
    # By hand: the documents whose SHA-256 begins with less than a tenth of the largest number.
    hashes = {f"d{n}": int(hashlib.sha256(f"d{n}".encode()).hexdigest()[:16], 16) for n in range(400)}
    assert [one.id for one in tenth] == [id for id, number in hashes.items() if number < 0.1 * 2**64]
    assert tenth.count() == 40
    assert tenth.fingerprint() != source.fingerprint()
    with pytest.raises(UsageError, match="leaves none"):
        list(documents(tmp_path, '{"id": "d1", "text": "t"}\n', share=0.001))


ROWS: list[dict[str, Any]] = [
    {"id": 1, "text": "one", "gender": "female", "year": 1901},
    {"id": 2, "text": "two", "gender": "male", "year": None},
    {"id": 3, "text": "three", "gender": None, "year": 1903},
]


class Polars:
    """The one method of a polars frame that is called."""

    def iter_rows(self, named: bool) -> Iterator[dict[str, Any]]:
        assert named
        return iter(ROWS)


FORMS: dict[str, Callable[[], Any]] = {
    "dicts": lambda: ROWS,
    "a generator": lambda: (row for row in ROWS),
    "named tuples": lambda: [namedtuple("Row", row)(**row) for row in ROWS],
    "dataclasses": lambda: [make_dataclass("Row", row)(**row) for row in ROWS],
    "numpy": lambda: [row | {"id": np.int64(row["id"])} for row in ROWS],
    "pandas": lambda: import_module("pandas").DataFrame(ROWS),
    "pyarrow": lambda: import_module("pyarrow").Table.from_pylist(ROWS),
    "polars": Polars,
    "datasets": lambda: import_module("datasets").Dataset.from_list(ROWS),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_collection_is_the_same_from_all_rows(form: str) -> None:
    collection = Collection.from_records(FORMS[form](), groups="gender")
    documents = list(collection.documents())
    assert [(one.id, one.text) for one in documents] == [("1", "one"), ("2", "two"), ("3", "three")]
    # pandas makes fractions of whole numbers beside an empty cell: that is undone.
    assert [repr(one.extra["year"]) for one in documents] == ["1901", "None", "1903"]
    assert collection.groups.labels("gender") == ("female", "male")
    assert collection.groups.memberships("gender", ["1", "2", "3"]).tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    assert collection.fingerprint() == Collection.from_records(ROWS, groups="gender").fingerprint()
    assert collection.source.count() == 3


def test_all_that_can_be_said_of_columns() -> None:
    sure = {"left": 0.7, "right": 0.3}
    rows = [
        {"key": "a", "head": "A", "body": "x", "more": "y", "who": ["female", "male"], "sure": sure},
        {"key": "b", "head": "B", "body": "z", "more": "", "who": ("male",), "sure": None, "on": date(2024, 5, 1)},
    ]
    groups = {"gender": "who", "leaning": {"column": "sure", "predicted": True}}
    world = {"gender": {"female": 0.5, "male": 0.4, "nonbinary": 0.1}}
    columns = {"text": ["body", "more"], "id": "key", "title": "head", "groups": groups}
    collection = Collection.from_records(rows, **columns, population=world, name="mine")
    first, second = collection.documents()
    assert (first.id, first.title, first.text, second.text) == ("a", "A", "x y", "z")
    assert (collection.name, second.extra["on"]) == ("mine", "2024-05-01")
    assert collection.groups.labels("gender") == ("female", "male", "nonbinary")  # the population's own among them
    assert collection.groups.memberships("gender", ["a"]).tolist() == [[0, 0.5, 0.5, 0]]
    assert collection.groups.memberships("leaning", ["a"]).tolist() == [[0, 0.7, 0.3]]
    assert collection.groups.predicted == ("leaning",)
    assert "no document is in these groups of 'gender': nonbinary" in collection.notes


FOURTH = {"id": 4, "text": "x"}
WRONG = [
    ([{"id": "a", "body": "x"}] * 3, {}, "records:1: no field 'text'; there are: id, body (and so in 2 more)"),
    (ROWS, {"id": "key"}, "records:1: no field 'key'; there are: id, text, gender"),
    (ROWS, {"groups": "gendr"}, "records:1: dimension 'gendr': no column 'gendr'; did you mean 'gender'?"),
    ([*ROWS, FOURTH | {"id": 1}], {}, "records:4: the document id '1' is that of 1 already"),
    *(
        ([*ROWS, FOURTH | {"text": cell}], {}, "records:4: field 'text' is ")
        for cell in (2.5, b"\xff", ["law"], {"law": 1}, object())
    ),
    ([*ROWS, FOURTH | {"gender": 0.5}], {"groups": "gender"}, "records:4: gender: 0.5 is no label; expected"),
    ([], {}, "there are no rows"),
    (ROWS, {"groups": "gender", "population": {"gender": {"female": 0.5}}}, "add up to 0.5"),
]


@pytest.mark.parametrize(("rows", "columns", "message"), WRONG)
def test_errors_name_their_row(rows: Any, columns: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError) as raised:
        Collection.from_records(rows, **columns)
    assert message in str(raised.value)


LONG = " ".join(f"Sentence {n} is about lawyers, courts and case {n * 7}." for n in range(300))


def test_a_long_document_becomes_overlapping_passages() -> None:
    from llama_index.core.utils import get_tokenizer

    found, tokens = list(passages([Document("d", LONG, "Title", {"year": 1901})], Chunks())), get_tokenizer()
    assert [one.id for one in found] == [f"d#{n}" for n in range(1, len(found) + 1)]
    sizes = [len(tokens(one.text)) for one in found]
    assert max(sizes) <= 512
    assert min(sizes[:-1]) > 400
    starts = [one.extra[START] for one in found]
    for one, start, following in zip(found, starts, starts[1:], strict=False):
        assert 0 < len(tokens(LONG[following : start + len(one.text)])) <= 128
        assert one.text.startswith("Sentence ")
        assert one.text.endswith(".")
    assert {(one.title, one.extra["year"]) for one in found} == {("Title", 1901)}
    assert joined(found) == LONG


@given(st.text(st.sampled_from("ab cé.,\n😀律"), max_size=400))
def test_nothing_but_white_space_is_lost(text: str) -> None:
    found = list(passages([Document("d", text)], Chunks(tokens=16, overlap=4)))
    whole = "".join(text.split())
    position = 0
    # Every passage is a piece of the text, and together they hold all of it.
    for one in found:
        assert one.text in text
        piece = "".join(one.text.split())
        at = whole.find(piece, max(0, position - len(piece)))
        assert 0 <= at <= position
        position = max(position, at + len(piece))
    assert position == len(whole)
