"""Records in whichever form a file has: lines of text, columns (Parquet), or a folder of Hugging Face's `datasets`.

The number of a record of columns is that of its row there, from 1. Rows may have no ids of their own: these are then
made anew at each reading of what the row holds, so that a row that is taken out of the file changes the id of no other,
but of one that had to make way for it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Collection, Container, Iterable, Iterator
from pathlib import Path

from fairagent.collection.config import CONTENT, ROW, RecordsFile
from fairagent.collection.records import (
    LONGEST_ID,
    UTF8,
    Faults,
    Record,
    csv_records,
    json_records,
    lines,
    listed,
    shown,
    tsv_records,
)
from fairagent.collection.rows import check_dataset, dataset_rows, parquet_rows
from fairagent.storage.packages import expect_installed
from fairagent.storage.readers import Malformed, file_text, parse_json
from fairagent.types.common import counted

DATASET, SPLITS, ABOUT = "state.json", "dataset_dict.json", "dataset_info.json"
"""Files of a folder that `save_to_disk` wrote: of a dataset, of several splits, and of what its columns are."""
READING_FAILS = (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, MemoryError)
"""What the readers of columns raise, beside their own errors, where a file is damaged or takes more than there is."""
ROW_WARNING = (
    "the ids are numbers of rows (`id: '@row'`): where a row is deleted, all rows after it get the id of another "
    f"document, and judgments and labels by id name the wrong ones; `id: '{CONTENT}'` lets the others keep theirs"
)
_SPACE = re.compile(r"[\s\x00]+")


def records(path: Path, fields: RecordsFile, faults: Faults) -> Iterator[tuple[int, Record]]:
    """The records of a file, each with the number of its line or row; what is wrong is added to `faults`.

    Each has an id in the field `fields.id` where that is `@row` or `@content`, or its `ids` are to be mended, which
    takes a second reading.
    """
    if fields.ids:
        whole = whole_ids(_records(path, fields, Faults()), fields.id)
        return mended(_records(path, fields, faults), fields.id, faults, whole)
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
    # Not by Path: a name that is too long for the system is a file that cannot be read, which is said later.
    return os.path.isfile(path / DATASET)


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
        state = parse_json(file_text(path / DATASET, 1 << 24))
        return [*(path / str(file["filename"]) for file in state["_data_files"]), path / ABOUT]
    except (Malformed, KeyError, TypeError):
        return [path / DATASET]


def plain_id(value: object) -> str:
    """What a cell has for an id, as a TREC file can hold it; "" where that is nothing.

    White space goes at the ends and is `_` within; a whole number that was read as a fraction is whole again.

    >>> [plain_id(value) for value in (" a b ", 7, 7.0, None, True, " ")]
    ['a_b', '7', '7', '', '', '']
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    id = _SPACE.sub("_", str(value).strip())
    if len(id.encode("utf-8", "surrogatepass")) <= LONGEST_ID:
        return id
    start = id.encode("utf-8", "ignore")[: LONGEST_ID - 40].decode("utf-8", "ignore")
    return f"{start}-{_digest(id)}"


def with_ids(rows: Iterable[tuple[int, Record]], id: str) -> Iterator[tuple[int, Record]]:
    """The rows, with the field `id` where that is the number of the row (`@row`) or its content (`@content`)."""
    if id == ROW:
        return ((number, {**row, ROW: place}) for place, (number, row) in enumerate(rows, start=1))
    return mended(rows, id, Faults(), ()) if id == CONTENT else iter(rows)


def whole_ids(rows: Iterable[tuple[int, Record]], id: str) -> set[str]:
    """The ids of the rows that need no mending; about 100 bytes each."""
    cells = (row.get(id) for _, row in rows)
    return {str(cell) for cell in cells if (name := plain_id(cell)) and name == str(cell)}


def mended(
    rows: Iterable[tuple[int, Record]], id: str, faults: Faults, whole: Container[str]
) -> Iterator[tuple[int, Record]]:
    """The rows, each with an id that no other has in the field `id`; what was mended is added to `faults.mended`.

    The first row with an id keeps it, and none that is among the `whole` goes to a row that has to be mended. A further
    row with the same id gets the digest of its content after it; a row without any is called `row-` and that digest.
    Rows of the same content are counted.
    """
    taken: dict[str, int] = {}
    for number, row in rows:
        cell = row.get(id)
        now = name = plain_id(cell)
        is_whole = bool(name) and name == str(cell)
        if not name or name in taken or (not is_whole and name in whole):
            now = base = f"{name[: LONGEST_ID // 4] if len(name) > LONGEST_ID // 2 else name or 'row'}-{_digest(row)}"
            while now in taken or now in whole:
                taken[base] = taken.get(base, 1) + 1
                now = f"{base}-{taken[base]}"
        taken.setdefault(now, 1)
        if id != CONTENT and now != str(cell):
            was = "" if cell is None else str(cell).strip()
            faults.mended.append(f"line {number}: {was or 'no id'}, now {now}")
        yield number, row if is_whole and now == name else {**row, id: now}


def mended_note(made: Collection[str], file: str) -> str:
    """One sentence about the ids that were mended."""
    return f"{counted(len(made), 'id')} of {file} mended (`ids: mend`): {listed(made)}"


def _digest(content: object) -> str:
    # Bytes count; of an object of somebody's no method is called.
    def default(value: object) -> str | None:
        return value.hex() if type(value) is bytes else None

    text = json.dumps(content, sort_keys=True, ensure_ascii=False, default=default)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
