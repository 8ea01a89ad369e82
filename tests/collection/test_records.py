"""Records in every form: the same collection from each, faults with their lines, and ids of rows that have none."""

import gzip
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fairagent.collection import load_collection
from fairagent.collection.collection import Documents
from fairagent.collection.config import CONTENT, DocumentsFile, RecordsFile, template_fields
from fairagent.collection.records import Faults, field_reader, mended, records, whole_ids, with_ids
from fairagent.errors import DataError, SettingsError
from fairagent.settings import validate

ROWS: list[dict[str, Any]] = [
    {"id": "a", "title": "One", "text": 'She said "no",\nand left', "gender": "female"},
    {"id": "b", "title": "Two", "text": "a; b, c", "gender": "male"},
    {"id": "c", "title": "Three", "text": "third", "gender": ""},
]


def write_csv(folder: Path) -> Path:
    path = folder / "rows.csv"
    rows = 'a,One,"She said ""no"",\nand left",female', "", 'b,Two,"a; b, c",male', "c,Three,third,"
    path.write_text("\n".join(["id,title,text,gender", *rows, ""]), encoding="utf-8")
    return path


def write_semicolons(folder: Path) -> Path:
    """As a spreadsheet saves it in most of Europe: semicolons, a byte order mark, Windows line ends, here gzipped."""
    rows = 'a;One;"She said ""no"",\nand left";female', 'b;Two;"a; b, c";male', "c;Three;third;"
    text = "\n".join(["\ufeffid;title;text;gender", *rows, ""])
    path = folder / "rows.csv.gz"
    path.write_bytes(gzip.compress(text.replace("\n", "\r\n").encode(), mtime=0))
    return path


def write_parquet(folder: Path) -> Path:
    from pyarrow import Table, parquet

    parquet.write_table(Table.from_pylist(ROWS), folder / "rows.parquet")
    return folder / "rows.parquet"


def write_dataset(folder: Path) -> Path:
    from datasets import ClassLabel, Dataset, disable_progress_bars

    disable_progress_bars()
    rows = Dataset.from_list([row | {"gender": {"female": 0, "male": 1, "": -1}[row["gender"]]} for row in ROWS])
    rows.cast_column("gender", ClassLabel(names=["female", "male"])).save_to_disk(folder / "rows")
    return folder / "rows"


FORMS = [write_csv, write_semicolons, write_parquet, write_dataset]


def settings_for(path: Path, **more: Any) -> Path:
    file = path.parent / "collection.yaml"
    groups = {"path": path.name, "dimensions": {"gender": {}}}
    file.write_text(yaml.safe_dump({"name": "rows", "documents": {"path": path.name}, "groups": groups, **more}))
    return file


@pytest.mark.parametrize("write", FORMS, ids=lambda write: write.__name__)
def test_a_collection_is_the_same_from_every_form(write: Callable[[Path], Path], tmp_path: Path) -> None:
    path = write(tmp_path)
    collection = load_collection(settings_for(path))
    documents = list(collection.documents())
    # What a line end within a cell is, the file says.
    assert [document.id for document in documents] == ["a", "b", "c"]
    assert documents[0].text.replace("\r", "") == ROWS[0]["text"]
    assert [document.text for document in documents[1:]] == ["a; b, c", "third"]
    assert collection.groups.labels("gender") == ("female", "male")
    assert collection.groups.memberships("gender", ["a", "b", "c"]).tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    assert collection.source.count() >= 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("id,text\na,b,c\n", "2: expected 2 columns (id, text), got 3: ['a', 'b', 'c']; a cell that holds a separa"),
        ("id,id\na,b\n", "1: a column name occurs twice: id, id"),
        ('id,text\na,b\nc,"d\ne,f\n', "3: no row of a CSV file (unexpected end of data)"),
        ('id,text\na,"b" c\n', "2: no row of a CSV file (',' expected after '\"'); a quote within a quoted cell is"),
    ],
)
def test_what_is_wrong_in_a_csv_file_is_named_with_its_line(content: str, message: str, tmp_path: Path) -> None:
    path, faults = tmp_path / "rows.csv", Faults()
    path.write_text(content, encoding="utf-8")
    list(records(path, RecordsFile(), faults))
    (found,) = faults.entries
    assert str(found).startswith(f"{path}:{message}")


def test_a_dataset_in_splits_names_them(tmp_path: Path) -> None:
    from datasets import Dataset, DatasetDict, disable_progress_bars

    disable_progress_bars()
    path = tmp_path / "rows"
    DatasetDict({"train": Dataset.from_list(ROWS), "test": Dataset.from_list(ROWS)}).save_to_disk(path)
    with pytest.raises(DataError, match="a dataset in several splits; name one of them: rows/test, rows/train"):
        load_collection(settings_for(path, groups=()))
    settings = settings_for(path, documents={"path": "rows/train"}, groups=())
    assert len(list(load_collection(settings).documents())) == 3


@pytest.mark.parametrize(
    ("content", "read", "wrong"),
    [
        (b'{"a": 1}\nnope\n\xff\n{"a": 2}\n', [1, 4], [2, 3]),
        *((other * 99, [], [1]) for other in (b".I 1\n.W\nwords\n", b"[\n{\n", b"id,text\n1,x\n")),
    ],
)
def test_reading_goes_on_after_a_fault(tmp_path: Path, content: bytes, read: list[int], wrong: list[int]) -> None:
    path, faults = tmp_path / "x.jsonl", Faults()
    path.write_bytes(content)
    assert [number for number, _ in records(path, RecordsFile(), faults)] == read
    assert [fault.line for fault in faults.entries] == wrong


def test_templates():
    assert template_fields("plain") == ()
    assert template_fields("{a}-{b}") == ("a", "b")
    with pytest.raises(ValueError, match="no field 'b'; there are: a"):
        field_reader("{a}-{b}")({"a": 1})
    assert field_reader("{a}")({"a": "{b}"}) == "{b}"
    for malformed in ("{", "}", "{}", "{a!r}", "{a:>10}", "{a[0]}", "{a.real}"):
        with pytest.raises(ValueError, match=r"."):
            template_fields(malformed)


CELLS = st.one_of(
    st.none(), st.booleans(), st.integers(0, 3), st.sampled_from(["", "a", " a", "a ", "b c", "b_c", "x" * 300])
)


def digest(row: dict[str, Any]) -> str:
    text = json.dumps(row, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def ids_of(rows: list[dict[str, Any]]) -> list[str]:
    numbered = list(enumerate(rows, start=1))
    return [row["id"] for _, row in mended(numbered, "id", Faults(), whole_ids(numbered, "id"))]


def test_ids_are_mended_by_the_content_of_their_rows(tmp_path: Path) -> None:
    """The first with an id of its own keeps it, though one that is mended comes before it."""
    cells = [" a", "a", "", "a", "b c", "b_c", "d e", None, 7, 8.0, True]
    rows = [{"id": id, "n": n} for n, id in enumerate(cells)]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    faults, fields = Faults(), RecordsFile(ids="mend")
    read = [record for _, record in records(path, fields, faults)]
    marks = [digest(row) for row in rows]
    own = [f"a-{marks[0]}", "a", f"row-{marks[2]}", f"a-{marks[3]}", f"b_c-{marks[4]}", "b_c", "d_e"]
    own += [f"row-{marks[7]}", "7", "8", f"row-{marks[10]}"]
    assert [str(row["id"]) for row in read] == own
    assert [row["n"] for row in read] == list(range(11))
    assert [int(note[5:].partition(":")[0]) for note in faults.mended] == [1, 3, 4, 5, 7, 8, 10, 11]
    source = Documents("made", (path,), DocumentsFile(path=("rows.jsonl",), text=("n",), ids="mend"))
    assert [one.id for one in source] == own
    assert "8 ids of rows.jsonl mended" in source.notes[0]


@given(st.lists(st.fixed_dictionaries({"id": CELLS, "n": st.integers(0, 2)}), max_size=12), st.data())
def test_a_row_that_goes_changes_no_other_but_its_like(rows: list[dict[str, Any]], data: st.DataObject) -> None:
    ids = ids_of(rows)
    assert len(set(ids)) == len(ids)
    if rows:
        gone = data.draw(st.integers(0, len(rows) - 1))
        others = rows[:gone] + rows[gone + 1 :]
        before, after = (
            {(digest(row), id) for row, id in zip(some, ids_of(some), strict=True)} for some in (rows, others)
        )
        assert len(after - before) <= 1  # one row at most, which had to make way for the one that is gone


def test_the_content_is_the_id_where_there_is_no_other() -> None:
    rows = [{"text": "one"}, {"text": "two"}, {"text": "one"}]
    ids = [row[CONTENT] for _, row in with_ids(enumerate(rows, start=1), CONTENT)]
    assert ids == [f"row-{digest(rows[0])}", f"row-{digest(rows[1])}", f"row-{digest(rows[0])}-2"]
    with pytest.raises(SettingsError, match="the ids of one column"):
        validate(RecordsFile, {"id": "{a}-{b}", "ids": "mend"}, "x")
