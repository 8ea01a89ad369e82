"""Records in whichever form a file has: lines of text, columns (Parquet), or a folder of Hugging Face's `datasets`.

Columns are read a thousand rows at a time; the number of a record is that of its row there, from 1.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np

from fairagent.collection.config import RecordsFile
from fairagent.collection.records import Faults, Record, csv_records, json_records, lines, shown, tsv_records
from fairagent.errors import UsageError
from fairagent.storage.packages import expect_installed
from fairagent.storage.readers import Malformed, file_text, parse_json

ROW = "@row"
"""The `id` of records that have none of their own: the number of their row."""
STORED = (str, int, float, bool, type(None), list, dict)
"""Values of cells that an index keeps beside a document; others, such as the bytes of a picture, are left out."""

BATCH = 1_000
"""Rows of columns that are read at once."""
DATASET, SPLITS, ABOUT = "state.json", "dataset_dict.json", "dataset_info.json"
"""Files of a folder that `save_to_disk` wrote: of a dataset, of several splits, and of what its columns are."""
LARGEST_STATE = 1 << 24
"""Bytes."""


def records(path: Path, fields: RecordsFile, faults: Faults) -> Iterator[tuple[int, Record]]:
    """The records of a file, each with the number of its line or row; what is wrong is added to `faults`.

    Where `fields.id` is `@row`, each record has that field.
    """
    form = form_of(path, fields.format)
    if form == "jsonl":
        rows = json_records(path, faults)
    elif form in ("tsv", "csv"):
        rows = (tsv_records if form == "tsv" else csv_records)(path, faults, fields.columns)
    else:
        check_form(path, form)
        rows = _column_records(path, form, faults)
    return numbered(rows, fields.id)


def numbered(rows: Iterator[tuple[int, Record]], id: str) -> Iterator[tuple[int, Record]]:
    """The rows, with their numbers in the field `@row` where that is their id."""
    if id != ROW:
        return rows
    return ((number, {**record, ROW: place}) for place, (number, record) in enumerate(rows, start=1))


def form_of(path: Path, format: str | None = None) -> str:
    """The form that is named, or else that of the file's name."""
    if format or is_dataset(path):
        return format or "dataset"
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return next((form for form in ("tsv", "csv", "parquet") if f".{form}" in suffixes), "jsonl")


def check_form(path: Path, form: str) -> None:
    """Raise BackendUnavailable where what reads files of this form is not installed."""
    if form in ("parquet", "dataset"):
        expect_installed("pyarrow" if form == "parquet" else "datasets", f"reading {path}")


def _column_records(path: Path, form: str, faults: Faults) -> Iterator[tuple[int, Record]]:
    # Here and not above: it takes half a second to load.
    import pyarrow

    number = 0
    try:
        for number, record in enumerate((_dataset if form == "dataset" else _parquet)(path), start=1):
            yield number, record
    except FileNotFoundError:
        faults.add(path, None, "no such file")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, pyarrow.ArrowException) as error:
        what = "a Parquet file" if form == "parquet" else "a dataset of Hugging Face"
        faults.add(path, number + 1, f"cannot be read as {what} from here on ({shown(str(error), 120)})")


def _parquet(path: Path) -> Iterator[Record]:
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=BATCH):
            yield from map(plain_record, _checked(batch).to_pylist())


def _checked(table: Any) -> Any:
    """The table of Arrow; ArrowInvalid where its offsets lead elsewhere, which nobody looks at who reads it."""
    table.validate(full=True)
    return table


def _dataset(path: Path) -> Iterator[Record]:
    from datasets import load_from_disk

    return dataset_rows(load_from_disk(str(path)))


def dataset_rows(dataset: Any) -> Iterator[Record]:
    """The rows of a `datasets.Dataset`; classes have their names, pictures and sounds are not decoded."""
    classes = {name: feature.names for name, feature in (dataset.features or {}).items() if hasattr(feature, "int2str")}
    for table in dataset.with_format("arrow").iter(batch_size=BATCH):
        for row in _checked(table).to_pylist():
            for name, names in classes.items():
                # What has no class is None or -1.
                row[name] = names[row[name]] if row[name] in range(len(names)) else None
            yield plain_record(row)


def rows_of(source: Any) -> Iterator[Record]:
    """The rows of whatever holds some: a table of pandas, polars, pyarrow or `datasets`, or an iterable.

    The tables' own methods are called, so none of these packages is imported. Rows of an iterable are mappings,
    named tuples or dataclasses. Raises UsageError, with the number of the row, for anything else.
    """
    if hasattr(source, "to_pylist"):
        rows: Iterable[Any] = source.to_pylist()
    elif hasattr(source, "iter_rows"):
        rows = source.iter_rows(named=True)
    elif hasattr(source, "convert_dtypes"):
        # Whole numbers beside empty cells are no fractions, and an empty cell is None.
        frame = source.convert_dtypes().astype(object)
        rows = frame.where(frame.notna(), None).to_dict("records")
    elif hasattr(source, "with_format") and hasattr(source, "features"):
        rows = dataset_rows(source)
    elif isinstance(source, Iterable):
        rows = source
    else:
        name = type(source).__name__
        raise UsageError(f"a {name} holds no rows; expected a table of pandas, polars or pyarrow, a list of dicts ...")
    return (plain_record(_mapping(row, number)) for number, row in enumerate(rows, start=1))


def _mapping(row: Any, number: int) -> Mapping[str, Any]:
    if isinstance(row, Mapping):
        return row
    if hasattr(row, "_asdict"):
        return dict(row._asdict())
    if dataclasses.is_dataclass(row):
        return {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}
    name = type(row).__name__
    raise UsageError(f"row {number} is a {name} ({shown(row)}); expected a dict, a named tuple or a dataclass")


def plain_record(row: Mapping[str, Any]) -> dict[str, Any]:
    """The record with its cells as JSON has them; see `plain`."""
    return {str(name): plain(value) for name, value in row.items()}


def plain(value: Any) -> Any:
    """A cell as JSON has it: dates, decimals and UUIDs as text, what is no finite number as None.

    Anything else, such as bytes, stays what it is, and within lists and mappings becomes None.

    >>> from datetime import date
    >>> plain([date(2024, 5, 1), np.int64(3), float("nan"), ("a", b"b")])
    ['2024-05-01', 3, None, ['a', None]]
    """
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): _inside(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_inside(one) for one in value]
    if isinstance(value, set | frozenset):
        return sorted((_inside(one) for one in value), key=str)
    if isinstance(value, Decimal | UUID):
        return str(value)
    return value.isoformat() if hasattr(value, "isoformat") else value


def _inside(value: Any) -> Any:
    value = plain(value)
    return value if isinstance(value, STORED) else None


def count_records(path: Path, fields: RecordsFile) -> int:
    """About how many records the file holds; 0 where that takes reading it."""
    form = form_of(path, fields.format)
    if form == "parquet":
        from pyarrow import ArrowException
        from pyarrow.parquet import read_metadata

        try:
            return int(read_metadata(path).num_rows)
        except (OSError, ArrowException):
            return 0
    return sum(1 for _ in (_column_records(path, form, Faults()) if form == "dataset" else lines(path, Faults())))


def is_dataset(path: Path) -> bool:
    """Whether it is the folder of a dataset that Hugging Face's `save_to_disk` wrote."""
    return (path / DATASET).is_file()


def splits_of(path: Path) -> list[str]:
    """The folders of a dataset that was saved in several splits; none where it is something else."""
    if not (path / SPLITS).is_file():
        return []
    return sorted(f"{path.name}/{folder.name}" for folder in path.iterdir() if is_dataset(folder))


def files_of(path: Path) -> list[Path]:
    """The files whose bytes the records depend on: itself, or those of the dataset in this folder."""
    if not is_dataset(path):
        return [path]
    try:
        state = parse_json(file_text(path / DATASET, LARGEST_STATE))
        return [*(path / str(file["filename"]) for file in state["_data_files"]), path / ABOUT]
    except (Malformed, KeyError, TypeError):
        return [path / DATASET]
