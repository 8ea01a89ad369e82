"""`RequestGuard`: lets in pages of this very server and programs that have a token, and no others.

A browser carries requests of every page that is open in it, also to 127.0.0.1. So the name that it calls this server
by has to be one of the server's (a name that others point here is none), the origin of the page has to be this server,
and the token has to be there, which other pages cannot know. The token is in a header that our pages set themselves: a
browser sends cookies to every port of this machine, so that any other program here would get it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
from collections.abc import Collection, Mapping
from contextlib import nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairagent.errors import UsageError
from fairagent.llm.budget import limited_by
from fairagent.studio.lanes import asking
from fairagent.studio.spending import SpendingBook, SpendingLimit
from fairagent.studio.tokens import Admission, User, hash_of

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Mapping[str, str] = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
LARGEST_BODY = 256_000
"""Bytes of a request: a query has 2,000 characters at most, a list 1,000 ids."""
DATA = "/api/"
"""How the addresses begin that need a token, besides `METRICS`; `OPEN` does not."""
OPEN = "/api/openapi.json"
METRICS = "/metrics"
NO_TOKEN = (
    "no token, or a wrong one: open the address that `fairagent serve` has printed, or ask whoever runs it for one"
)

T = TypeVar("T")

_receive: ContextVar[Receive] = ContextVar("receive")
"""What the client of this request sends next."""


@dataclass(frozen=True, slots=True)
class Door:
    """Who is let in: `hosts` are what the server is called, as browsers write it; `admission` None: no token is needed.

    `book` has what users spend. With `open_metrics` /metrics needs no token either.
    """

    hosts: frozenset[str]
    admission: Admission | None
    book: SpendingBook | None = None
    open_metrics: bool = False


_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?")


def hosts_of(address: str, port: int, names: Collection[str] = ()) -> frozenset[str]:
    """What a server at `address` is called: this machine, the address itself where it is one, and `names`.

    A name without a port is that of a proxy at the usual one, or stands before the server's own. UsageError for what is
    no name.

    >>> sorted(hosts_of("10.0.0.5", 80, ["search.example.org"]))[:3]
    ['10.0.0.5:80', '127.0.0.1:80', 'localhost:80']
    """
    hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
    parsed = ipaddress.ip_address(address)
    if not parsed.is_unspecified:
        hosts.add(f"[{parsed}]:{port}" if parsed.version == 6 else f"{parsed}:{port}")
    for name in names:
        lower = name.lower()
        if not _NAME.fullmatch(lower):
            raise UsageError(f"--allow-host {name}: expected a name as browsers call it, e.g. search.example.org")
        hosts |= {lower} if ":" in lower else {lower, f"{lower}:{port}"}
    return frozenset(hosts)


class RequestGuard:
    """An ASGI middleware that lets in who calls the server by one of its names, with a token.

    The token is in the header `Authorization: Bearer ...`. Pages, their scripts and `/health` need none, since a link
    sends no such header: they hold nothing of the collection, and get what they show from /api/.
    """

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that may not pass, hand on every other."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                # What holds a run's page has a policy of its own.
                headers.setdefault("content-security-policy", POLICY)
                headers.setdefault("x-frame-options", "DENY")
                headers.update(HEADERS)
            await send(message)

        _receive.set(receive)
        user: User | None = None
        refusal = self._refusal(scope)
        if refusal is None and self._door.admission is not None and self._needs_token(scope):
            scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
            key = hash_of(token) if scheme == "Bearer" else ""
            user = self._door.admission.get(key)
            refusal = None if key in self._door.admission else refused(401, NO_TOKEN)
        if user is not None:
            scope["user"] = user.name
            asking.set(user.name)
        limit = SpendingLimit(self._door.book, user) if self._door.book and user else None
        with limited_by(limit) if limit else nullcontext():
            await (refusal or self._app)(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = ",".join(headers.getlist("host")).lower()
        if host not in self._door.hosts:
            return refused(
                403, "this server is called otherwise: 127.0.0.1 or localhost, with its port, or --allow-host"
            )
        foreign = any(origin not in (f"http://{host}", f"https://{host}") for origin in headers.getlist("origin"))
        if foreign or headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return refused(403, "a page of another origin may not ask this server")
        # One that does not say its length is stopped while it is read.
        if int(headers.get("content-length", "0")) > LARGEST_BODY:
            return refused(413, f"the request is larger than {LARGEST_BODY // 1000} kB")
        return None

    def _needs_token(self, scope: Scope) -> bool:
        path, metrics = scope["path"], scope["path"] == METRICS
        is_open = path == OPEN or not (path.startswith(DATA) or metrics) or (metrics and self._door.open_metrics)
        return not (scope["method"] in ("GET", "HEAD") and is_open)


class ClientGone(Exception):
    """The client of this request has left; nobody gets the reply."""


async def unless_gone(result: asyncio.Future[T]) -> T:
    """What comes of `result`; ClientGone, and `result` is cancelled, as soon as the client of this request has left.

    The request has to be read before. Cancelled itself, it cancels `result` too.
    """
    gone = asyncio.create_task(_gone(_receive.get()))
    # How it ends after that is nobody's any more.
    result.add_done_callback(lambda done: done.cancelled() or done.exception())
    try:
        await asyncio.wait((result, gone), return_when=asyncio.FIRST_COMPLETED)
        if result.done():
            return result.result()
        raise ClientGone
    finally:
        gone.cancel()
        result.cancel()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def refused(status: int, message: str) -> Response:
    """An error as the API says it."""
    return JSONResponse({"error": message}, status)
