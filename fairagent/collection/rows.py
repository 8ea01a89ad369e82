"""Rows of programs and of what has columns: Parquet files, datasets of Hugging Face, tables, iterables; within bounds.

A generator has no end that can be seen, a few kilobytes of columns can stand for terabytes (a dictionary's one long
text for millions of rows, a run of equal numbers in nested lists), and what an object says of itself is code of its
own, which may raise. So what a batch will decode to is known before it is decoded, and an error names row and column.
"""

import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import numpy as np

from fairagent.errors import DataError, FairAgentError, UsageError
from fairagent.storage.files import open_to_read
from fairagent.storage.readers import (
    DEEPEST,
    HIGHEST_RATIO,
    MOST_COLUMNS,
    UNPACKED,
    Malformed,
    Unpacked,
    too_many_columns,
)
from fairagent.types.clean import label_text, shown

T = TypeVar("T")

LONGEST_CELL = 1 << 24
"""Characters of a cell, or of all that a list or a mapping in it holds, each value of which counts as `VALUE` more."""
VALUE = 50
"""What a value takes, however short it is."""
STORED = (str, int, float, bool, type(None), list, dict)
"""Values of cells that an index keeps beside a document; others, such as the bytes of a picture, are left out."""
BATCH = 1_000
"""Rows that are read at once, at most."""
DECODED = 1 << 26
"""Bytes that one batch may decode to; where it would be more, it has fewer rows."""
LARGEST_FOOTER = 1 << 24
"""Bytes of what a Parquet file says about itself."""
MOST_CELLS = 100
"""Cells that a Parquet file may say that it has for each of its bytes; and so many millions, however small it is."""
TEXT_TYPES = ("string", "large_string", "binary", "large_binary")
WIDTH = 8
"""Bytes that a number counts as, within lists."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where the reading of a program's rows, hits or ids ends with an error that names the bound.

    `rows` and `seconds` hold for what has no length, such as a generator: how many it may give, and for how long by
    `clock`. `text` is how many characters the rows of a collection in memory may have together, roughly.
    """

    rows: int = 1_000_000
    seconds: float = 600.0
    text: int = 1 << 30
    clock: Callable[[], float] = time.monotonic


def bounded(given: Iterable[T], what: str, bounds: Bounds, of: object = None) -> Iterator[tuple[int, T]]:
    """All that is given, each with its number from 1; `what` is the word for one, `of` is what has their length.

    Raises DataError beyond the bounds, and where `given` itself raises.
    """
    of = given if of is None else of
    started, number = bounds.clock(), 0
    try:
        length = len(of) if isinstance(of, Sized) else None
        rest = iter(given)
    except Exception as error:
        raise DataError(f"the {what}s cannot be read: {error_text(error)}") from None
    while True:
        number += 1
        try:
            one = next(rest)
        except StopIteration:
            return
        except FairAgentError:
            raise
        except Exception as error:
            raise _unreadable(f"{what} {number}", error) from None
        if number > max(bounds.rows, length or 0):
            raise DataError(f"more than {bounds.rows:,} {what}s (bound `rows`), and no end of them is in sight")
        if length is None and (passed := bounds.clock() - started) > bounds.seconds:
            raise DataError(
                f"{what} {number:,} came {passed:,.0f} s after the first was asked for (bound `seconds`: "
                f"{bounds.seconds:g}), and no end of them is in sight"
            )
        yield number, one


def error_text(error: Exception) -> str:
    """An error of somebody else's code in a message of ours."""
    return f"it raises {shown(error, 120)}"


def _unreadable(what: str, error: Exception) -> DataError:
    return DataError(
        f"{what}: {error}" if isinstance(error, Malformed) else f"{what} cannot be read: {error_text(error)}"
    )


def plain(value: Any) -> Any:
    """A cell as JSON has it: dates, decimals and UUIDs as text, what is no finite number as None.

    Anything else, such as bytes, stays what it is, and within lists and mappings becomes None. Malformed where it is
    too long, or raises when it is looked at.

    >>> from datetime import date
    >>> plain([date(2024, 5, 1), np.int64(3), float("nan"), ("a", b"b")])
    ['2024-05-01', 3, None, ['a', None]]
    """
    if type(value) in (int, bool, type(None)) or (type(value) is str and len(value) <= LONGEST_CELL):
        return value
    left, too_deep = LONGEST_CELL, f"more than {DEEPEST} lists and mappings within each other"

    def count(characters: int) -> None:
        nonlocal left
        left -= characters
        # Lists may hold the same list many times.
        if left < 0:
            raise Malformed(
                f"holds more than {LONGEST_CELL:,} characters, or {LONGEST_CELL // VALUE:,} values (bound on a cell)"
            )

    def inside(value: Any, depth: int) -> Any:
        if depth > DEEPEST:
            raise Malformed(too_deep)
        count(VALUE)
        value = made(value, depth)
        return value if isinstance(value, STORED) else None

    def made(value: Any, depth: int) -> Any:
        # Of a subclass the value alone: its methods are somebody's.
        if isinstance(value, str):
            count(str.__len__(value))
            return str.__str__(value)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return int.__int__(value)
        if isinstance(value, np.generic | np.ndarray):
            count(VALUE * value.size)
            return made(value.tolist(), depth)
        if isinstance(value, float):
            number = float.__float__(value)
            return number if math.isfinite(number) else None
        if isinstance(value, Mapping):
            return {_key(made(name, depth)): inside(one, depth + 1) for name, one in value.items()}
        if isinstance(value, list | tuple):
            return [inside(one, depth + 1) for one in value]
        if isinstance(value, set | frozenset):
            return sorted((inside(one, depth + 1) for one in value), key=str)
        if isinstance(value, Decimal | UUID):
            return str(value)
        return str(value.isoformat()) if hasattr(value, "isoformat") else value

    try:
        return made(value, 0)
    except Malformed:
        raise
    except RecursionError:
        raise Malformed(too_deep) from None
    except Exception as error:
        kind = shown(type(value).__name__)
        raise Malformed(f"the cell, of type {kind}, cannot be read: {error_text(error)}") from None


def _key(name: Any) -> str:
    """The key of a mapping, which may be a label."""
    return label_text(name) if isinstance(name, bool) or (isinstance(name, float) and name.is_integer()) else str(name)


def _plain_record(row: Mapping[Any, Any]) -> dict[str, Any]:
    """The record with plain cells; Malformed, naming the column, where one cannot be."""
    if len(row) > MOST_COLUMNS:
        raise Malformed(too_many_columns(len(row)))
    record: dict[str, Any] = {}
    for name, value in row.items():
        try:
            key = str(name)
        except Exception as error:
            raise Malformed(f"the name of column {len(record) + 1} cannot be read: {error_text(error)}") from None
        try:
            record[key] = plain(value)
        except Malformed as error:
            raise Malformed(f"column {shown(key)}: {error}") from None
    return record


def weight(value: Any) -> int:
    """Roughly how many characters a plain cell takes in memory."""
    if isinstance(value, str):
        return VALUE + len(value)
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return VALUE + sum(map(weight, inner))


def rows_of(source: Any, bounds: Bounds) -> Iterator[tuple[int, dict[str, Any]]]:
    """The numbered rows of a table of pandas, polars, pyarrow or `datasets`, or of an iterable.

    The tables' own methods are called, so none of these packages is imported. Rows of an iterable are mappings,
    named tuples or dataclasses. Raises UsageError, with the number of the row, for anything else; DataError, with row
    and column, for what is beyond the bounds, and for objects that raise when they are looked at.
    """
    kind = type(source).__name__
    try:
        rows: Iterable[Any]
        if hasattr(source, "to_pylist"):
            rows = _table_rows(source)
        elif hasattr(source, "iter_rows"):
            rows = source.iter_rows(named=True)
        elif hasattr(source, "convert_dtypes"):
            rows = _frame_rows(source)
        elif hasattr(source, "with_format") and hasattr(source, "features"):
            rows = dataset_rows(source)
        elif isinstance(source, Iterable):
            rows = source
        else:
            raise UsageError(
                f"a {kind} holds no rows; expected a table of pandas, polars or pyarrow, a list of dicts ..."
            )
    except UsageError:
        raise
    except Exception as error:
        raise DataError(f"a {kind} cannot be read: {error_text(error)}") from None
    for number, row in bounded(rows, "row", bounds, source):
        try:
            if hasattr(row, "_asdict"):
                row = row._asdict()
            elif dataclasses.is_dataclass(row):
                row = {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}
            if not isinstance(row, Mapping):
                raise UsageError(
                    f"row {number} is a {type(row).__name__} ({shown(row)}); expected a dict, a named tuple or a "
                    "dataclass"
                )
            record = _plain_record(row)
        except FairAgentError:
            raise
        except Exception as error:
            raise _unreadable(f"row {number}", error) from None
        yield number, record


def _frame_rows(source: Any) -> Iterator[Mapping[Any, Any]]:
    """The rows of a DataFrame of pandas, whose categories are written out a batch at a time."""
    if len(source.columns) > MOST_COLUMNS:
        raise Malformed(too_many_columns(len(source.columns)))
    # Whole numbers beside empty cells are no fractions, and an empty cell is None.
    frame = source.convert_dtypes()
    for start in range(0, len(frame), BATCH):
        part = frame.iloc[start : start + BATCH].astype(object)
        yield from part.where(part.notna(), None).to_dict("records")


def parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Every row of a Parquet file; Malformed, naming column and bound, where it stands for far more than it is."""
    from pyarrow.parquet import ParquetFile

    size = path.stat().st_size
    with open_to_read(path) as file:
        file.seek(max(0, size - 8))
        footer, mark = int.from_bytes(file.read(4), "little"), file.read()
    if footer > LARGEST_FOOTER and mark == b"PAR1":
        raise Malformed(f"a footer of {footer:,} bytes, more than {LARGEST_FOOTER:,} (bound on columns)")
    with ParquetFile(path) as plainly:
        about = plainly.metadata
    if about.num_columns > MOST_COLUMNS:
        raise Malformed(too_many_columns(about.num_columns))
    if about.num_rows * about.num_columns > MOST_CELLS * max(size, 10**6):
        cells = f"{about.num_rows:,} rows of {about.num_columns:,} columns in {size:,} bytes"
        raise Malformed(f"{cells}, more than {MOST_CELLS} cells a byte (bound on rows)")
    schemas = [about.schema.column(place) for place in range(about.num_columns)]
    texts, unpacked = [schema.path for schema in schemas if schema.physical_type == "BYTE_ARRAY"], Unpacked(size)
    # Texts as dictionaries: a batch of them is small, whatever it stands for.
    with ParquetFile(path, metadata=about, read_dictionary=texts) as file:
        for group in range(about.num_row_groups):
            of_group, a_row = about.row_group(group), 1.0
            for place, schema in enumerate(schemas):
                column = of_group.column(place)
                numbers = 0 if schema.path in texts else column.num_values * max(schema.length, WIDTH)
                a_row += numbers / max(1, of_group.num_rows)
                packed, nested = column.total_compressed_size, schema.max_repetition_level > 0
                most = max(UNPACKED, HIGHEST_RATIO * packed)
                if (bytes := max(column.total_uncompressed_size, numbers if nested else 0)) > most:
                    values = f"{column.num_values:,} values of {bytes:,} bytes in {packed:,}"
                    raise Malformed(f"column {schema.path!r}: {values}, more than {most:,} (bound on decoded bytes)")
            for batch in file.iter_batches(max(1, min(BATCH, int(DECODED / a_row))), row_groups=[group]):
                yield from _batch_rows(batch, unpacked)


def _table_rows(table: Any) -> Iterator[dict[str, Any]]:
    """The rows of a table of Arrow; ArrowInvalid where its offsets lead elsewhere."""
    if len(table.schema.names) > MOST_COLUMNS:
        raise Malformed(too_many_columns(len(table.schema.names)))
    # Nobody looks at them who reads it.
    table.validate(full=True)
    for batch in table.to_batches(max_chunksize=BATCH) if hasattr(table, "to_batches") else [table]:
        yield from _batch_rows(batch)


def _batch_rows(batch: Any, unpacked: Unpacked | None = None) -> Iterator[dict[str, Any]]:
    """The rows of a batch; Malformed where one would decode to more than `DECODED`, and what `unpacked` raises."""
    sizes = [_decoded(column) for column in batch.columns]
    names, rows, largest = batch.schema.names, batch.num_rows, max(sizes, default=0)
    if sum(sizes) > DECODED and rows > 1:
        yield from _batch_rows(batch.slice(0, rows // 2), unpacked)
        yield from _batch_rows(batch.slice(rows // 2), unpacked)
        return
    try:
        if sum(sizes) > DECODED:
            raise Malformed(f"a cell of {largest:,} bytes, more than {DECODED:,} (bound on decoded bytes)")
        if unpacked:
            unpacked.add(sum(sizes))
    except Malformed as error:
        raise Malformed(f"column {names[sizes.index(largest)]!r}: {error}") from None
    columns, same = list[Any](), dict[str, str]()
    for column in batch.columns:
        is_texts = _name(column.type) == "dictionary" and _name(column.type.value_type) in TEXT_TYPES
        columns.append((column.dictionary_decode() if is_texts else column).to_pylist())
    for cells in zip(*columns, strict=True):
        # Of equal texts one is kept.
        shared = (same.setdefault(cell, cell) if isinstance(cell, str) else cell for cell in cells)
        yield _plain_record(dict(zip(names, shared, strict=True)))


def _name(kind: Any) -> str:
    """What Arrow calls a type, without what is in it."""
    return str(kind).partition("<")[0]


def _decoded(array: Any) -> int:
    """How many bytes the texts of an array of Arrow will take once dictionaries are written out, and its lists."""
    from pyarrow import compute

    kind = _name(array.type)
    if kind == "dictionary" and _name(array.type.value_type) in TEXT_TYPES:
        lengths = compute.binary_length(array.dictionary).cast("int64")
        return int(compute.sum(lengths.take(array.indices)).as_py() or 0)
    if kind in TEXT_TYPES:
        return int(compute.sum(compute.binary_length(array).cast("int64")).as_py() or 0)
    if kind == "struct":
        return sum(map(_decoded, array.flatten()))
    if kind == "map":
        first, count = array.offsets[0].as_py(), array.offsets[-1].as_py() - array.offsets[0].as_py()
        return 2 * WIDTH * int(count) + sum(_decoded(part.slice(first, count)) for part in (array.keys, array.items))
    if kind in ("list", "large_list", "fixed_size_list"):
        inner = array.flatten()
        return WIDTH * len(inner) + _decoded(inner)
    return 0


def check_dataset(files: Iterable[Path]) -> None:
    """Malformed for files of a dataset that stand for far more than they are: `datasets` reads them as a whole.

    It writes neither dictionaries nor packed batches, of which one at a time is unpacked here; anything else is mapped.
    """
    import pyarrow

    def takes_its_place(kind: Any) -> bool:
        strange = _name(kind).endswith(("dictionary", "run_end_encoded", "_view"))
        return not strange and all(takes_its_place(kind.field(place).type) for place in range(kind.num_fields))

    for path in files:
        unpacked = Unpacked(path.stat().st_size)
        with pyarrow.memory_map(str(path)) as source, pyarrow.ipc.open_stream(source) as stream:
            if strange := [field.name for field in stream.schema if not takes_its_place(field.type)]:
                raise Malformed(
                    f"column {strange[0]!r} of {path.name}: a dictionary, runs or views (bound on decoded bytes)"
                )
            for batch in stream:
                unpacked.add(batch.nbytes)


def dataset_rows(dataset: Any) -> Iterator[dict[str, Any]]:
    """The rows of a `datasets.Dataset`; classes have their names, pictures and sounds are not decoded."""
    if len(dataset.column_names) > MOST_COLUMNS:
        raise Malformed(too_many_columns(len(dataset.column_names)))
    classes = {name: feature.names for name, feature in (dataset.features or {}).items() if hasattr(feature, "int2str")}
    for table in dataset.with_format("arrow").iter(batch_size=BATCH):
        for row in _table_rows(table):
            for name, names in classes.items():
                # What has no class is None or -1.
                row[name] = names[row[name]] if row[name] in range(len(names)) else None
            yield row
