"""`RequestLog`: every request gets an id, is counted, and told in a log line; and no route takes unknown arguments."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator
from string import ascii_letters, digits
from time import perf_counter

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairagent.extend import FIELDS, UsageError, about_request, logger, nearest
from fairagent.studio.metrics import StudioMetrics

NO_ROUTE = "none"
ID = "x-request-id"
GIVEN = frozenset(ascii_letters + digits + "._-")
"""What an id of a request may be made of; it has 64 characters at most."""
CLOSED = 499
"""The status of a request whose client has left before it was answered, as nginx counts it."""

log = logger(__name__)


class RequestLog:
    """An ASGI middleware around all others: ids, numbers and log lines of requests, without what is in them.

    A proxy may give a request its id in the header X-Request-Id; the reply has it.
    """

    def __init__(self, app: ASGIApp, metrics: StudioMetrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass it on, and tell what became of it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = perf_counter(), CLOSED
        given = Headers(scope=scope).get(ID, "")
        number = given if 0 < len(given) <= 64 and GIVEN.issuperset(given) else secrets.token_hex(8)

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[ID] = number
            await send(message)

        with about_request(request=number):
            try:
                await self._app(scope, receive, watched)
            except BaseException:
                status = 500 if status == CLOSED else status
                raise
            finally:
                seconds = perf_counter() - started
                # As it is declared: an address may hold a document, a topic, or anything.
                route = getattr(scope.get("route"), "path", NO_ROUTE)
                self._metrics.observe(route, status, seconds)
                fields = {"method": scope["method"], "route": route, "status": status, "ms": round(1000 * seconds, 1)}
                user = {"user": scope["user"]} if "user" in scope else {}
                log.info("request", extra={FIELDS: fields | user})


async def expect_known_arguments(request: Request) -> None:
    """Raise UsageError for an argument in the address that the route does not have, or that is there twice."""
    route = request.scope["route"]
    known = set(_arguments(route.dependant)) if isinstance(route, APIRoute) else set()
    for name, count in Counter(name for name, _ in request.query_params.multi_items()).items():
        if name not in known:
            raise UsageError(f"{name!r} is no argument of {route.path}; {nearest(name, sorted(known))}")
        if count > 1:
            raise UsageError(f"{name!r} stands {count} times in the address")


async def expect_known_arguments_of_calls(request: Request) -> None:
    """The same of all that is in the schema; what stands in the address of a page is read by the page's script."""
    if getattr(request.scope["route"], "include_in_schema", False):
        await expect_known_arguments(request)


def _arguments(dependant: Dependant) -> Iterator[str]:
    yield from (one.alias for one in dependant.query_params)
    for other in dependant.dependencies:
        yield from _arguments(other)
