"""`RequestGuard`: lets in pages of this very server and programs on this machine that have the token, and no others.

A browser carries requests of every page that is open in it, also to 127.0.0.1. So the name that it calls this server
by has to be this machine's (a name that others point here is none), the origin of the page has to be this server, and
the token has to be there, which other pages cannot know.
"""

import hmac
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Mapping[str, str] = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
LARGEST_BODY = 256_000
"""Bytes of a request: a query has 2,000 characters at most, a list 1,000 ids."""
KEY = "token"
"""Of the token in an address."""


class RequestGuard:
    """An ASGI middleware that lets in who calls `port` of this machine by name, with `token` ("": nobody needs one).

    The token is in the header `Authorization: Bearer ...`, or in the address of a page: then a cookie keeps it, and the
    page is requested again without it, so that it stands in no address that somebody shares.
    """

    def __init__(self, app: ASGIApp, port: int, token: str) -> None:
        self._app = app
        self._hosts = frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})
        self._origins = frozenset(f"http://{host}" for host in self._hosts)
        self._cookie = f"fairagent-{port}"
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that may not pass, hand on every other."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                # The page of a run has a stricter policy.
                policy = headers.get("content-security-policy", POLICY)
                headers.update({**HEADERS, "content-security-policy": policy})
            await send(message)

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
        return None if not self._token else self._unknown(scope, headers)

    def _unknown(self, scope: Scope, headers: Headers) -> Response | None:
        """None for who shows the token; a redirect where it stands in the address, else a refusal."""
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        tokens = [value for name, value in query if name == KEY]
        if scope["method"] == "GET" and tokens and self._is_token(tokens[-1]):
            rest = urlencode([pair for pair in query if pair[0] != KEY])
            redirect = RedirectResponse(scope["path"] + (f"?{rest}" if rest else ""), 303)
            redirect.set_cookie(self._cookie, self._token, httponly=True, samesite="strict")
            return redirect
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if self._is_token(_cookie(headers, self._cookie)) or (scheme == "Bearer" and self._is_token(given)):
            return None
        return refused(401, "no token, or a wrong one: open the address that `fairagent serve` has printed")

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())


def _cookie(headers: Headers, name: str) -> str:
    try:
        cookies = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return ""
    return cookies[name].value if name in cookies else ""


def refused(status: int, message: str) -> Response:
    """An error as the API says it."""
    return JSONResponse({"error": message}, status)
