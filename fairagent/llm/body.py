"""The body of an answer as it comes: unpacked piece by piece, never more than a stated size, as bytes or lines."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

from fairagent.errors import FatalModelError, ModelError, TransientModelError

MOST_BYTES = 16 << 20
"""The longest answer that is read, packed or unpacked: 16 MB, thousands of times what a page of text takes."""
LONGEST_LINE = 1 << 20
"""The longest line of a stream, in bytes; a line holds a few words."""
MOST_VALUES = 500_000
"""Brackets and commas of an answer, each of which may take 150 bytes when its JSON is read; lines of a stream."""
_PIECE = 1 << 16
_PACKED = frozenset({"gzip", "x-gzip", "deflate"})
_EITHER = zlib.MAX_WBITS | 32
"""For zlib: find out from the first bytes whether it is gzip or zlib (which HTTP calls deflate)."""


def read(chunks: Iterable[bytes], coding: str, host: str) -> Iterator[bytes]:
    """The body in `chunks` of an answer of `host`, which packed it as the header content-encoding says.

    Raises ModelError beyond 16 MB, FatalModelError for a coding that was not asked for and is not known here,
    TransientModelError for packed bytes that are damaged.
    """
    coding = coding.strip().lower()
    if coding in ("", "identity"):
        return _limited(chunks, host)
    if coding not in _PACKED:
        raise FatalModelError(
            f"{host} packed its answer in a way that was not asked for and is not read here (content-encoding: "
            f"{coding[:40]!r}); set the server, or the proxy before it, to send it plain or as gzip"
        )
    return _limited(_unpacked(_limited(chunks, host), host), host)


def _limited(chunks: Iterable[bytes], host: str) -> Iterator[bytes]:
    left = MOST_BYTES
    for chunk in chunks:
        left -= len(chunk)
        if left < 0:
            raise ModelError(f"{host} sent more than {MOST_BYTES >> 20} MB as one answer; the rest was not read")
        yield chunk


def _unpacked(chunks: Iterable[bytes], host: str) -> Iterator[bytes]:
    """The chunks unpacked, at most 64 kB at a time: a few bytes may stand for gigabytes."""
    unpack = zlib.decompressobj(_EITHER)
    broken = False
    try:
        for chunk in chunks:
            while chunk and not unpack.eof:
                yield unpack.decompress(chunk, _PIECE)
                chunk = unpack.unconsumed_tail
        yield unpack.flush()
    except zlib.error:
        broken = True
    if broken:
        raise TransientModelError(f"the answer of {host} broke off on the way (its gzip is damaged)")


def check_values(body: str, host: str) -> None:
    """Raise ModelError where the JSON in `body` may have more than half a million values."""
    if sum(map(body.count, "[{,")) > MOST_VALUES:
        raise ModelError(f"{host} sent an answer of more than {MOST_VALUES:,} values; it was not read")


def lines(chunks: Iterable[bytes], host: str) -> Iterator[str]:
    r"""The lines (UTF-8) of a body, as they come; they end with \n or \r\n, as those of a stream of events do.

    Raises ModelError for one without an end, and beyond half a million.

    >>> list(lines([b"da", b"ta: a\r\ndata: b\n", b"\ndata", b": \xe2\x80", b"\xa8"], "host"))
    ['data: a', 'data: b', '', 'data: \u2028']
    """
    begun: list[bytes] = []
    length = count = 0
    for chunk in chunks:
        *ended, rest = chunk.split(b"\n")
        count += len(ended)
        if count > MOST_VALUES:
            raise ModelError(f"{host} sent more than {MOST_VALUES:,} lines as one answer; the rest was not read")
        for line in ended:
            yield _text(b"".join([*begun, line]))
            begun, length = [], 0
        begun.append(rest)
        length += len(rest)
        if length > LONGEST_LINE:
            raise ModelError(f"{host} sent a line of more than {LONGEST_LINE >> 20} MB; the rest was not read")
    if length:
        yield _text(b"".join(begun))


def _text(line: bytes) -> str:
    return line.removesuffix(b"\r").decode("utf-8", "replace")
