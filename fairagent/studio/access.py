"""`RequestLog`: every request gets an id, is counted for Prometheus, and told in a log line; and no unknown arguments.

No label has a query, a text, a document or a user: routes are as they are declared, so that their number is bounded.
Nothing is waited for, neither a lane nor an index that is being opened.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator, Mapping
from string import ascii_letters, digits
from time import perf_counter

import prometheus_client as prometheus
from fastapi import Request
from fastapi.routing import APIRoute
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairagent.errors import UsageError
from fairagent.settings.faults import no_such
from fairagent.storage.telemetry import FIELDS, about_request
from fairagent.studio.desk import Desk
from fairagent.studio.lanes import Lanes
from fairagent.types.clean import logger

NO_ROUTE = "none"
ID = "x-request-id"
GIVEN = frozenset(ascii_letters + digits + "._-")
"""What an id of a request may be made of; it has 64 characters at most."""
CLOSED = 499
"""The status of a request whose client has left before it was answered, as nginx counts it."""
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Bounds of the histogram's buckets."""
MEDIA = "text/plain; version=0.0.4; charset=utf-8"

log = logger(__name__)


class StudioMetrics(Collector):
    """The numbers of one server, in a registry of its own; those of desk and `lanes` are read when asked for."""

    def __init__(self, desk: Desk, lanes: Mapping[str, Lanes]) -> None:
        self._desk, self._lanes = desk, lanes
        self.registry = prometheus.CollectorRegistry()
        self.requests = prometheus.Counter(
            "fairagent_requests", "Requests by route and status.", ("route", "status"), registry=self.registry
        )
        self.seconds = prometheus.Histogram(
            "fairagent_request_seconds",
            "Seconds from the head of a request to the end of its reply.",
            ("route",),
            buckets=SECONDS,
            registry=self.registry,
        )
        self.registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """The metrics of now."""
        usage = self._desk.live.usage
        yield GaugeMetricFamily("fairagent_collection_documents", "Documents of the open index.", self._desk.documents)
        for place, (name, about) in enumerate(
            (("running", "Pieces of work that are being done."), ("waiting", "Pieces of work that wait for a lane."))
        ):
            gauge = GaugeMetricFamily(f"fairagent_lane_{name}", about, labels=("lane",))
            for lane, lanes in self._lanes.items():
                gauge.add_metric((lane,), lanes.load[place])
            yield gauge
        tokens = CounterMetricFamily("fairagent_model_tokens", "Tokens that models read, write.", labels=("kind",))
        tokens.add_metric(("input",), usage.input_tokens)
        tokens.add_metric(("output",), usage.output_tokens)
        yield tokens
        for name, about, count in (
            ("index_reopened", "How often a replaced index was opened.", self._desk.live.openings - 1),
            ("model_calls", "Requests to language models, failed ones too.", usage.calls),
            ("model_failures", "Of those, without a usable reply.", usage.unusable),
            # Without a price nothing is known, and 0 would be wrong.
            ("model_dollars", "What they cost, in US dollars.", usage.cost),
            ("model_cached_calls", "Calls that the cache has saved.", usage.saved.calls if usage.saved else 0),
        ):
            if count is not None:
                yield CounterMetricFamily(f"fairagent_{name}", about, count)


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
                self._metrics.requests.labels(route, str(status)).inc()
                self._metrics.seconds.labels(route).observe(seconds)
                fields = {"method": scope["method"], "route": route, "status": status, "ms": round(1000 * seconds, 1)}
                user = {"user": scope["user"]} if "user" in scope else {}
                log.info("request", extra={FIELDS: fields | user})


async def expect_known_arguments(request: Request) -> None:
    """Raise UsageError for an argument in the address that a route of the schema has not, or that is there twice."""
    route = request.scope["route"]
    # What stands in the address of a page is read by the page's script.
    if not isinstance(route, APIRoute) or not route.include_in_schema:
        return
    known = {one.alias for one in route.dependant.query_params}
    for name, count in Counter(name for name, _ in request.query_params.multi_items()).items():
        if name not in known:
            raise UsageError(f"{route.path} has {no_such('argument', name, sorted(known))}")
        if count > 1:
            raise UsageError(f"{name!r} stands {count} times in the address")
