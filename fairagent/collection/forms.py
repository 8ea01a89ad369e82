"""Records in whichever form a file has: lines of text, columns (Parquet), or a folder of Hugging Face's `datasets`.

The number of a record of columns is that of its row there, from 1.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fairagent.collection.bounds import Bounds, bounded, error_text, plain_record
from fairagent.collection.columns import BATCH, check_dataset, dataset_rows, parquet_rows, table_rows
from fairagent.collection.config import RecordsFile
from fairagent.collection.records import (
    UTF8,
    Faults,
    Record,
    csv_records,
    json_records,
    lines,
    shown,
    tsv_records,
)
from fairagent.collection.row_ids import mended, own_ids, with_ids
from fairagent.errors import DataError, FairAgentError, UsageError
from fairagent.storage.packages import expect_installed
from fairagent.storage.readers import MOST_COLUMNS, Malformed, file_text, parse_json, too_many_columns

DATASET, SPLITS, ABOUT = "state.json", "dataset_dict.json", "dataset_info.json"
"""Files of a folder that `save_to_disk` wrote: of a dataset, of several splits, and of what its columns are."""
READING_FAILS = (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, MemoryError)
"""What the readers of columns raise, beside their own errors, where a file is damaged or takes more than there is."""
LARGEST_STATE = 1 << 24
"""Bytes."""


def records(path: Path, fields: RecordsFile, faults: Faults) -> Iterator[tuple[int, Record]]:
    """The records of a file, each with the number of its line or row; what is wrong is added to `faults`.

    Each has an id in the field `fields.id` where that is `@row` or `@content`, or its `ids` are to be mended, which
    takes a second reading.
    """
    if fields.ids:
        own = own_ids(_records(path, fields, Faults()), fields.id)
        return mended(_records(path, fields, faults), fields.id, faults, own)
    return with_ids(_records(path, fields, faults), fields.id)


def _records(path: Path, fields: RecordsFile, faults: Faults) -> Iterator[tuple[int, Record]]:
    """The records as they are in the file."""
    form, encodings = form_of(path, fields.format), fields.encoding or UTF8
    if form == "jsonl":
        return json_records(path, faults, encodings)
    if form in ("tsv", "csv"):
        return (tsv_records if form == "tsv" else csv_records)(path, faults, fields.columns, encodings)
    check_form(path, form)
    return _column_records(path, form, faults)


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
        for number, record in enumerate((_dataset if form == "dataset" else parquet_rows)(path), start=1):
            yield number, record
    except FileNotFoundError:
        faults.add(path, None, "no such file")
    except Malformed as error:
        faults.add(path, number + 1, f"{error}; from here on nothing is read")
    except (*READING_FAILS, pyarrow.ArrowException) as error:
        what = "a Parquet file" if form == "parquet" else "a dataset of Hugging Face"
        faults.add(path, number + 1, f"cannot be read as {what} from here on ({shown(str(error), 120)})")


def _dataset(path: Path) -> Iterator[Record]:
    from datasets import load_from_disk

    check_dataset(file for file in files_of(path) if file.suffix == ".arrow" and file.is_file())
    return dataset_rows(load_from_disk(str(path)))


def rows_of(source: Any, bounds: Bounds) -> Iterator[tuple[int, Record]]:
    """The numbered rows of a table of pandas, polars, pyarrow or `datasets`, or of an iterable.

    The tables' own methods are called, so none of these packages is imported. Rows of an iterable are mappings,
    named tuples or dataclasses. Raises UsageError, with the number of the row, for anything else; DataError, with row
    and column, for what is beyond the bounds, and for objects that raise when they are looked at.
    """
    for number, row in bounded(_table_rows(source), "row", bounds, source):
        try:
            record = plain_record(_mapping(row, number))
        except FairAgentError:
            raise
        except Malformed as error:
            raise DataError(f"row {number}: {error}") from None
        except Exception as error:
            raise DataError(f"row {number} cannot be read: {error_text(error)}") from None
        yield number, record


def _table_rows(source: Any) -> Iterable[Any]:
    """The rows of a table of any kind, or the iterable itself; each kind is known by a method."""
    try:
        if hasattr(source, "to_pylist"):
            return table_rows(source)
        if hasattr(source, "iter_rows"):
            return source.iter_rows(named=True)  # type: ignore[no-any-return]
        if hasattr(source, "convert_dtypes"):
            return _frame_rows(source)
        if hasattr(source, "with_format") and hasattr(source, "features"):
            return dataset_rows(source)
        if isinstance(source, Iterable):
            return source
    except Exception as error:
        raise DataError(f"a {type(source).__name__} cannot be read: {error_text(error)}") from None
    name = type(source).__name__
    raise UsageError(f"a {name} holds no rows; expected a table of pandas, polars or pyarrow, a list of dicts ...")


def _frame_rows(source: Any) -> Iterator[Mapping[Any, Any]]:
    """The rows of a DataFrame of pandas, whose categories are written out a batch at a time."""
    if len(source.columns) > MOST_COLUMNS:
        raise Malformed(too_many_columns(len(source.columns)))
    # Whole numbers beside empty cells are no fractions, and an empty cell is None.
    frame = source.convert_dtypes()
    for start in range(0, len(frame), BATCH):
        part = frame.iloc[start : start + BATCH].astype(object)
        yield from part.where(part.notna(), None).to_dict("records")


def _mapping(row: Any, number: int) -> Mapping[str, Any]:
    if isinstance(row, Mapping):
        return row
    if hasattr(row, "_asdict"):
        return dict(row._asdict())
    if dataclasses.is_dataclass(row):
        return {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}
    name = type(row).__name__
    raise UsageError(f"row {number} is a {name} ({shown(row)}); expected a dict, a named tuple or a dataclass")


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
    if form == "dataset":
        return sum(1 for _ in _column_records(path, form, Faults()))
    return sum(1 for _ in lines(path, Faults(), encodings=fields.encoding or UTF8))


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
