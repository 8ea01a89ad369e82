"""`RequestGuard`: lets in pages of this very server and programs on this machine that have the token, and no others.

A browser carries requests of every page that is open in it, also to 127.0.0.1. So the name that it calls this server
by has to be this machine's (a name that others point here is none), the origin of the page has to be this server, and
the token has to be there, which other pages cannot know. The token is in a header that our pages set themselves: a
browser sends cookies to every port of this machine, so that any other program here would get it.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Mapping
from contextvars import ContextVar
from typing import TypeVar

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
"""How the addresses begin that need the token; `OPEN` does not."""
OPEN = "/api/openapi.json"

T = TypeVar("T")

_receive: ContextVar[Receive] = ContextVar("receive")
"""What the client of this request sends next."""


class RequestGuard:
    """An ASGI middleware that lets in who calls `port` of this machine by name, with `token` ("": nobody needs one).

    The token is in the header `Authorization: Bearer ...`. Pages, their scripts and `/health` need none, since a link
    sends no such header: they hold nothing of the collection, and get what they show from /api/.
    """

    def __init__(self, app: ASGIApp, port: int, token: str) -> None:
        self._app = app
        self._hosts = frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})
        self._origins = frozenset(f"http://{host}" for host in self._hosts)
        self._token = token

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
        await (self._refusal(scope) or self._app)(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if headers.getlist("host") not in [[host] for host in self._hosts]:
            return refused(403, "this server is called 127.0.0.1 or localhost, with its port, and nothing else")
        foreign = any(origin not in self._origins for origin in headers.getlist("origin"))
        if foreign or headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return refused(403, "a page of another origin may not ask this server")
        # One that does not say its length is stopped while it is read.
        if int(headers.get("content-length", "0")) > LARGEST_BODY:
            return refused(413, f"the request is larger than {LARGEST_BODY // 1000} kB")
        if not self._token or (scope["method"] in ("GET", "HEAD") and _is_open(scope["path"])):
            return None
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme == "Bearer" and hmac.compare_digest(given.encode(), self._token.encode()):
            return None
        return refused(401, "no token, or a wrong one: open the address that `fairagent serve` has printed")


def _is_open(path: str) -> bool:
    return path == OPEN or not path.startswith(DATA)


class ClientGone(Exception):
    """The client of this request has left; nobody gets the reply."""


async def unless_gone(result: asyncio.Future[T]) -> T:
    """What comes of `result`; ClientGone, and `result` is cancelled, as soon as the client of this request has left.

    The request has to be read before. Cancelled itself, it cancels `result` too.
    """
    gone = asyncio.create_task(_gone(_receive.get()))
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
