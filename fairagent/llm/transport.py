"""How requests to a server leave and answers come in: one deadline for all waits, sizes limited, no redirects.

httpx limits each wait alone, so that a server that sends a byte now and then could hold a request for ever. Here each
wait (connecting, TLS, sending, head and body of the answer) may take what is left until one `deadline`. A redirect is
never followed: the next host would get the prompt. Of an answer's head only the content type is passed on, and its text
is UTF-8, as JSON is: no charset, cookie or coding of a server's choice reaches a decoder.
"""

from __future__ import annotations

import logging
import os
import socket
import ssl
import time
import weakref
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from functools import partial
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx

from fairagent.errors import BackendUnavailable, FatalModelError, ModelError, TransientModelError
from fairagent.llm.server import Endpoint, NotConnected, broken_off, deadline
from fairagent.settings import ModelSettings
from fairagent.storage.threads import OutOfTime, abandonable, ended_by

if TYPE_CHECKING:
    from openai import OpenAI

LIMITS = httpx.Limits(max_connections=1000, max_keepalive_connections=100, keepalive_expiry=5.0)
LONGEST_WAIT = 86_400.0
"""Seconds: the operating system takes no wait without an end."""
LONGEST_CONNECT = 5.0
"""Seconds that finding a server's addresses and connecting may take together."""
MOST_BYTES = 16 << 20
"""The longest answer that is read, packed or unpacked: 16 MB, thousands of times what a page of text takes."""
MOST_OF_AN_ERROR = 1 << 16
"""Bytes that are read of the body of an error: a sentence stands in it."""
_PIECE = 1 << 16
"""Bytes sent at a time, since each has a wait of its own; bytes unpacked at a time, since few may hold gigabytes."""


def _left(timeout: float | None) -> float:
    """The seconds that the next wait may take; ReadTimeout where there are none."""
    left = deadline.get() - time.monotonic()
    if left <= 0:
        raise httpcore.ReadTimeout("no time left")
    return min(left, LONGEST_WAIT if timeout is None else timeout, LONGEST_WAIT)


class _TimedBackend(httpcore.SyncBackend):
    """Opens connections in the time that is left, the system's search for a name's addresses included."""

    def connect_tcp(self, host: str, port: int, timeout: float | None = None, *more: Any, **options: Any) -> Any:
        opened = super().connect_tcp

        def connect() -> httpcore.NetworkStream:
            try:
                entries = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)
            except (OSError, UnicodeError) as error:
                raise httpcore.ConnectError(str(error)) from error
            failure: Exception = httpcore.ConnectError(f"{host} has no address")
            addresses = list(dict.fromkeys(str(entry[4][0]) for entry in entries))
            for place, address in enumerate(addresses):
                # Of the time that is left each address has its part: one that is silent leaves some to the next.
                part = max(0.01, end - time.monotonic()) / (len(addresses) - place)
                try:
                    return _TimedStream(opened(address, port, part, *more, **options))
                except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                    failure = error
            raise failure

        # Neither the search for a name's addresses nor connecting can be broken off.
        seconds = _left(timeout)
        end = time.monotonic() + seconds
        try:
            return abandonable(connect, lambda stream: stream.close(), seconds)
        except OutOfTime:
            raise httpcore.ConnectTimeout(f"no connection within {seconds:.0f} s") from None


class _TimedStream(httpcore.NetworkStream):
    """A connection that reads and writes in the time that is left, and is broken off where the work is cancelled."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream
        self.get_extra_info = stream.get_extra_info  # type: ignore[method-assign]
        self.close = stream.close  # type: ignore[method-assign]

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        with ended_by(partial(_break_off, self._stream.get_extra_info("socket"))):
            return self._stream.read(max_bytes, _left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        with ended_by(partial(_break_off, self._stream.get_extra_info("socket"))):
            for start in range(0, len(buffer), _PIECE):
                self._stream.write(buffer[start : start + _PIECE], _left(timeout))

    def start_tls(self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: Any = None) -> Any:
        # The socket of TLS takes the place of this one at once, and is not to be had before the handshake is done: a
        # second one of the same connection ends it as well.
        number = self._stream.get_extra_info("socket").fileno()
        with closing(socket.socket(fileno=os.dup(number))) as second, ended_by(partial(_break_off, second)):
            return _TimedStream(self._stream.start_tls(ssl_context, server_hostname, _left(timeout)))


def _break_off(connected: socket.socket) -> None:
    with suppress(OSError):
        # The plain socket's: that of TLS says goodbye first, in the middle of what another thread reads.
        socket.socket.shutdown(connected, socket.SHUT_RDWR)


class Transport(httpx.HTTPTransport):
    """Sends requests to one endpoint, through the proxy that the environment names for it.

    It raises NotConnected, TransientModelError (not in time, broken off), FatalModelError (packed in an unknown way)
    and ModelError (too large). Of an answer that is no success the body's beginning is passed on. BackendUnavailable
    for an unusable proxy.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        address, proxies = httpx.URL(endpoint.base_url), getproxies()
        direct = proxy_bypass(address.host) or proxy_bypass(address.netloc.decode("ascii"))
        with suppress(ValueError):
            # Networks (10.0.0.0/8), which urllib does not know.
            number = ip_address(address.host)
            for one in proxies.get("no", "").split(","):
                with suppress(ValueError):
                    direct = direct or ("/" in one and number in ip_network(one.strip(), strict=False))
        named = "" if direct else proxies.get(address.scheme) or proxies.get("all") or ""
        # Reading the certificates takes 20 ms, which a server on this machine need not cost.
        checks: Any = True if address.scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            proxy = httpx.Proxy(named if "://" in named else f"http://{named}") if named else None
            super().__init__(verify=checks, limits=LIMITS, proxy=proxy)
        except (ValueError, httpx.InvalidURL, ImportError, RuntimeError) as error:
            raise BackendUnavailable(
                f"the proxy that the environment names for {address.host} cannot be used ({type(error).__name__}); it "
                f"has to be http://HOST:PORT. To go without, add {address.host} to NO_PROXY"
            ) from None
        self._host = endpoint.host
        # httpx has no public way to put another one in its place.
        self._pool._network_backend = _TimedBackend()
        # A client that nobody closes, as users' own may be, leaves no socket open.
        weakref.finalize(self, self._pool.close)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """The answer to `request`, the body of a success still to be read."""
        failure: ModelError
        try:
            answer = super().handle_request(request)
        except (httpx.TransportError, httpcore.TimeoutException, ValueError) as error:
            # A ValueError is h11's, of a length with thousands of digits.
            failure = _network_error(error, self._host, begun=False)
        else:
            body = _Body(answer, self._host)
            headers = {"content-type": answer.headers.get("content-type", "").partition(";")[0]}
            if answer.is_success:
                return httpx.Response(answer.status_code, headers=headers, stream=body)
            for name in ("location", "retry-after", "retry-after-ms"):
                if name in answer.headers:
                    headers[name] = answer.headers[name]
            return httpx.Response(answer.status_code, headers=headers, content=body.beginning())
        # Out of the handler, so that the client's error, which knows the request, is not its context.
        raise failure


class _Body(httpx.SyncByteStream):
    """The body of an answer, unpacked, in the errors of fairagent."""

    def __init__(self, answer: httpx.Response, host: str) -> None:
        self._answer, self._host = answer, host
        self._coding = answer.headers.get("content-encoding", "").strip().lower()
        self.close = answer.close  # type: ignore[method-assign]

    def __iter__(self) -> Iterator[bytes]:
        if self._coding not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise FatalModelError(
                f"{self._host} packed its answer in a way that was not requested and is not read here "
                f"(content-encoding: {self._coding[:40]!r}); set the server, or the proxy before it, to send it plain"
            )
        unpack = None if self._coding in ("", "identity") else zlib.decompressobj(zlib.MAX_WBITS | 32)
        packed = plain = 0
        failure: ModelError
        try:
            assert isinstance(self._answer.stream, Iterable)
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
        except (httpx.TransportError, httpcore.TimeoutException, ValueError) as error:
            failure = _network_error(error, self._host, begun=True)
        raise failure

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
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return NotConnected(f"no connection to {host} ({reason}); is a server running at that address?")
    if isinstance(error, httpx.TimeoutException | httpcore.TimeoutException):
        if not begun:
            return NotConnected(f"{host} did not answer in time (model.timeout in the settings)")
        return TransientModelError(f"{host} did not finish in time (model.timeout and model.deadline in the settings)")
    if begun:
        return TransientModelError(f"the answer of {host} broke off, no connection any more ({reason})")
    return TransientModelError(f"no connection to {host} ({reason}); is a server running at that address?")


LOGGERS = ("openai", "openai._base_client", "httpx", "httpcore.connection", "httpcore.http11", "httpcore.proxy")
"""Those that see a request. A filter holds for the records of its own logger only, so each needs it."""
PROMPTS = "Request options"
"""How openai's record of a whole request begins."""


class _Secrecy(logging.Filter):
    """Blackens the keys of all endpoints in every record and, unless `prompts`, drops those that hold prompts."""

    endpoints: frozenset[Endpoint] = frozenset()
    prompts = False

    def filter(self, record: logging.LogRecord) -> bool:
        if not self.prompts and isinstance(record.msg, str) and record.msg.startswith(PROMPTS):
            return False
        record.msg, record.args = self._hide(record.getMessage()), ()
        if record.exc_info:
            # A traceback is text only when it is written; here it becomes text that can be blackened.
            record.exc_text = self._hide(logging.Formatter().formatException(record.exc_info))
            record.exc_info = None
        return True

    def _hide(self, text: str) -> str:
        for endpoint in self.endpoints:
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

    _secrecy.endpoints |= {endpoint}
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
    query = dict(endpoint.query)
    # Azure reads its own header.
    headers = {"api-key": key} if "api-version" in query else {}
    return OpenAI(
        api_key=key,
        base_url=endpoint.base_url,
        default_query=query,
        default_headers=headers,
        timeout=http.timeout,
        max_retries=0,
        http_client=http,
    )


def send(client: OpenAI, path: str, payload: Mapping[str, Any]) -> tuple[httpx.Response | None, Any]:
    """The response to a request, that of a stream still to be read; or None, and the error that the client raised."""
    import openai

    given: dict[str, Any] = {"body": payload, "stream": "stream" in payload, "stream_cls": openai.Stream[Any]}
    try:
        return client.post(path, cast_to=httpx.Response, **given), None
    except openai.OpenAIError as error:
        return None, error
