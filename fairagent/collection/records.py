"""Lines and records of JSON-lines, tab- and comma-separated files, packed or not; and the errors in them.

A byte order mark, CRLF ends and blank lines are accepted. Whatever cannot be read becomes an error with its line in
`Faults`, and the reading goes on where it can, so that all are reported at once.
"""

import codecs
import csv
import json
import re
import string
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import Any

from fairagent.errors import DataError, Fault
from fairagent.settings.faults import no_such
from fairagent.storage.files import open_to_read
from fairagent.storage.readers import MOST_COLUMNS, Malformed, parse_json, too_many_columns, unpacked
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
Record = Mapping[str, Any]

_NOT_IN_IDS = re.compile(r"[\s\x00]")
_OBJECT = re.compile(r'\s*\{\s*"')
_NUMBER = re.compile(r"0*([0-9]+?)(\.0+)?", re.ASCII)


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


def lines(
    path: Path, faults: Faults, blank: bool = False, encodings: Sequence[str] = UTF8
) -> Iterator[tuple[int, str]]:
    """Every line that is not blank (with `blank`: every line), without its end, with its number (from 1).

    Each is in the first of the `encodings` that it fits.
    """
    number = 0
    try:
        with open_to_read(path, pipes=True) as file:
            stream = unpacked(file)
            if codecs.lookup(encodings[0]).name.startswith(("utf-16", "utf-32")):
                # Their line ends are no single bytes.
                read, encodings = _as_utf8(stream, encodings[0]), UTF8
            else:
                read = iter(partial(stream.readline, LONGEST_LINE), b"")
            for number, raw in enumerate(read, start=1):
                if len(raw) == LONGEST_LINE:
                    faults.add(path, number, f"longer than {LONGEST_LINE:,} bytes; from here on nothing is read")
                    return
                try:
                    text = decode(raw, encodings).rstrip("\r\n")
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


def _as_utf8(stream: BufferedReader, encoding: str) -> Iterator[bytes]:
    decoder, rest = codecs.getincrementaldecoder(encoding)(), ""
    while len(rest) < LONGEST_LINE:
        piece = stream.read(1 << 16)
        *whole, rest = (rest + decoder.decode(piece, final=not piece)).split("\n")
        yield from (f"{line}\n".encode() for line in whole)
        if not piece:
            break
    if rest:
        yield rest.encode()[:LONGEST_LINE]


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
            if not place and not _OBJECT.match(line):
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


def tsv_records(
    path: Path, faults: Faults, columns: Sequence[str] = (), encodings: Sequence[str] = UTF8
) -> Iterator[tuple[int, Record]]:
    """Every line of a tab-separated file as column name -> cell; quotes are ordinary characters.

    The first line names the columns, unless `columns` does.
    """
    rows = ((number, line.split("\t")) for number, line in lines(path, faults, encodings=encodings))
    return _named_cells(rows, path, faults, columns)


def _named_cells(
    rows: Iterable[tuple[int, list[str]]], path: Path, faults: Faults, columns: Sequence[str], hint: str = ""
) -> Iterator[tuple[int, Record]]:
    """Rows as column name -> cell, the first of them being the names, unless there are `columns`."""
    names = list(columns)
    for number, cells in rows:
        if not names:
            names = [cell.strip() for cell in cells]
            if len(names) > MOST_COLUMNS or len(set(names)) < len(names):
                many = len(names) > MOST_COLUMNS
                twice = f"a column name occurs twice: {listed(names)}"
                faults.add(path, number, too_many_columns(len(names)) if many else twice)
                return
        elif len(cells) != len(names):
            expected = f"expected {len(names)} columns ({listed(names)}), got {len(cells)}"
            faults.add(path, number, f"{expected}: {shown(cells)}{hint}")
        else:
            yield number, dict(zip(names, cells, strict=True))


def csv_records(
    path: Path, faults: Faults, columns: Sequence[str] = (), encodings: Sequence[str] = UTF8
) -> Iterator[tuple[int, Record]]:
    """Every row of a CSV file as column name -> cell, with the number of the line that it begins on.

    As RFC 4180 and spreadsheets have it: cells may be quoted, and then hold line ends. The separator is whichever of
    comma, semicolon and tab the first line has most of. The first row names the columns, unless `columns` does.
    """
    numbered = lines(path, faults, blank=True, encodings=encodings)
    head = next(((number, text) for number, text in numbered if text.strip(" ")), (0, ""))
    rows = csv_rows(chain([head], numbered), max(",;\t", key=head[1].count), path, faults)
    return _named_cells(rows, path, faults, columns, "; a cell that holds a separator is quoted")


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


def field_reader(field: str) -> Callable[[Record], str]:
    """A function that reads `field` of a record, or fills a template such as "{q_id}-{d_id}".

    It raises ValueError, saying which fields there are, where one is missing or is no text.
    """
    names = template_fields(field)
    if not names:
        return lambda record: read_text(record, field)
    return lambda record: field.format_map({name: read_text(record, name) for name in names})


def template_fields(field: str) -> tuple[str, ...]:
    """The field names within braces; none where `field` is itself a name; ValueError for anything else."""
    if "{" not in field and "}" not in field:
        return ()
    names = []
    for _, name, specification, conversion in string.Formatter().parse(field):
        if name is not None:
            if not name or specification or conversion or any(mark in name for mark in ".[]"):
                raise ValueError(f"{field!r} is no template of plain {{field}} names")
            names.append(name)
    return tuple(names)


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
    if _NOT_IN_IDS.search(id):
        raise ValueError(f"the {what} id {shown(id)} holds white space; replace it, e.g. by '_'")
    if len(id.encode("utf-8", "surrogatepass")) > LONGEST_ID:
        raise ValueError(f"the {what} id {shown(id)} is longer than {LONGEST_ID} bytes")
    return id


def plain_number(id: str, digits: int = 0) -> str:
    """A whole number without `.0` at its end, and with zeros before it to so many `digits`; anything else as it is.

    >>> plain_number("007"), plain_number("7.0", 3), plain_number("000"), plain_number("d07", 9)
    ('7', '007', '0', 'd07')
    """
    match = _NUMBER.fullmatch(id)
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
