"""Records of files: JSON lines, tab- and comma-separated lines, Parquet, a folder of Hugging Face's `datasets`.

Files may be packed; a byte order mark, CRLF ends and blank lines are accepted. Whatever cannot be read becomes an error
with its line in `Faults`, and the reading goes on where it can, so that all are reported at once. The number of a
record of columns is that of its row, from 1. Rows may have no ids of their own: these are then made at each reading of
what the row holds, so that a row that is taken out changes the id of no other, but of one that had to make way for it.
"""

import codecs
import csv
import hashlib
import io
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from fairagent.collection.config import CONTENT, ROW, RecordsFile, template_fields
from fairagent.collection.rows import check_dataset, dataset_rows, parquet_rows
from fairagent.errors import DataError, Fault
from fairagent.settings.faults import no_such
from fairagent.storage.files import open_to_read
from fairagent.storage.packages import expect_installed
from fairagent.storage.readers import MOST_COLUMNS, Malformed, file_text, parse_json, too_many_columns, unpacked
from fairagent.types.clean import shown as shown
from fairagent.types.common import counted
from fairagent.types.common import listed as listed

MOST_FAULTS = 1000
"""So many errors are reported word for word; further ones are counted."""
LONGEST_LINE = 1 << 24
"""Bytes of a line; of a longer one, such as a few kilobytes of gzip can hold, no more is read."""
LONGEST_ID = 255
"""Bytes of UTF-8 that an id may have."""
UTF8 = ("utf-8",)
FORMS = (
    "what can be read: JSON lines, TSV (`format: tsv`), CSV (`format: csv`, its columns named), Parquet, a folder of "
    "Hugging Face's datasets; of topics also TREC's <top>, XML and SMART's .I/.W; of judgments TREC's four columns"
)
DATASET = "state.json"
"""The file in the folder of a dataset that `save_to_disk` wrote."""
ROW_WARNING = (
    "the ids are numbers of rows (`id: '@row'`): where a row is deleted, all rows after it get the id of another "
    f"document, and judgments and labels by id name the wrong ones; `id: '{CONTENT}'` lets the others keep theirs"
)
Record = Mapping[str, Any]
Rows = Iterable[tuple[int, Record]]


class Faults:
    """A growing list of errors; readers add to it and go on, `check` raises them together.

    `mended` are the ids that were no error, as they could be mended: on which line, what it was and is now.
    """

    def __init__(self) -> None:
        self.entries: list[Fault] = []
        self.mended: list[str] = []
        self.count = 0

    def __bool__(self) -> bool:
        return self.count > 0

    def add(self, path: Path, line: int | None, message: str) -> None:
        """Note one error; `line` counts from 1, None means the file as a whole."""
        self.count += 1
        if len(self.entries) < MOST_FAULTS:
            self.entries.append(Fault(path, line, message))

    def check(self, what: str) -> None:
        """Raise one DataError with all errors of `what`; return where there is none."""
        if self:
            beyond = "" if self.count <= MOST_FAULTS else f" (the first {MOST_FAULTS} are listed)"
            raise DataError(f"{what}: {counted(self.count, 'error')}{beyond}", self.entries)


def records(path: Path, fields: RecordsFile, faults: Faults) -> Iterator[tuple[int, Record]]:
    """The records of a file, each with the number of its line or row; what is wrong is added to `faults`.

    Each has an id in the field `fields.id` where that is `@row` or `@content`, or its `ids` are to be mended, which
    takes a second reading.
    """
    read = partial(_records, path, fields)
    if not fields.ids:
        return with_ids(read(faults), fields.id)
    return mended(read(faults), fields.id, faults, whole_ids(read(Faults()), fields.id))


def _records(path: Path, fields: RecordsFile, faults: Faults) -> Iterator[tuple[int, Record]]:
    """The records as they are in the file."""
    form, encodings = form_of(path, fields.format), fields.encoding or UTF8
    if form == "jsonl":
        return json_records(path, faults, encodings)
    if form in ("tsv", "csv"):
        return csv_records(path, faults, fields.columns, encodings, tsv=form == "tsv")
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


def count_records(path: Path, fields: RecordsFile) -> int:
    """About how many records the file holds; 0 where that cannot be told."""
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


def lines(
    path: Path, faults: Faults, blank: bool = False, encodings: Sequence[str] = UTF8
) -> Iterator[tuple[int, str]]:
    """Every line that is not blank (with `blank`: every line), without its end, with its number (from 1).

    Each is in the first of the `encodings` that it fits.
    """
    number = 0
    try:
        with open_to_read(path, pipes=True) as file:
            stream: Any = unpacked(file)
            wide = codecs.lookup(encodings[0]).name.startswith(("utf-16", "utf-32"))
            if wide:
                # Their line ends are no single bytes.
                stream = io.TextIOWrapper(stream, encodings[0], newline="\n")
            for number, raw in enumerate(iter(partial(stream.readline, LONGEST_LINE), "" if wide else b""), start=1):
                if len(raw) == LONGEST_LINE:
                    faults.add(path, number, f"longer than {LONGEST_LINE:,} bytes; from here on nothing is read")
                    return
                try:
                    text = (raw if wide else decode(raw, encodings)).rstrip("\r\n")
                except UnicodeDecodeError as error:
                    byte = f"byte 0x{raw[error.start]:02x} at column {error.start + 1}"
                    name = " or ".join(encodings).replace("utf-8", "UTF-8")
                    faults.add(path, number, f"not {name} ({byte}); convert the file, e.g. with iconv")
                    continue
                if number == 1:
                    text = text.removeprefix("\ufeff")
                if blank or text.strip(" "):
                    yield number, text
    except FileNotFoundError:
        faults.add(path, None, "no such file")
    except Malformed as error:
        faults.add(path, number + 1, f"{error}; from here on nothing is read")
    except OSError as error:
        faults.add(path, None, f"cannot be read ({error.strerror or error})")
    except UnicodeError as error:
        faults.add(path, number + 1, f"not {encodings[0]} ({error}); from here on nothing is read")
    except ValueError as error:
        faults.add(path, None, f"no path of a file ({error})")


def decode(raw: bytes, encodings: Sequence[str]) -> str:
    """The text of these bytes, in the first of the encodings that they fit; UnicodeDecodeError for none."""
    for encoding in encodings[:-1]:
        with suppress(UnicodeDecodeError):
            return raw.decode(encoding)
    return raw.decode(encodings[-1])


def json_records(path: Path, faults: Faults, encodings: Sequence[str] = UTF8) -> Iterator[tuple[int, Record]]:
    """Every JSON object of a file with one object a line, with its line number; of a file in another form one error."""
    for place, (number, line) in enumerate(lines(path, faults, encodings=encodings)):
        try:
            record = parse_json(line)
        except Malformed as error:
            if not place and not re.match(r'\s*\{\s*"', line):
                faults.add(path, number, f"no line of JSON: {shown(line)}; {FORMS}")
                return  # every further line would say the same
            faults.add(path, number, f"not JSON ({error}): {shown(line)}; one object a line is expected")
            continue
        if not isinstance(record, dict):
            faults.add(path, number, f"expected a JSON object, got a {type(record).__name__}: {shown(line)}")
        elif "\\ud" in line.lower() and re.search("[\ud800-\udfff]", json.dumps(record, ensure_ascii=False)):
            faults.add(path, number, "holds half of a surrogate pair (\\ud...), which is no Unicode text")
        elif len(record) > MOST_COLUMNS:
            faults.add(path, number, too_many_columns(len(record)))
        else:
            yield number, record


def csv_records(
    path: Path, faults: Faults, columns: Sequence[str] = (), encodings: Sequence[str] = UTF8, tsv: bool = False
) -> Iterator[tuple[int, Record]]:
    """Every row of a CSV file as column name -> cell, with the number of the line that it begins on.

    As RFC 4180 and spreadsheets have it: cells may be quoted, and then hold line ends. The separator is whichever of
    comma, semicolon and tab the first line has most of; in a `tsv` it is the tab, and quotes are ordinary characters.
    The first row names the columns, unless `columns` does.
    """
    numbered, hint = lines(path, faults, blank=not tsv, encodings=encodings), ""
    rows: Iterator[tuple[int, list[str]]]
    if tsv:
        rows = ((number, line.split("\t")) for number, line in numbered)
    else:
        head = next(((number, text) for number, text in numbered if text.strip(" ")), (0, ""))
        rows = csv_rows(chain([head], numbered), max(",;\t", key=head[1].count), path, faults)
        hint = "; a cell that holds a separator is quoted"
    names = list(columns)
    for number, cells in rows:
        if not names:
            names = [cell.strip() for cell in cells]
            if len(names) > MOST_COLUMNS:
                faults.add(path, number, too_many_columns(len(names)))
                return
            if len(set(names)) < len(names):
                faults.add(path, number, f"a column name occurs twice: {listed(names)}")
                return
        elif len(cells) != len(names):
            expected = f"expected {len(names)} columns ({listed(names)}), got {len(cells)}"
            faults.add(path, number, f"{expected}: {shown(cells)}{hint}")
        else:
            yield number, dict(zip(names, cells, strict=True))


def csv_rows(
    numbered: Iterable[tuple[int, str]], separator: str, path: Path, faults: Faults
) -> Iterator[tuple[int, list[str]]]:
    """The cells of every row that is not empty, as RFC 4180 has them, with the number of the line it begins on."""
    # The limit is the process's own; as it is, a text of more than 128 kB is an error.
    csv.field_size_limit(LONGEST_LINE)
    read, size = list[int](), 0

    def texts() -> Iterator[str]:
        nonlocal size
        for number, text in numbered:
            read.append(number)
            size += len(text)
            if size > LONGEST_LINE:
                message = f"a row of more than {LONGEST_LINE:,} characters (bound on a row)"
                faults.add(path, read[0], f"{message}; from here on nothing is read")
                return
            yield f"{text}\n"

    reader = csv.reader(texts(), delimiter=separator, strict=True)
    while True:
        read.clear()
        size = 0
        try:
            if cells := next(reader):
                yield read[0], cells
        except StopIteration:
            return
        except csv.Error as error:
            message = f"no row of a CSV file ({error}); a quote within a quoted cell is written twice"
            faults.add(path, read[0], message)


def _column_records(path: Path, form: str, faults: Faults) -> Iterator[tuple[int, Record]]:
    # Here and not above: it takes half a second to load.
    import pyarrow

    number = 0
    try:
        if form == "dataset":
            from datasets import load_from_disk

            check_dataset(file for file in files_of(path) if file.suffix == ".arrow" and file.is_file())
            rows: Iterable[Record] = dataset_rows(load_from_disk(str(path)))
        else:
            rows = parquet_rows(path)
        for number, record in enumerate(rows, start=1):
            yield number, record
    except FileNotFoundError:
        faults.add(path, None, "no such file")
    except Malformed as error:
        faults.add(path, number + 1, f"{error}; from here on nothing is read")
    except (
        # What the readers raise, beside Arrow's own, of a file that is damaged or takes more than there is.
        *(OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, MemoryError),
        pyarrow.ArrowException,
    ) as error:
        what = "a Parquet file" if form == "parquet" else "a dataset of Hugging Face"
        faults.add(path, number + 1, f"cannot be read as {what} from here on ({shown(str(error), 120)})")


def is_dataset(path: Path) -> bool:
    """Whether it is the folder of a dataset that Hugging Face's `save_to_disk` wrote."""
    # Not by Path: a name that is too long for the system is a file that cannot be read, which is said later.
    return os.path.isfile(path / DATASET)


def splits_of(path: Path) -> list[str]:
    """The folders of a dataset that was saved in several splits; none where it is something else."""
    if not (path / "dataset_dict.json").is_file():
        return []
    return sorted(f"{path.name}/{folder.name}" for folder in path.iterdir() if is_dataset(folder))


def files_of(path: Path) -> list[Path]:
    """The files whose bytes the records depend on: itself, or those of the dataset in this folder."""
    if not is_dataset(path):
        return [path]
    try:
        state = parse_json(file_text(path / DATASET, 1 << 24))
        return [*(path / str(file["filename"]) for file in state["_data_files"]), path / "dataset_info.json"]
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
    id = re.sub(r"[\s\x00]+", "_", str(value).strip())
    if len(id.encode("utf-8", "surrogatepass")) <= LONGEST_ID:
        return id
    start = id.encode("utf-8", "ignore")[: LONGEST_ID - 40].decode("utf-8", "ignore")
    return f"{start}-{_digest(id)}"


def with_ids(rows: Rows, id: str) -> Iterator[tuple[int, Record]]:
    """The rows, with the field `id` where that is the number of the row (`@row`) or its content (`@content`)."""
    if id == ROW:
        return ((number, {**row, ROW: place}) for place, (number, row) in enumerate(rows, start=1))
    return mended(rows, id, Faults(), ()) if id == CONTENT else iter(rows)


def whole_ids(rows: Rows, id: str) -> set[str]:
    """The ids of the rows that need no mending; about 100 bytes each."""
    cells = (row.get(id) for _, row in rows)
    return {str(cell) for cell in cells if (name := plain_id(cell)) and name == str(cell)}


def mended(rows: Rows, id: str, faults: Faults, whole: Container[str]) -> Iterator[tuple[int, Record]]:
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


def field_reader(field: str) -> Callable[[Record], str]:
    """A function that reads `field` of a record, or fills a template such as "{q_id}-{d_id}".

    It raises ValueError, saying which fields there are, where one is missing or is no text.
    """
    names = template_fields(field)
    if not names:
        return lambda record: read_text(record, field)
    return lambda record: field.format_map({name: read_text(record, name) for name in names})


def read_text(record: Record, name: str) -> str:
    """One field as text (whole numbers become text); ValueError where it is missing or something else."""
    value = record.get(name)
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if name not in record:
        raise ValueError(no_such("field", name, record))
    raise ValueError(f"field {name!r} is {shown(value)}, expected text")


def checked_id(id: str, what: str) -> str:
    """`id` itself; ValueError where no TREC file could hold it: empty, with white space, or too long."""
    if not isinstance(id, str):
        raise ValueError(f"the {what} id {shown(id)} is no text")
    if not id:
        raise ValueError(f"the {what} id is empty")
    if re.search(r"[\s\x00]", id):
        raise ValueError(f"the {what} id {shown(id)} holds white space; replace it, e.g. by '_'")
    if len(id.encode("utf-8", "surrogatepass")) > LONGEST_ID:
        raise ValueError(f"the {what} id {shown(id)} is longer than {LONGEST_ID} bytes")
    return id


def plain_number(id: str, digits: int = 0) -> str:
    """A whole number without `.0` at its end, and with zeros before it to so many `digits`; anything else as it is.

    >>> plain_number("007"), plain_number("7.0", 3), plain_number("000"), plain_number("d07", 9)
    ('7', '007', '0', 'd07')
    """
    match = re.fullmatch(r"0*([0-9]+?)(\.0+)?", id, re.ASCII)
    return match[1].zfill(digits) if match else id


def same_ids(ids: Collection[str], others: Iterable[str]) -> tuple[dict[str, str], str]:
    """Those of `ids` that are among `others`, each with what it is called there; and a note on those that differ.

    An id of which there is none is joined with the one that is the same whole number but for zeros before it or `.0` at
    its end, where on both sides there is one such id alone.
    """
    there, alike = dict.fromkeys(others), dict[str, list[str]]()
    for other in there:
        alike.setdefault(plain_number(other), []).append(other)
    counts = Counter(map(plain_number, ids))
    joined = {
        id: same[0]
        for id in ids
        if id not in there and counts[plain := plain_number(id)] == len(same := alike.get(plain, [])) == 1
    }
    named = {id: joined.get(id, id) for id in ids if id in there or id in joined}
    pairs = listed([f"{id} (there {other})" for id, other in joined.items()], 5)
    message = f"{counted(len(joined), 'topic')} joined with ids that differ by zeros before them or `.0`: {pairs}"
    return named, message if joined else ""
