"""Readers of what strangers wrote, within bounds: bytes, text, names of folders, JSON and YAML.

Python reads NaN, Infinity and numbers of any length, none of which is JSON or of use; what nests deep is read, and then
breaks whoever goes through it. A few lines of YAML can stand for billions of values, nest deeper than any stack, or
name objects to be made: a text is gone through as events first, and values are made only where it keeps to the bounds.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import math
import os
import re
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import yaml

from fairagent.errors import FairAgentError
from fairagent.storage.files import open_to_read


class Malformed(ValueError):
    """A file's contents are not what they should be; `line` counts from 1, None means the file as a whole."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


PIECE = 1 << 20
HIGHEST_RATIO = 100
"""How many times its own size a packed file may hold: texts stay below 20, bombs have 1,000."""
UNPACKED = 1 << 29
"""Bytes that a packed file which is read piece by piece may hold, however small it is."""
MOST_COLUMNS = 10_000
"""Columns of a table, or keys of an object that is a row."""
PACKED = {
    rb"\x1f\x8b": "gzip",
    rb"BZh[1-9](1AY&SY|\x17rE8P\x90)": "bzip2",
    rb"\xfd7zXZ\x00": "xz",
    rb"\x28\xb5\x2f\xfd": "zstd",
    rb"PK\x03\x04": "zip (or a spreadsheet)",
    rb"\x04\x22\x4d\x18": "lz4",
    rb"7z\xbc\xaf": "7-Zip",
}
"""How the bytes of a packed file begin (a pattern), and what has packed it."""
SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
"""How the names of packed files that can be read end."""


def unpacked_name(path: Path) -> str:
    """A file's name without the suffix of what has packed it.

    >>> unpacked_name(Path("runs/bm25.txt.xz"))
    'bm25.txt'
    """
    return path.stem if path.suffix.lower() in SUFFIXES else path.name


def unpacked(file: io.BufferedReader, least: int | None = None) -> io.BufferedReader:
    """What a file holds: of one packed by gzip, bzip2, xz or zstd what it unpacks to, whatever its name; else itself.

    Raises Malformed for what is packed otherwise, or by zstd where Python has no reader of it (`backports.zstd`; that
    of the package zstandard does not notice files that break off). The stream raises Malformed where the data are
    damaged or break off, or are more than `HIGHEST_RATIO` times the file's size and `least` bytes (`UNPACKED`).
    """
    start = file.peek(10)[:10]
    kind = next((name for pattern, name in PACKED.items() if re.match(pattern, start, re.DOTALL)), None)
    if kind is None:
        return file
    damaged: tuple[type[Exception], ...] = (EOFError, zlib.error, lzma.LZMAError, OSError)
    openers: dict[str, Callable[[Any], Any]] = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}
    if kind == "zstd":
        for name in ("backports.zstd", "compression.zstd"):
            with suppress(ImportError):
                zstd = import_module(name)
                openers["zstd"], damaged = zstd.ZstdFile, (*damaged, zstd.ZstdError)
    if kind not in openers:
        hint = ", or install backports.zstd" if kind == "zstd" else ""
        raise Malformed(f"packed by {kind}; unpack it{hint}")
    counted = Unpacked(os.fstat(file.fileno()).st_size, least)
    return io.BufferedReader(_Stream(openers[kind](file), kind, damaged, counted), PIECE)


class Unpacked:
    """Counts what comes out of a packed file of `size` bytes that is read piece by piece."""

    def __init__(self, size: int, least: int | None = None) -> None:
        self.size, self.least, self.bytes = size, least or UNPACKED, 0
        self.most = max(self.least, HIGHEST_RATIO * size)

    def add(self, count: int) -> None:
        """Count so many bytes; Malformed once they are too many for a file of that size."""
        self.bytes += count
        if self.bytes > self.most:
            bound = f"{HIGHEST_RATIO} times its size, or {self.least:,}"
            raise Malformed(f"{self.size:,} bytes that unpack to more than {self.most:,} (bound: {bound})")


@dataclass
class _Stream(io.RawIOBase):
    """What comes out of a packed file."""

    stream: Any
    kind: str
    damaged: tuple[type[Exception], ...]
    counted: Unpacked

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            count = int(self.stream.readinto(buffer))
        except self.damaged as error:
            raise Malformed(f"the {self.kind} data break off or are damaged here ({error}); fetch it again") from None
        self.counted.add(count)
        return count


def file_bytes(path: Path, most: int, unzipped: bool = False, within: Path | None = None) -> bytes:
    """The contents of a file of at most `most` bytes, of a packed file what it holds if `unzipped`.

    Raises Malformed for a larger one, and for packed data that break off or are damaged; NotRegular for what is no
    regular file, or a link that leads out of the folder `within`; OSError where the file cannot be read.
    """
    try:
        file = open_to_read(path, within)
    except ValueError as error:
        raise Malformed(f"no path of a file ({error})") from None
    # Piece by piece: of a read of so many bytes at once Python takes the memory beforehand.
    with file:
        stream, pieces, size = unpacked(file, PIECE) if unzipped else file, list[bytes](), 0
        while piece := stream.read(PIECE):
            pieces.append(piece)
            size += len(piece)
            if size > most:
                raise Malformed(f"larger than {most:,} bytes")
    return b"".join(pieces)


def first_bytes(path: Path) -> bytes:
    """How the contents of a regular file, packed or not, begin; nothing where it cannot be read, which others say."""
    try:
        with open_to_read(path) as file:
            return unpacked(file).peek(1)[:4096]
    except (OSError, ValueError, FairAgentError):
        return b""


def too_many_columns(count: int) -> str:
    """What is wrong with a row or a table that has more than `MOST_COLUMNS` of them."""
    return f"{count:,} columns, of which at most {MOST_COLUMNS:,} are read (bound on columns)"


def file_text(path: Path, most: int, within: Path | None = None, unzipped: bool = False) -> str:
    """The same as text; see `as_text`."""
    return as_text(file_bytes(path, most, unzipped, within))


def as_text(content: bytes) -> str:
    """UTF-8 without a byte order mark, lines ending in a line feed; Malformed, with the line, where it is none."""
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise Malformed(f"not UTF-8 (byte 0x{content[error.start]:02x}, line {line})", line) from None


def plain_name(name: str) -> str:
    """`name` itself; ValueError where it would lead to another folder, or is no name that a file can have.

    >>> plain_name("TREC Fair 2022")
    'TREC Fair 2022'
    """
    if name in (".", "..") or any(sign in name for sign in "/\\"):
        raise ValueError("a folder is named after it: it may not be . or .., or hold / or \\")
    if not name.isprintable() or name != name.strip():
        raise ValueError("a folder is named after it: no control characters, and no space at its ends")
    if len(name.encode("utf-8", "surrogatepass")) > 200:  # file systems take 255, and what is written beside adds to it
        raise ValueError("a folder is named after it: at most 200 bytes")
    return name


DEEPEST = 100
"""Lists and objects within each other."""
_SPACE = " \t\n\r"


def _number(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise Malformed(f"the number {text[:30]} is too large")
    return value


def _whole(text: str) -> int:
    if len(text) > 20:  # 64 bits and a sign
        raise Malformed(f"a whole number of {len(text):,} characters")
    return int(text)


def _constant(text: str) -> float:
    raise Malformed(f"{text} is no number of JSON")


# The scanner itself: half of what `json.loads` takes for a line is looking for white space around it.
_scan: Any = json.JSONDecoder(parse_int=_whole, parse_float=_number, parse_constant=_constant).scan_once  # type: ignore[attr-defined]


def parse_json(text: str) -> Any:
    """The value of a JSON text; Malformed, with the line, where it is none or exceeds the bounds."""
    too_deep = Malformed(f"more than {DEEPEST} lists and objects within each other")
    try:
        begin = 0 if text[:1] in ("{", "[") else len(text) - len(text.lstrip(_SPACE))
        try:
            value, end = _scan(text, begin)
        except StopIteration as stop:
            raise json.JSONDecodeError("Expecting value", text, stop.value) from None
        if end != len(text) and (rest := text[end:].lstrip(_SPACE)):
            raise json.JSONDecodeError("Extra data", text, len(text) - len(rest))
    except json.JSONDecodeError as error:
        raise Malformed(f"{error.msg}, line {error.lineno}, column {error.colno}", error.lineno) from None
    except RecursionError:
        raise too_deep from None
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(DEEPEST):
        parts = [outer.values() if isinstance(outer, dict) else outer for outer in level]
        level = [inner for part in parts for inner in part if isinstance(inner, dict | list)]
        if not level:
            return value
    raise too_deep


LARGEST_YAML = 1 << 20
"""Characters of a text, and bytes of a file."""
MOST_VALUES = 20_000
"""Keys and values, what an alias stands for counted each time."""
DEEPEST_YAML = 40
"""Lists and mappings within each other."""
NESTED = f"more than {DEEPEST_YAML} lists and mappings within each other"

_TIMESTAMP, _INT, _FLOAT, _BOOL = (f"tag:yaml.org,2002:{name}" for name in ("timestamp", "int", "float", "bool"))
_TRUTH = re.compile("(?:true|True|TRUE|false|False|FALSE)$")

T = TypeVar("T")

# libyaml's parser, where PyYAML was built with it: some ten times as fast.
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc]
    """Safe YAML without dates, which no setting is: 2022-01-01 is a text.

    As in YAML 1.2 only true and false are what they say: yes, no, on and off are texts, as they are in a table.
    """

    yaml_implicit_resolvers: ClassVar = {
        first: [(tag, _TRUTH if tag == _BOOL else pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
        for first, resolvers in _Base.yaml_implicit_resolvers.items()
    }

    def number(self, node: yaml.ScalarNode) -> float:
        if len(node.value) > 40:  # some of them take Python long to read
            raise _yaml_error(node, f"a number of {len(node.value):,} characters")
        value: float = self.construct_yaml_int(node) if node.tag == _INT else self.construct_yaml_float(node)
        if isinstance(value, int) and value.bit_length() > 63:
            raise _yaml_error(node, f"the number {value} is too large")
        return value


_Loader.add_constructor(_INT, _Loader.number)
_Loader.add_constructor(_FLOAT, _Loader.number)


def parse_yaml(text: str) -> Any:
    """The value of a YAML text; Malformed, with the line, where it is none or exceeds the bounds."""
    return _guarded(text, lambda: yaml.load(text, _Loader))


def compose_yaml(text: str) -> Any:
    """The same as a node (`yaml.Node`), which knows its lines; None of an empty text."""
    return _guarded(text, lambda: yaml.compose(text, _Loader))


def _guarded(text: str, read: Callable[[], T]) -> T:
    if len(text) > LARGEST_YAML:
        raise Malformed(f"larger than {LARGEST_YAML:,} characters")
    try:
        _check(text)
        return read()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = " ".join(", ".join(part for part in (error.context, error.problem) if part).split())
        if "nesting depth" in message:
            # libyaml's own bound, which newer versions reach before the first event of such a text.
            message = NESTED
        where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        raise Malformed(f"not valid YAML: {message}{where}", mark.line + 1 if mark else None) from None
    except (yaml.YAMLError, UnicodeError) as error:
        raise Malformed(f"not valid YAML: {' '.join(str(error).split())}") from None


def _check(text: str) -> None:
    """Malformed where a YAML text exceeds the bounds, what an alias stands for counted each time."""
    events = yaml.parse(text, _Loader)
    anchors: dict[str, tuple[int, int]] = {}

    def size(event: Any, depth: int) -> tuple[int, int]:
        """How many values it stands for, in how many levels; `depth` are around it."""
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in anchors:
                raise _yaml_error(event, f"the alias *{event.anchor} stands for nothing that ends before it")
            values, levels = anchors[event.anchor]
        else:
            if event.tag is not None:
                raise _yaml_error(event, "a tag (!name), which is not available; quote what should be a text")
            if isinstance(event, yaml.ScalarEvent):
                if "\0" in event.value:
                    raise _yaml_error(event, "a NUL character")
                event.value.encode()  # half of a surrogate pair is no text
            values, levels = (1, 0) if isinstance(event, yaml.ScalarEvent) else inside(event, depth)
            if event.anchor:
                anchors[event.anchor] = values, levels
        if depth + levels > DEEPEST_YAML:
            raise _yaml_error(event, NESTED)
        return values, levels

    def inside(event: Any, depth: int) -> tuple[int, int]:
        if depth >= DEEPEST_YAML:
            raise _yaml_error(event, NESTED)
        values, levels, number, keys = 1, 1, 0, set[str]()
        while not isinstance(inner := next(events), yaml.CollectionEndEvent):
            more, deeper = size(inner, depth + 1)
            values, levels = values + more, max(levels, deeper + 1)
            if values > MOST_VALUES:
                raise _yaml_error(inner, f"more than {MOST_VALUES:,} keys and values, aliases resolved")
            if isinstance(event, yaml.MappingStartEvent) and number % 2 == 0 and isinstance(inner, yaml.ScalarEvent):
                if inner.value in keys:
                    raise _yaml_error(inner, f"the key {inner.value[:60]!r} occurs twice")
                keys.add(inner.value)
            number += 1
        return values, levels

    for event in events:
        if isinstance(event, yaml.NodeEvent):
            size(event, 0)


def _yaml_error(place: Any, message: str) -> Malformed:
    line = place.start_mark.line + 1
    return Malformed(f"not valid YAML: {message} (line {line})", line)
