"""Documents and groups from CSV, TSV, Parquet and Hugging Face's folders: the same collection from each."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairagent.collection import load_collection
from fairagent.collection.config import RecordsFile
from fairagent.collection.forms import records
from fairagent.collection.records import Faults
from fairagent.errors import DataError

ROWS: list[dict[str, Any]] = [
    {"id": "a", "title": "One", "text": 'She said "no",\nand left', "gender": "female"},
    {"id": "b", "title": "Two", "text": "a; b, c", "gender": "male"},
    {"id": "c", "title": "Three", "text": "third", "gender": ""},
]

CSV = """id,title,text,gender
a,One,"She said ""no"",
and left",female

b,Two,"a; b, c",male
c,Three,third,
"""


def write_csv(folder: Path) -> Path:
    path = folder / "rows.csv"
    path.write_text(CSV, encoding="utf-8")
    return path


def write_semicolons(folder: Path) -> Path:
    """As a spreadsheet saves it in most of Europe: semicolons, a byte order mark, Windows line ends, here gzipped."""
    text = (
        '\ufeffid;title;text;gender\na;One;"She said ""no"",\nand left";female\nb;Two;"a; b, c";male\nc;Three;third;\n'
    )
    path = folder / "rows.csv.gz"
    path.write_bytes(gzip.compress(text.replace("\n", "\r\n").encode(), mtime=0))
    return path


def write_json(folder: Path) -> Path:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    return path


def write_parquet(folder: Path) -> Path:
    import pyarrow
    from pyarrow.parquet import write_table

    path = folder / "rows.parquet"
    write_table(pyarrow.Table.from_pylist(ROWS), path)
    return path


def write_dataset(folder: Path) -> Path:
    from datasets import ClassLabel, Dataset, disable_progress_bars

    disable_progress_bars()
    rows = Dataset.from_list([row | {"gender": {"female": 0, "male": 1, "": -1}[row["gender"]]} for row in ROWS])
    rows.cast_column("gender", ClassLabel(names=["female", "male"])).save_to_disk(folder / "rows")
    return folder / "rows"


FORMS = [write_csv, write_semicolons, write_json, write_parquet, write_dataset]


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


def test_rows_without_an_id_are_numbered(tmp_path: Path) -> None:
    rows = list(records(write_csv(tmp_path), RecordsFile(id="@row"), Faults()))
    # The number of a row of text is the line on which it begins.
    assert [(number, record["@row"]) for number, record in rows] == [(2, 1), (5, 2), (6, 3)]


def faults_of(path: Path, **fields: Any) -> list[str]:
    faults = Faults()
    list(records(path, RecordsFile(**fields), faults))
    return [str(fault).removeprefix(f"{path}:") for fault in faults.entries]


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
    path = tmp_path / "rows.csv"
    path.write_text(content, encoding="utf-8")
    (found,) = faults_of(path)
    assert found.startswith(message)


def test_a_dataset_in_splits_names_them(tmp_path: Path) -> None:
    from datasets import Dataset, DatasetDict, disable_progress_bars

    disable_progress_bars()
    path = tmp_path / "rows"
    DatasetDict({"train": Dataset.from_list(ROWS), "test": Dataset.from_list(ROWS)}).save_to_disk(path)
    with pytest.raises(DataError, match="a dataset in several splits; name one of them: rows/test, rows/train"):
        load_collection(settings_for(path, groups=()))
    settings = settings_for(path, documents={"path": "rows/train"}, groups=())
    assert len(list(load_collection(settings).documents())) == 3
