"""How requests to a server leave and answers come in: one deadline for all waits, sizes limited, no redirects.

httpx and httpcore limit each wait alone, so that a server that sends a byte now and then could hold a request for ever.
Here each wait (connecting, TLS, sending, head and body of the answer) may take what is left until one deadline. A
redirect is never followed: the next host would get the prompt. Of an answer's head only the content type is passed on,
and its text is UTF-8, as JSON is: no charset, cookie or coding of a server's choice reaches a decoder.
"""

from __future__ import annotations

import math
import os
import socket
import ssl
import time
import weakref
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import Any
from urllib.parse import urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx

from fairagent.errors import BackendUnavailable, FatalModelError, ModelError, TransientModelError
from fairagent.llm.endpoint import Endpoint
from fairagent.llm.faults import MOST_VALUES, BadStatus, broken_off, quote, retry_after
from fairagent.storage.cancellation import abandonable, ended_by

MOST_CONNECTIONS = 1000
"""Open at a time, to one server; 100 of them stay open while idle."""
LONGEST_WAIT = 86_400.0
"""Seconds: the operating system takes no wait without an end."""
MOST_BYTES = 16 << 20
"""The longest answer that is read, packed or unpacked: 16 MB, thousands of times what a page of text takes."""
LONGEST_LINE = 1 << 20
"""The longest line of a stream, in bytes; a line holds a few words."""
MOST_OF_AN_ERROR = 1 << 16
"""Bytes that are read of the body of an error: a sentence stands in it."""
_PIECE = 1 << 16
"""Bytes sent at a time, since each has a wait of its own; bytes unpacked at a time, since few may hold gigabytes."""
_GZIP_OR_ZLIB = zlib.MAX_WBITS | 32
_NETWORK_ERRORS = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.UnsupportedProtocol,
    ValueError,  # h11, of a length with thousands of digits
)

_deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """All that this thread sends and receives inside the block may take so many seconds together, waits included."""
    token = _deadline.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _deadline.reset(token)


def _left(timeout: float | None) -> float:
    """The seconds that the next wait may take; ReadTimeout where there are none."""
    left = _deadline.get() - time.monotonic()
    if left <= 0:
        raise httpcore.ReadTimeout("no time left")
    return min(left, LONGEST_WAIT if timeout is None else timeout, LONGEST_WAIT)


class _TimedBackend(httpcore.SyncBackend):
    """Opens connections in the time that is left; the system's search for a name's addresses has limits of its own."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        # Neither the search for a name's addresses nor connecting can be broken off.
        connect = partial(self._connect, host, port, timeout, local_address, socket_options)
        return abandonable(connect, lambda stream: stream.close())

    def _connect(
        self, host: str, port: int, timeout: float | None, local_address: str | None, options: Iterable[Any] | None
    ) -> httpcore.NetworkStream:
        try:
            entries = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(str(error)) from error
        failure: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in dict.fromkeys(str(entry[4][0]) for entry in entries):
            try:
                return _TimedStream(super().connect_tcp(address, port, _left(timeout), local_address, options))
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure


class _TimedStream(httpcore.NetworkStream):
    """A connection that reads and writes in the time that is left, and is broken off where the work is cancelled."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        with ended_by(self._break_off):
            return self._stream.read(max_bytes, _left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        with ended_by(self._break_off):
            for start in range(0, len(buffer), _PIECE):
                self._stream.write(buffer[start : start + _PIECE], _left(timeout))

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        # The socket of TLS takes the place of this one at once, and is not to be had before the handshake is done: a
        # second one of the same connection ends it as well.
        number = self._stream.get_extra_info("socket").fileno()
        with closing(socket.socket(fileno=os.dup(number))) as second, ended_by(partial(_break_off, second)):
            return _TimedStream(self._stream.start_tls(ssl_context, server_hostname, _left(timeout)))

    def close(self) -> None:
        self._stream.close()

    def _break_off(self) -> None:
        _break_off(self._stream.get_extra_info("socket"))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _break_off(connected: socket.socket) -> None:
    with suppress(OSError):
        # The plain socket's: that of TLS says goodbye first, in the middle of what another thread reads.
        socket.socket.shutdown(connected, socket.SHUT_RDWR)


def open_pool(base_url: str, tls: ssl.SSLContext | None = None) -> httpcore.ConnectionPool:
    """The connections to the server at `base_url`, through the proxy that the environment names for it.

    `tls` checks its certificate, None by the usual authorities. Raises BackendUnavailable for an unusable proxy.
    """
    address = httpx.URL(base_url)
    proxies = getproxies()
    direct = proxy_bypass(address.host) or proxy_bypass(address.netloc.decode("ascii"))
    named = "" if direct else proxies.get(address.scheme) or proxies.get("all")
    options: dict[str, Any] = {
        "network_backend": _TimedBackend(),
        "max_connections": MOST_CONNECTIONS,
        "max_keepalive_connections": MOST_CONNECTIONS // 10,
        "keepalive_expiry": 5.0,
    }
    if address.scheme == "https":
        # Reading the certificates takes 20 ms, which a server on this machine need not cost.
        options["ssl_context"] = tls or httpx.create_ssl_context()
    if not named:
        return httpcore.ConnectionPool(**options)
    try:
        proxy = httpx.Proxy(named if "://" in named else f"http://{named}")
        if proxy.url.scheme.startswith("socks5"):
            return httpcore.SOCKSProxy(str(proxy.url), proxy.raw_auth, **options)
        return httpcore.HTTPProxy(str(proxy.url), proxy.raw_auth, proxy_ssl_context=proxy.ssl_context, **options)
    except (ValueError, httpx.InvalidURL, ImportError, RuntimeError) as error:
        raise BackendUnavailable(
            f"the proxy that the environment names for {address.host} cannot be used "
            f"({type(error).__name__}); it has to be http://HOST:PORT. To go without, add {address.host} to NO_PROXY"
        ) from None


class Transport(httpx.BaseTransport):
    """Sends requests to one endpoint.

    It raises TransientModelError (no connection, not in time, broken off), FatalModelError (a redirect, packed in an
    unknown way), ModelError (too large), and BadStatus for what is neither success nor redirect.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._pool = open_pool(endpoint.base_url)
        # A client that nobody closes, as users' own may be, leaves no socket open.
        weakref.finalize(self, self._pool.close)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """The answer to `request`, a success; its body is still to be read."""
        assert isinstance(request.stream, httpx.SyncByteStream)
        url = request.url
        target = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        sent = httpcore.Request(
            request.method, target, headers=request.headers.raw, content=request.stream, extensions=request.extensions
        )
        failure: ModelError
        try:
            answer = self._pool.handle_request(sent)
        except _NETWORK_ERRORS as error:
            failure = _network_error(error, self._endpoint.host, begun=False)
        else:
            return self._checked(answer, str(url))
        # Out of the handler, so that the client's error, which knows the request, is not its context.
        raise failure

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()

    def _checked(self, answer: httpcore.Response, url: str) -> httpx.Response:
        head: dict[str, str] = {}
        for name, value in answer.headers:
            head.setdefault(name.decode("ascii", "ignore").lower(), value.decode("ascii", "ignore"))
        host = self._endpoint.host
        body = _Body(answer, head.get("content-encoding", ""), host)
        if 200 <= answer.status < 300:
            content_type = head.get("content-type", "").partition(";")[0]
            return httpx.Response(answer.status, headers={"content-type": content_type}, stream=body)
        try:
            if 300 <= answer.status < 400:
                where = quote(_place(url, head.get("location", "")), self._endpoint)
                raise FatalModelError(
                    f"{host} answered {answer.status}: it sends requests on to {where}, where nothing was sent. If "
                    "your server is there, set model.base_url in the settings to its address"
                )
            raise BadStatus(answer.status, body.beginning(), retry_after(head))
        finally:
            body.close()


class _Body(httpx.SyncByteStream):
    """The body of an answer, in the errors of fairagent."""

    def __init__(self, answer: httpcore.Response, coding: str, host: str) -> None:
        self._answer = answer
        self._coding = coding
        self._host = host

    def __iter__(self) -> Iterator[bytes]:
        assert isinstance(self._answer.stream, Iterable)
        failure: ModelError
        try:
            yield from read(self._answer.stream, self._coding, self._host)
        except _NETWORK_ERRORS as error:
            failure = _network_error(error, self._host, begun=True)
        else:
            return
        raise failure

    def close(self) -> None:
        self._answer.close()

    def beginning(self) -> str:
        """The first words of an error; what cannot be read of them is left out, since the status says enough."""
        begun = b""
        try:
            for chunk in self:
                begun += chunk
                if len(begun) >= MOST_OF_AN_ERROR:
                    break
        except ModelError:
            pass
        return begun[:MOST_OF_AN_ERROR].decode("utf-8", "replace")


def _place(url: str, location: str) -> str:
    """Scheme, host and port that a redirect names; no path, in which a key may stand."""
    try:
        parts = urlsplit(urljoin(url, location))
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "an invalid address"
    named = location and parts.hostname
    return f"{parts.scheme}://{parts.hostname}{port}" if named else "an address that it does not name"


def _network_error(error: Exception, host: str, begun: bool) -> TransientModelError:
    """What a failure of the network is, before or after the answer has `begun`."""
    if isinstance(error, httpcore.TimeoutException):
        late = "finish in time (model.timeout and model.deadline" if begun else "answer in time (model.timeout"
        return TransientModelError(f"{host} did not {late} in the settings)")
    reason = type(error).__name__
    if begun:
        return TransientModelError(f"the answer of {host} broke off, no connection any more ({reason})")
    return TransientModelError(f"no connection to {host} ({reason}); is a server running at that address?")


def read(chunks: Iterable[bytes], coding: str, host: str) -> Iterator[bytes]:
    """The body in `chunks` of an answer of `host`, which packed it as the header content-encoding says.

    Raises ModelError beyond 16 MB, FatalModelError for a coding that was not requested and is not known here,
    TransientModelError for packed bytes that are damaged.
    """
    coding = coding.strip().lower()
    if coding in ("", "identity"):
        return _limited(chunks, host)
    if coding not in ("gzip", "x-gzip", "deflate"):
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
    unpack = zlib.decompressobj(_GZIP_OR_ZLIB)
    try:
        for chunk in chunks:
            while chunk and not unpack.eof:
                yield unpack.decompress(chunk, _PIECE)
                chunk = unpack.unconsumed_tail
        yield unpack.flush()
    except zlib.error:
        raise broken_off(host, " (its gzip is damaged)") from None


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
            yield _decoded(*begun, line)
            begun, length = [], 0
        begun.append(rest)
        length += len(rest)
        if length > LONGEST_LINE:
            raise ModelError(f"{host} sent a line of more than {LONGEST_LINE >> 20} MB; the rest was not read")
    if length:
        yield _decoded(*begun)


def _decoded(*pieces: bytes) -> str:
    return b"".join(pieces).removesuffix(b"\r").decode("utf-8", "replace")
