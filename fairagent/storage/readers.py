"""Readers of what strangers wrote: whole files as bytes and as text, names of folders, and JSON within bounds.

Python reads NaN, Infinity and numbers of any length, none of which is JSON or of use; what nests deep is read, and then
breaks whoever goes through it.
"""

import gzip
import io
import json
import math
import zlib
from pathlib import Path
from typing import IO, Any

from fairagent.storage.regular import open_to_read


class Malformed(ValueError):
    """A file's contents are not what they should be; `line` counts from 1, None means the file as a whole."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


GZIP_MAGIC = b"\x1f\x8b"
PIECE = 1 << 20
HIGHEST_RATIO = 100
"""How many times its own size a packed file may hold: texts stay below 20, bombs have 1,000."""
UNPACKED = 1 << 29
"""Bytes that a packed file which is read piece by piece may hold, however small it is."""
MOST_COLUMNS = 10_000
"""Columns of a table, or keys of an object that is a row."""


def file_bytes(path: Path, most: int, unzipped: bool = False, within: Path | None = None) -> bytes:
    """The contents of a file of at most `most` bytes, of a gzip file what it holds if `unzipped`.

    Raises Malformed for a larger one, and for gzip data that break off or are damaged; NotRegular for what is no
    regular file, or a link that leads out of the folder `within`; OSError where the file cannot be read.
    """
    try:
        with open_to_read(path, within) as file:
            content = _read(file, most)
            if unzipped and content.startswith(GZIP_MAGIC):
                most = min(most, max(PIECE, HIGHEST_RATIO * len(content)))
                content = _read(gzip.GzipFile(fileobj=io.BytesIO(content)), most)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise Malformed(f"the gzip data break off or are damaged ({error}); fetch it again") from None
    except ValueError as error:
        raise error if isinstance(error, Malformed) else Malformed(f"no path of a file ({error})") from None
    return content


def _read(stream: IO[bytes] | gzip.GzipFile, most: int) -> bytes:
    """All of it, piece by piece: of a read of so many bytes at once Python takes the memory beforehand."""
    pieces, size = [], 0
    while piece := stream.read(PIECE):
        pieces.append(piece)
        size += len(piece)
        if size > most:
            raise Malformed(f"larger than {most:,} bytes")
    return b"".join(pieces)


class Unpacked:
    """Counts what comes out of a packed file of `size` bytes that is read piece by piece."""

    def __init__(self, size: int) -> None:
        self.size, self.bytes = size, 0
        self.most = max(UNPACKED, HIGHEST_RATIO * size)

    def add(self, count: int) -> None:
        """Count so many bytes; Malformed once they are too many for a file of that size."""
        self.bytes += count
        if self.bytes > self.most:
            bound = f"{HIGHEST_RATIO} times its size, or {UNPACKED:,}"
            raise Malformed(f"{self.size:,} bytes that unpack to more than {self.most:,} (bound: {bound})")


def too_many_columns(count: int) -> str:
    """What is wrong with a row or a table that has more than `MOST_COLUMNS` of them."""
    return f"{count:,} columns, of which at most {MOST_COLUMNS:,} are read (bound on columns)"


def file_text(path: Path, most: int, within: Path | None = None) -> str:
    """The same as text; see `as_text`."""
    return as_text(file_bytes(path, most, within=within))


def as_text(content: bytes) -> str:
    """UTF-8 without a byte order mark, lines ending in a line feed; Malformed, with the line, where it is none."""
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise Malformed(f"not UTF-8 (byte 0x{content[error.start]:02x}, line {line})", line) from None


LONGEST = 200
"""Bytes of UTF-8: file systems take 255, and what is written beside adds to it."""


def plain_name(name: str) -> str:
    """`name` itself; ValueError where it would lead to another folder, or is no name that a file can have.

    >>> plain_name("TREC Fair 2022")
    'TREC Fair 2022'
    """
    if name in (".", "..") or any(sign in name for sign in "/\\"):
        raise ValueError("a folder is named after it: it may not be . or .., or hold / or \\")
    if not name.isprintable() or name != name.strip():
        raise ValueError("a folder is named after it: no control characters, and no space at its ends")
    if len(name.encode("utf-8", "surrogatepass")) > LONGEST:
        raise ValueError(f"a folder is named after it: at most {LONGEST} bytes")
    return name


DEEPEST = 100
"""Lists and objects within each other."""
LONGEST_INT = 20
"""Characters of a whole number: 64 bits and a sign."""
_SPACE = " \t\n\r"


def _int(text: str) -> int:
    if len(text) > LONGEST_INT:
        raise Malformed(f"a whole number of {len(text):,} characters")
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise Malformed(f"the number {text[:30]} is too large")
    return value


def _constant(text: str) -> float:
    raise Malformed(f"{text} is no number of JSON")


# The scanner itself: half of what `json.loads` takes for a line is looking for white space around it.
_decoder: Any = json.JSONDecoder(parse_int=_int, parse_float=_float, parse_constant=_constant)
_scan = _decoder.scan_once


def parse_json(text: str) -> Any:
    """The value of a JSON text; Malformed, with the line, where it is none or exceeds the bounds."""
    try:
        begin = 0 if text[:1] in ("{", "[") else len(text) - len(text.lstrip(_SPACE))
        value, end = _scan(text, begin)
        if end != len(text) and (rest := text[end:].lstrip(_SPACE)):
            raise json.JSONDecodeError("Extra data", text, len(text) - len(rest))
    except json.JSONDecodeError as error:
        raise _at(error) from None
    except StopIteration as stop:
        raise _at(json.JSONDecodeError("Expecting value", text, stop.value)) from None
    except RecursionError:
        raise _too_deep() from None
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(DEEPEST):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return value
    raise _too_deep()


def _at(error: json.JSONDecodeError) -> Malformed:
    return Malformed(f"{error.msg}, line {error.lineno}, column {error.colno}", error.lineno)


def _too_deep() -> Malformed:
    return Malformed(f"more than {DEEPEST} lists and objects within each other")
