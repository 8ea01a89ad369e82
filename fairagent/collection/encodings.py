"""In which encoding a text file of a stranger's is, guessed from its bytes, and the file as UTF-8."""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fairagent.collection.records import decode, listed
from fairagent.errors import DataError, UsageError
from fairagent.storage.files import PIPES, open_to_read
from fairagent.storage.readers import Malformed, file_bytes, unpacked

LARGEST = 1 << 30
"""Bytes of a file that is rewritten as UTF-8; so many of a longer one are looked at."""
PIECE = 1 << 20
WESTERN, REST = "cp1252", "latin-1"
"""What a file that is no UTF-8 is taken for, and where it has bytes that Windows-1252 lacks."""
MIXED = ("utf-8", WESTERN, REST)
"""What each line of a file is in that is mostly UTF-8."""
MOST_FOREIGN = 0.2
"""More of the letters beyond ASCII are hardly a Western European text."""
_BOMS = {codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32"} | {
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


@dataclass(frozen=True, slots=True)
class Decoded:
    """A file's text, the encoding that it was in, and how that is known; `mended` are lines that were in another."""

    text: str
    encoding: str
    how: str
    mended: tuple[int, ...] = ()

    @property
    def encodings(self) -> tuple[str, ...]:
        """As `encoding` of a collection file has it; empty for UTF-8."""
        if self.mended:
            return MIXED
        return () if self.encoding.lower().replace("_", "-") in ("utf-8", "utf8", "utf-8-sig") else (self.encoding,)

    def __str__(self) -> str:
        """One sentence.

        >>> print(Decoded("", "cp1252", "guessed"))
        it is in cp1252 (guessed), not in UTF-8
        """
        if self.mended:
            lines = listed(list(map(str, self.mended)), 12)
            return f"some lines are no UTF-8 and were read as {self.encoding} ({self.how}): {lines}"
        return f"it is in {self.encoding} ({self.how}), not in UTF-8"


def is_utf8(path: Path) -> bool:
    """Whether a file, packed or not, is UTF-8, or cannot be read at all, which whoever reads it says."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        if path.parent in PIPES:
            return True  # it can be read but once
        with open_to_read(path) as file:
            stream = unpacked(file)
            for _ in range(LARGEST // PIECE):
                piece = stream.read(PIECE)
                decoder.decode(piece, final=not piece)
                # In UTF-16 Western text is ASCII and bytes of zero, and so is valid UTF-8.
                if not piece or _zeros(piece):
                    return not piece
    except (OSError, ValueError) as error:
        return not isinstance(error, UnicodeDecodeError)
    return True


def decoded(path: Path, encoding: str = "") -> Decoded:
    """The text of a file in the `encoding` that is named, or else guessed.

    A byte order mark, or zeros in every other byte, tell UTF-16. A file of which most lines are UTF-8 is UTF-8, the
    other lines Windows-1252; any other file is Windows-1252, or Latin-1 where it has bytes which that lacks. Raises
    UsageError for an encoding that is unknown or cannot be guessed, DataError with the line where the named one does
    not fit, or the file is larger than `LARGEST`.
    """
    try:
        content = file_bytes(path, LARGEST, unzipped=True)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from None
    except Malformed as error:
        raise DataError(f"{path}: {error}; convert it to UTF-8, e.g. with iconv") from None
    if encoding:
        return Decoded(_read(path, content, encoding), encoding, "as you say")
    for mark, name in _BOMS.items():
        if content.startswith(mark):
            return Decoded(_read(path, content, name), name, "by its byte order mark")
    if name := _zeros(content):
        return Decoded(_read(path, content, name), name, "by its zeros")
    return _bytes_of_a_letter(path, content)


def _zeros(content: bytes) -> str:
    """The form of UTF-16 that a text without a byte order mark seems to be in; "" for none."""
    start = content[:4096]
    halves = {"utf-16-le": start[1::2], "utf-16-be": start[::2]}
    return next((name for name, half in halves.items() if half.count(0) > len(half) / 2), "")


def _bytes_of_a_letter(path: Path, content: bytes) -> Decoded:
    lines = content.split(b"\n")
    bad = tuple(number for number, line in enumerate(lines, start=1) if not _fits(line, "utf-8"))
    if 2 * len(bad) <= sum(not line.isascii() for line in lines):
        text = "\n".join(decode(line, MIXED) for line in lines)
        return Decoded(text.removeprefix("\ufeff"), WESTERN, "guessed", bad)
    letters = len(re.findall(rb"[A-Za-z\x80-\xff]", content))
    if sum(byte >= 0x80 for byte in content) > MOST_FOREIGN * letters:
        raise UsageError(
            f"{path}: not UTF-8, and its encoding cannot be guessed: it has many letters beyond ASCII; name it with "
            "--encoding, e.g. cp1251, koi8-r, shift_jis, gb18030"
        )
    name = WESTERN if _fits(content, WESTERN) else REST
    return Decoded(content.decode(name), name, "guessed")


def _fits(content: bytes, encoding: str) -> bool:
    with suppress(UnicodeDecodeError):
        content.decode(encoding)
        return True
    return False


def _read(path: Path, content: bytes, encoding: str) -> str:
    try:
        return content.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DataError(f"{path}:{line}: not {encoding} (byte 0x{content[error.start]:02x}); name another") from None
    except (LookupError, ValueError):
        raise UsageError(f"--encoding {encoding}: no encoding that Python knows; e.g. utf-8, utf-16, cp1252") from None
