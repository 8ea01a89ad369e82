"""Whole files, as bytes and as text."""

import gzip
import io
import zlib
from pathlib import Path
from typing import IO

from fairagent.intake.malformed import Malformed

GZIP_MAGIC = b"\x1f\x8b"
PIECE = 1 << 20
HIGHEST_RATIO = 100
"""How many times its own size a gzip file may hold: texts stay below 20, bombs have 1,000."""


def file_bytes(path: Path, most: int, unzipped: bool = False) -> bytes:
    """The contents of a file of at most `most` bytes, of a gzip file what it holds if `unzipped`.

    Raises Malformed for a larger one, and for gzip data that break off or are damaged; OSError where the file cannot
    be read.
    """
    try:
        with path.open("rb") as file:
            content = _read(file, most)
            if unzipped and content.startswith(GZIP_MAGIC):
                most = min(most, max(PIECE, HIGHEST_RATIO * len(content)))
                content = _read(gzip.GzipFile(fileobj=io.BytesIO(content)), most)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise Malformed(f"the gzip data break off or are damaged ({error}); fetch it again") from None
    except Malformed:
        raise
    except ValueError as error:
        raise Malformed(f"no path of a file ({error})") from None
    return content


def _read(stream: IO[bytes] | gzip.GzipFile, most: int) -> bytes:
    """All of it, piece by piece: asked for so many bytes at once, Python takes memory for them beforehand."""
    pieces, size = [], 0
    while piece := stream.read(PIECE):
        pieces.append(piece)
        size += len(piece)
        if size > most:
            raise Malformed(f"larger than {most:,} bytes")
    return b"".join(pieces)


def file_text(path: Path, most: int) -> str:
    """The same as text; see `as_text`."""
    return as_text(file_bytes(path, most))


def as_text(content: bytes) -> str:
    """UTF-8 without a byte order mark, lines ending in a line feed; Malformed, with the line, where it is none."""
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise Malformed(f"not UTF-8 (byte 0x{content[error.start]:02x}, line {line})", line) from None
