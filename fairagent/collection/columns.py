"""Rows of what has columns: Parquet files, datasets of Hugging Face, and tables of Arrow, within bounds.

A few kilobytes of them can stand for terabytes: a dictionary's one long text for millions of rows, a run of equal
numbers in nested lists. So what a batch will decode to is known before it is decoded, and equal texts become one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from fairagent.collection.bounds import plain_record
from fairagent.storage.files import open_to_read
from fairagent.storage.readers import HIGHEST_RATIO, MOST_COLUMNS, UNPACKED, Malformed, Unpacked, too_many_columns

BATCH = 1_000
"""Rows that are read at once, at most."""
DECODED = 1 << 26
"""Bytes that one batch may decode to; where it would be more, it has fewer rows."""
LARGEST_FOOTER = 1 << 24
"""Bytes of what a Parquet file says about itself."""
MOST_CELLS = 100
"""Cells that a Parquet file may say that it has for each of its bytes; and so many millions, however small it is."""
WIDTH = 8
"""Bytes that a number counts as, within lists."""

Row = dict[str, Any]


def parquet_rows(path: Path) -> Iterator[Row]:
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
                yield from table_rows(batch, unpacked)


def table_rows(table: Any, unpacked: Unpacked | None = None) -> Iterator[Row]:
    """The rows of a table or a batch of Arrow; ArrowInvalid where its offsets lead elsewhere.

    Malformed where it has too many columns, where a row would decode to more than `DECODED`, and what `unpacked`
    raises, which counts the texts.
    """
    if len(table.schema.names) > MOST_COLUMNS:
        raise Malformed(too_many_columns(len(table.schema.names)))
    # Nobody looks at them who reads it.
    table.validate(full=True)
    for batch in table.to_batches(max_chunksize=BATCH) if hasattr(table, "to_batches") else [table]:
        yield from _within(batch, unpacked)


def _within(batch: Any, unpacked: Unpacked | None) -> Iterator[Row]:
    sizes = [decoded(column) for column in batch.columns]
    names, rows, largest = batch.schema.names, batch.num_rows, max(sizes, default=0)
    if sum(sizes) > DECODED and rows > 1:
        yield from _within(batch.slice(0, rows // 2), unpacked)
        yield from _within(batch.slice(rows // 2), unpacked)
        return
    try:
        if sum(sizes) > DECODED:
            raise Malformed(f"a cell of {largest:,} bytes, more than {DECODED:,} (bound on decoded bytes)")
        if unpacked:
            unpacked.add(sum(sizes))
    except Malformed as error:
        raise Malformed(f"column {names[sizes.index(largest)]!r}: {error}") from None
    plain = (column.dictionary_decode() if _is_texts(column.type) else column for column in batch.columns)
    columns, same = [column.to_pylist() for column in plain], dict[str, str]()
    for cells in zip(*columns, strict=True):
        # Of equal texts one is kept.
        shared = (same.setdefault(cell, cell) if isinstance(cell, str) else cell for cell in cells)
        yield plain_record(dict(zip(names, shared, strict=True)))


def _is_texts(kind: Any) -> bool:
    from pyarrow import types

    return types.is_dictionary(kind) and _is_text(kind.value_type)


def decoded(array: Any) -> int:
    """How many bytes the texts of an array of Arrow will take, and the numbers within its lists."""
    import pyarrow
    from pyarrow import compute

    kind, types = array.type, pyarrow.types
    if isinstance(array, pyarrow.ExtensionArray):
        return decoded(array.storage)
    if types.is_dictionary(kind):
        if not _texts_within(kind.value_type):
            return 0
        counts = array.indices.drop_null().value_counts()
        values = array.dictionary.take(counts.field("values"))
        if not _is_text(values.type):
            sizes = (decoded(values.slice(place, 1)) for place in range(len(values)))
            return sum(count * size for count, size in zip(counts.field("counts").to_pylist(), sizes, strict=True))
        lengths = compute.binary_length(values).cast(pyarrow.int64())
        return compute.sum(compute.multiply(lengths, counts.field("counts"))).as_py() or 0
    if types.is_run_end_encoded(kind):
        start, count = array.find_physical_offset(), array.find_physical_length()
        parts = (array.values.slice(place, 1) for place in range(start, start + count))
        return len(array) * max(map(decoded, parts), default=0)
    if types.is_string_view(kind) or types.is_binary_view(kind):
        return sum(cell.as_buffer().size for cell in array if cell.is_valid)
    if _is_text(kind):
        return compute.sum(compute.binary_length(array).cast(pyarrow.int64())).as_py() or 0
    if types.is_struct(kind):
        return sum(map(decoded, array.flatten()))
    if types.is_map(kind):
        first, count = array.offsets[0].as_py(), array.offsets[-1].as_py() - array.offsets[0].as_py()
        keys, values = array.keys.slice(first, count), array.items.slice(first, count)
        return int(2 * WIDTH * count + decoded(keys) + decoded(values))
    if _is_list(kind):
        counts = compute.sum(compute.list_value_length(array)).as_py() or 0
        # A view may name the same values many times, which flattening would write out.
        views = types.is_list_view(kind) or types.is_large_list_view(kind)
        inner = array.values if views else array.flatten()
        size = WIDTH * len(inner) + decoded(inner)
        return int(size * counts / len(inner)) if views and len(inner) else size
    return 0


def _is_list(kind: Any) -> bool:
    from pyarrow import types

    views = types.is_list_view(kind) or types.is_large_list_view(kind)
    lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return lists or views  # type: ignore[no-any-return]


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    texts = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    return texts or types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind)  # type: ignore[no-any-return]


def _texts_within(kind: Any) -> bool:
    """Whether a type is of texts, or has some inside."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return _texts_within(kind.value_type)
    return _is_text(kind) or any(_texts_within(kind.field(place).type) for place in range(kind.num_fields))


def check_dataset(files: Iterable[Path]) -> None:
    """Malformed for files of a dataset that stand for far more than they are: `datasets` reads them as a whole.

    It writes neither dictionaries nor packed batches, of which one at a time is unpacked here; anything else is mapped.
    """
    import pyarrow

    for path in files:
        unpacked = Unpacked(path.stat().st_size)
        with pyarrow.memory_map(str(path)) as source, pyarrow.ipc.open_stream(source) as stream:
            if strange := [field.name for field in stream.schema if not _is_plain(field.type)]:
                raise Malformed(
                    f"column {strange[0]!r} of {path.name}: a dictionary, runs or views (bound on decoded bytes)"
                )
            for batch in stream:
                unpacked.add(batch.nbytes)


def _is_plain(kind: Any) -> bool:
    """Whether values of a type of Arrow, and all within them, take the place that they have."""
    from pyarrow import types

    shared = (types.is_dictionary, types.is_run_end_encoded, types.is_string_view, types.is_binary_view)
    if any(is_one(kind) for is_one in (*shared, types.is_list_view, types.is_large_list_view)):
        return False
    return all(_is_plain(kind.field(place).type) for place in range(kind.num_fields))


def dataset_rows(dataset: Any) -> Iterator[Row]:
    """The rows of a `datasets.Dataset`; classes have their names, pictures and sounds are not decoded."""
    if len(dataset.column_names) > MOST_COLUMNS:
        raise Malformed(too_many_columns(len(dataset.column_names)))
    classes = {name: feature.names for name, feature in (dataset.features or {}).items() if hasattr(feature, "int2str")}
    for table in dataset.with_format("arrow").iter(batch_size=BATCH):
        for row in table_rows(table):
            for name, names in classes.items():
                # What has no class is None or -1.
                row[name] = names[row[name]] if row[name] in range(len(names)) else None
            yield row
