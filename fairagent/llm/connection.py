"""Connections whose every wait ends with the time of the request that waits (`fairagent.llm.connection`).

httpx and httpcore limit each wait alone: a server that sends a byte now and then is heard for ever. Here each one may
take what is left of the whole: connecting, greeting (TLS), sending, the head of the answer and its body.

How much time the request that this thread sends may still take, by the clock on the wall.

The body of an answer as it comes: unpacked piece by piece, never more than a stated size, as bytes or lines.
"""

from __future__ import annotations

import math
import socket
import ssl
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx

from fairagent.errors import BackendUnavailable, FatalModelError, ModelError, TransientModelError

_end: ContextVar[float] = ContextVar("end", default=math.inf)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """All that this thread sends and hears inside the block may take so many seconds together, waits included."""
    token = _end.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _end.reset(token)


def seconds_left() -> float:
    """The seconds until the end of the block (`within`) that this thread is in, <= 0 when they are over; else inf."""
    return _end.get() - time.monotonic()


MOST_CONNECTIONS = 1000
"""Open at a time, to one server; of them 100 are kept while nobody uses them."""
LONGEST_WAIT = 86_400.0
"""Seconds: the operating system takes no wait without an end."""
PIECE = 1 << 16
"""Bytes that are sent at a time: the longest that a server may let one piece wait is looked at for each."""


def open_pool(base_url: str, tls: ssl.SSLContext | None = None) -> httpcore.ConnectionPool:
    """The connections to the server at `base_url`, through the proxy that the environment names for it.

    `tls` is what its certificate is checked with, None the usual authorities.

    Raises BackendUnavailable for a proxy that cannot be used.
    """
    address = httpx.URL(base_url)
    named = getproxies()
    spared = proxy_bypass(address.host) or proxy_bypass(address.netloc.decode("ascii"))
    proxy = None if spared else named.get(address.scheme) or named.get("all")
    kept: dict[str, Any] = {
        "network_backend": TimedBackend(),
        "max_connections": MOST_CONNECTIONS,
        "max_keepalive_connections": MOST_CONNECTIONS // 10,
        "keepalive_expiry": 5.0,
    }
    if address.scheme == "https":
        # Reading the certificates takes 20 ms, which a server on this machine need not cost.
        kept["ssl_context"] = tls or httpx.create_ssl_context()
    if not proxy:
        return httpcore.ConnectionPool(**kept)
    try:
        return _through(httpx.Proxy(proxy if "://" in proxy else f"http://{proxy}"), kept)
    except (ValueError, httpx.InvalidURL, ImportError, RuntimeError) as error:
        raise BackendUnavailable(
            f"the proxy that the environment names for {address.host} cannot be used "
            f"({type(error).__name__}); it has to be http://HOST:PORT. To go without, add {address.host} to NO_PROXY"
        ) from None


def _through(proxy: httpx.Proxy, kept: dict[str, Any]) -> httpcore.ConnectionPool:
    """The same connections through a proxy; ValueError for one of another kind."""
    place, sign = str(proxy.url), proxy.raw_auth
    if proxy.url.scheme.startswith("socks5"):
        return httpcore.SOCKSProxy(place, sign, **kept)
    return httpcore.HTTPProxy(place, sign, proxy_ssl_context=proxy.ssl_context, **kept)


class TimedBackend(httpcore.NetworkBackend):
    """Opens connections in the time that is left; the system's search for a name's addresses has limits of its own."""

    def __init__(self) -> None:
        self._plain = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """A connection to the first of the host's addresses that takes one."""
        fault: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in _addresses(host, port):
            try:
                plain = self._plain.connect_tcp(address, port, _left(timeout), local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                fault = error
            else:
                return TimedStream(plain)
        raise fault


class TimedStream(httpcore.NetworkStream):
    """A connection that reads and writes in the time that is left."""

    def __init__(self, plain: httpcore.NetworkStream) -> None:
        self._plain = plain

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """The next bytes, b"" at the end."""
        return self._plain.read(max_bytes, _left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send all of `buffer`."""
        for start in range(0, len(buffer), PIECE):
            self._plain.write(buffer[start : start + PIECE], _left(timeout))

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        """The same connection, encrypted."""
        return TimedStream(self._plain.start_tls(ssl_context, server_hostname, _left(timeout)))

    def close(self) -> None:
        """Close it."""
        self._plain.close()

    def get_extra_info(self, info: str) -> Any:
        """See `httpcore.NetworkStream`."""
        return self._plain.get_extra_info(info)


def _left(timeout: float | None) -> float:
    """The seconds that the next wait may take; raises ReadTimeout where there are none."""
    left = seconds_left()
    if left <= 0:
        raise httpcore.ReadTimeout("no time left")
    return min(left, LONGEST_WAIT if timeout is None else timeout, LONGEST_WAIT)


def _addresses(host: str, port: int) -> list[str]:
    """The numeric addresses of a host, in the order in which the system names them."""
    try:
        return list(dict.fromkeys(str(found[4][0]) for found in socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)))
    except (OSError, UnicodeError) as error:
        raise httpcore.ConnectError(str(error)) from error


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
