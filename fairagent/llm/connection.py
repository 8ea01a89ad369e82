"""Connections whose every wait ends with the time of the request that waits (`fairagent.llm.deadline`).

httpx and httpcore limit each wait alone: a server that sends a byte now and then is heard for ever. Here each one may
take what is left of the whole: connecting, greeting (TLS), sending, the head of the answer and its body.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterable
from typing import Any
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx

from fairagent.errors import BackendUnavailable
from fairagent.llm.deadline import seconds_left

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
