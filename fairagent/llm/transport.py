"""How requests to a server leave and answers come in: one deadline for all waits, sizes limited, no redirects.

httpx and httpcore limit each wait alone, so that a server that sends a byte now and then could hold a request for ever.
Here each wait (connecting, TLS, sending, head and body of the answer) may take what is left until one deadline. A
redirect is never followed: the next host would get the prompt. Of an answer's head only the content type is passed on,
and its text is UTF-8, as JSON is: no charset, cookie or coding of a server's choice reaches a decoder.
"""

from __future__ import annotations

import logging
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
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx

from fairagent.errors import BackendUnavailable, FatalModelError, ModelError, TransientModelError
from fairagent.llm.server import MOST_VALUES, Endpoint, broken_off
from fairagent.settings import ModelSettings
from fairagent.storage.threads import abandonable, ended_by

if TYPE_CHECKING:
    from openai import OpenAI

MOST_CONNECTIONS = 1000
"""Open at a time, to one server; 100 of them stay open while idle."""
LONGEST_WAIT = 86_400.0
"""Seconds: the operating system takes no wait without an end."""
LONGEST_CONNECT = 5.0
"""Seconds that connecting may take."""
MOST_BYTES = 16 << 20
"""The longest answer that is read, packed or unpacked: 16 MB, thousands of times what a page of text takes."""
LONGEST_LINE = 1 << 20
"""The longest line of a stream, in bytes; a line holds a few words."""
MOST_OF_AN_ERROR = 1 << 16
"""Bytes that are read of the body of an error: a sentence stands in it."""
_PIECE = 1 << 16
"""Bytes sent at a time, since each has a wait of its own; bytes unpacked at a time, since few may hold gigabytes."""
_NETWORK_ERRORS = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.UnsupportedProtocol,
    ValueError,  # h11, of a length with thousands of digits
)

_deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)


class NotConnected(TransientModelError):
    """There is no connection to the server: refused, unresolved, or not in time."""


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
        opened = super().connect_tcp

        def connect() -> httpcore.NetworkStream:
            try:
                entries = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)
            except (OSError, UnicodeError) as error:
                raise httpcore.ConnectError(str(error)) from error
            failure: Exception = httpcore.ConnectError(f"{host} has no address")
            for address in dict.fromkeys(str(entry[4][0]) for entry in entries):
                try:
                    return _TimedStream(opened(address, port, _left(timeout), local_address, socket_options))
                except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                    failure = error
            raise failure

        # Neither the search for a name's addresses nor connecting can be broken off.
        return abandonable(connect, lambda stream: stream.close())


class _TimedStream(httpcore.NetworkStream):
    """A connection that reads and writes in the time that is left, and is broken off where the work is cancelled."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream
        self.get_extra_info = stream.get_extra_info  # type: ignore[method-assign]
        self.close = stream.close  # type: ignore[method-assign]

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

    def _break_off(self) -> None:
        _break_off(self._stream.get_extra_info("socket"))


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

    It raises NotConnected, TransientModelError (not in time, broken off), FatalModelError (packed in an unknown way)
    and ModelError (too large). Of an answer that is no success the body's beginning is passed on.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._pool = open_pool(endpoint.base_url)
        # A client that nobody closes, as users' own may be, leaves no socket open.
        weakref.finalize(self, self._pool.close)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """The answer to `request`, the body of a success still to be read."""
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
            head: dict[str, str] = {}
            for name, value in answer.headers:
                head.setdefault(name.decode("ascii", "ignore").lower(), value.decode("ascii", "ignore"))
            body = _Body(answer, head.get("content-encoding", ""), self._endpoint.host)
            headers = {"content-type": head.get("content-type", "").partition(";")[0]}
            if 200 <= answer.status < 300:
                return httpx.Response(answer.status, headers=headers, stream=body)
            headers |= {name: head[name] for name in ("location", "retry-after", "retry-after-ms") if name in head}
            return httpx.Response(answer.status, headers=headers, content=body.beginning())
        # Out of the handler, so that the client's error, which knows the request, is not its context.
        raise failure

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()


class _Body(httpx.SyncByteStream):
    """The body of an answer, unpacked, in the errors of fairagent."""

    def __init__(self, answer: httpcore.Response, coding: str, host: str) -> None:
        self._answer = answer
        self._coding = coding.strip().lower()
        self._host = host

    def __iter__(self) -> Iterator[bytes]:
        if self._coding not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise FatalModelError(
                f"{self._host} packed its answer in a way that was not requested and is not read here "
                f"(content-encoding: {self._coding[:40]!r}); set the server, or the proxy before it, to send it plain"
            )
        assert isinstance(self._answer.stream, Iterable)
        unpack = None if self._coding in ("", "identity") else zlib.decompressobj(zlib.MAX_WBITS | 32)
        packed = plain = 0
        failure: ModelError
        try:
            for chunk in self._answer.stream:
                packed += len(chunk)
                while chunk:
                    piece = unpack.decompress(chunk, _PIECE) if unpack else chunk
                    chunk = unpack.unconsumed_tail if unpack and not unpack.eof else b""
                    plain += len(piece)
                    if max(packed, plain) > MOST_BYTES:
                        most = MOST_BYTES >> 20
                        raise ModelError(f"{self._host} sent more than {most} MB as one answer; the rest was not read")
                    yield piece
            if unpack:
                yield unpack.flush()
            return
        except zlib.error:
            failure = broken_off(self._host, " (its gzip is damaged)")
        except _NETWORK_ERRORS as error:
            failure = _network_error(error, self._host, begun=True)
        raise failure

    def close(self) -> None:
        self._answer.close()

    def beginning(self) -> bytes:
        """The first words of an error; what cannot be read of them is left out, since the status says enough."""
        begun = b""
        with closing(self), suppress(ModelError):
            for chunk in self:
                begun += chunk
                if len(begun) >= MOST_OF_AN_ERROR:
                    break
        return begun[:MOST_OF_AN_ERROR]


def _network_error(error: Exception, host: str, begun: bool) -> TransientModelError:
    """What a failure of the network is, before or after the answer has `begun`."""
    reason = type(error).__name__
    not_connected = isinstance(error, httpcore.ConnectError | httpcore.ConnectTimeout)
    if isinstance(error, httpcore.TimeoutException) and not not_connected:
        late = "finish in time (model.timeout and model.deadline" if begun else "answer in time (model.timeout"
        return TransientModelError(f"{host} did not {late} in the settings)")
    if begun:
        return TransientModelError(f"the answer of {host} broke off, no connection any more ({reason})")
    kind = NotConnected if not_connected else TransientModelError
    return kind(f"no connection to {host} ({reason}); is a server running at that address?")


def lines(chunks: Iterable[bytes], host: str) -> Iterator[str]:
    r"""The lines (UTF-8) of a body, as they come; they end with \n or \r\n, as those of a stream of events do.

    Raises ModelError for one without an end, and beyond half a million.

    >>> list(lines([b"da", b"ta: a\r\ndata: b\n", b"\ndata", b": \xe2\x80", b"\xa8"], "host"))
    ['data: a', 'data: b', '', 'data: \u2028']
    """
    rest, count = bytearray(), 0
    for chunk in chunks:
        rest += chunk
        if b"\n" in chunk:
            *ended, rest = rest.split(b"\n")
            count += len(ended)
            if count > MOST_VALUES:
                raise ModelError(f"{host} sent more than {MOST_VALUES:,} lines as one answer; the rest was not read")
            yield from (line.removesuffix(b"\r").decode("utf-8", "replace") for line in ended)
        if len(rest) > LONGEST_LINE:
            raise ModelError(f"{host} sent a line of more than {LONGEST_LINE >> 20} MB; the rest was not read")
    if rest:
        yield rest.removesuffix(b"\r").decode("utf-8", "replace")


LOGGERS = ("openai", "openai._base_client", "httpx", "httpcore.connection", "httpcore.http11", "httpcore.proxy")
"""Those that see a request. A filter holds for the records of its own logger only, so each needs it."""
PROMPTS = "Request options"
"""How openai's record of a whole request begins."""


class _Secrecy(logging.Filter):
    """Blackens the keys of all endpoints in every record and, unless `prompts`, drops those that hold prompts."""

    def __init__(self) -> None:
        super().__init__()
        self.endpoints: set[Endpoint] = set()
        self.prompts = False

    def filter(self, record: logging.LogRecord) -> bool:
        if not self.prompts and isinstance(record.msg, str) and record.msg.startswith(PROMPTS):
            return False
        message = record.getMessage()
        if (hidden := self._hide(message)) != message:
            record.msg, record.args = hidden, ()
        if record.exc_info:
            # A traceback is text only when it is written; here it becomes text that can be blackened.
            record.exc_text = self._hide(logging.Formatter().formatException(record.exc_info))
            record.exc_info = None
        return True

    def _hide(self, text: str) -> str:
        # A copy: another thread may open a model meanwhile.
        for endpoint in tuple(self.endpoints):
            text = endpoint.hide(text)
        return text


_secrecy = _Secrecy()


def open_client(endpoint: Endpoint, settings: ModelSettings) -> OpenAI:
    """The client for a server; it repeats nothing by itself, and from now on no logger shows the key.

    The errors of the `Transport` are the causes of those that it raises. `settings.log_prompts` holds for the whole
    process until the next call.
    """
    # Here and not above: openai takes a third of a second to load, and most runs need no model.
    from openai import OpenAI

    _secrecy.endpoints.add(endpoint)
    _secrecy.prompts = settings.log_prompts
    for name in LOGGERS:
        logging.getLogger(name).addFilter(_secrecy)
    http = httpx.Client(
        transport=Transport(endpoint),
        headers={"accept-encoding": "identity"},
        timeout=httpx.Timeout(settings.timeout, connect=min(LONGEST_CONNECT, settings.timeout)),
        follow_redirects=False,
        trust_env=False,
    )
    key = endpoint.key.get_secret_value() or "no-key"
    return OpenAI(api_key=key, base_url=endpoint.base_url, timeout=http.timeout, max_retries=0, http_client=http)
