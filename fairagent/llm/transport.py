"""The one way in which requests to a model's server leave, and answers come in.

What the openai package, httpx and httpcore leave to the server is decided here. A redirect is never followed: the next
host would get the prompt. An attempt has one end, however slowly its bytes come. No more of an answer is read than a
stated size. Of its head only the content type is passed on, and its text is UTF-8, as JSON is: no charset, cookie or
coding of a server's choice reaches a decoder. Whatever goes wrong becomes an error of fairagent's own.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import urljoin, urlsplit

import httpcore
import httpx

from fairagent.errors import FatalModelError, ModelError, TransientModelError
from fairagent.llm.connection import open_pool, read
from fairagent.llm.endpoint import Endpoint
from fairagent.llm.faults import BadStatus, quote, retry_after

MOST_OF_AN_ERROR = 1 << 16
"""Bytes that are read of the body of an error: a sentence stands in it."""
_FAULTS = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.UnsupportedProtocol,
    ValueError,  # h11, of a length with thousands of digits
)


def open_http(endpoint: Endpoint, timeout: float) -> httpx.Client:
    """The client for all requests to a server; each may take `timeout` seconds, and as long as `within` says.

    Raises BackendUnavailable where the environment names a proxy that cannot be used.
    """
    plain = {"accept-encoding": "identity"}
    return httpx.Client(
        transport=Transport(endpoint), headers=plain, timeout=timeout, follow_redirects=False, trust_env=False
    )


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
        fault: ModelError
        try:
            answer = self._pool.handle_request(sent)
        except _FAULTS as error:
            fault = _unreached(error, self._endpoint.host)
        else:
            return self._checked(answer, str(url))
        # Out of the handler, so that the client's error, which knows the request, is not its context.
        raise fault

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()

    def _checked(self, answer: httpcore.Response, url: str) -> httpx.Response:
        head = _head(answer.headers)
        host = self._endpoint.host
        body = _Body(answer, head.get("content-encoding", ""), host)
        if 200 <= answer.status < 300:
            kind = {"content-type": head.get("content-type", "").partition(";")[0]}
            return httpx.Response(answer.status, headers=kind, stream=body)
        try:
            if 300 <= answer.status < 400:
                where = quote(_place(url, head.get("location", "")), self._endpoint)
                raise FatalModelError(
                    f"{host} answered {answer.status}: it sends requests on to {where}, where nothing was sent. If "
                    "your server is there, set model.base_url in the settings to its address"
                )
            raise BadStatus(answer.status, _beginning(body), retry_after(head))
        finally:
            body.close()


class _Body(httpx.SyncByteStream):
    """The body of an answer, in the errors of fairagent."""

    def __init__(self, answer: httpcore.Response, coding: str, host: str) -> None:
        self._answer = answer
        self._coding = coding
        self._host = host

    def __iter__(self) -> Iterator[bytes]:
        stream = self._answer.stream
        assert isinstance(stream, Iterable)
        fault: ModelError
        try:
            yield from read(stream, self._coding, self._host)
        except _FAULTS as error:
            fault = _broken_off(error, self._host)
        else:
            return
        raise fault

    def close(self) -> None:
        """Give the connection back, or close it where there is more to come."""
        self._answer.close()


def _beginning(body: _Body) -> str:
    """The first words of an error; what cannot be read of them is left out, since the status says enough."""
    begun = b""
    try:
        for chunk in body:
            begun += chunk
            if len(begun) >= MOST_OF_AN_ERROR:
                break
    except ModelError:
        pass
    return begun[:MOST_OF_AN_ERROR].decode("utf-8", "replace")


def _head(headers: Iterable[tuple[bytes, bytes]]) -> Mapping[str, str]:
    """The first value of each header, ASCII alone, by its name in small letters."""
    found: dict[str, str] = {}
    for name, value in headers:
        found.setdefault(name.decode("ascii", "ignore").lower(), value.decode("ascii", "ignore"))
    return found


def _place(url: str, location: str) -> str:
    """Scheme, host and port that a redirect names; no path, in which a key may stand."""
    try:
        parts = urlsplit(urljoin(url, location))
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "an address that is none"
    return (
        f"{parts.scheme}://{parts.hostname}{port}"
        if location and parts.hostname
        else "an address that it does not name"
    )


def _unreached(error: Exception, host: str) -> TransientModelError:
    if isinstance(error, httpcore.TimeoutException):
        return TransientModelError(f"{host} did not answer in time (model.timeout in the settings)")
    reason = type(error).__name__
    return TransientModelError(f"no connection to {host} ({reason}); is a server running at that address?")


def _broken_off(error: Exception, host: str) -> TransientModelError:
    if isinstance(error, httpcore.TimeoutException):
        return TransientModelError(f"{host} did not finish in time (model.timeout and model.deadline in the settings)")
    return TransientModelError(f"the answer of {host} broke off, no connection any more ({type(error).__name__})")
