"""The studio's application: pages, ours and other packages', their calls, how errors leave it, and its numbers.

A page is a `StudioPage`, named in an entry point of the group `fairagent.studio_pages`, as ours are (docs/extending.md
has one). A page is given to whoever reaches the port on this machine (`RequestGuard`): it holds nothing of the
collection, and its script asks for that under /api/ by `record` and `events` of /assets/ask.js, which send the token.

Every request gets an id, is counted for Prometheus, and has a log line. No label has a query, a text, a document or
a user: routes are as they are declared, so that their number is bounded.
"""

from __future__ import annotations

import asyncio
import mimetypes
import secrets
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from string import ascii_letters, digits
from time import perf_counter
from typing import Any

import prometheus_client as prometheus
from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.routing import APIRoute
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairagent.errors import FairAgentError, SettingsError, UsageError
from fairagent.report.page import STYLES, TEMPLATES
from fairagent.report.record import PlainRecord
from fairagent.settings.faults import fault_lines, no_such
from fairagent.settings.plugins import load_plugins
from fairagent.storage.telemetry import FIELDS, about_request
from fairagent.studio.desk import Desk, ExposureRequest, NotFinished, SearchRequest, TracedRequest
from fairagent.studio.lanes import FAULT, OF_ONE_USER, WITH_MODEL, Lanes, Work, encoded, events, ignore_event, status
from fairagent.studio.server import (
    DATA,
    LARGEST_BODY,
    METRICS,
    OPEN,
    POLICY,
    ClientGone,
    Door,
    RequestGuard,
    UserBudgetExceeded,
    refused,
    unless_gone,
)
from fairagent.types.clean import LONGEST_QUERY, logger
from fairagent.types.common import is_unfinished

DOCS = "/docs"
PAGES = Path(__file__).parent / "pages"
STREAM = "text/event-stream"
SHARED = ("studio.css", "ask.js", "token.js", "draw.js", "docs.js")
"""Files of every page, and of that of the API."""
SWAGGER = ("swagger-ui-bundle.js", "swagger-ui.css")
STREAMS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/json": {}, STREAM: {}}, "description": "The whole record, or events."},
    207: {"description": "The whole record, but a filter gave no verdict on some documents: see its `alarms`."},
}
"""What OpenAPI says of a call that answers with events for those who accept them."""
ID = "x-request-id"
GIVEN = frozenset(ascii_letters + digits + "._-")
"""What an id of a request may be made of; it has 64 characters at most."""
UNFINISHED = 207
"""The status of what an unfinished filter has left: done, but for some of its documents."""
CLOSED = 499
"""The status of a request whose client has left before it was answered, as nginx counts it."""
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Bounds of the histogram's buckets."""

log = logger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Studio:
    """What pages work with: the desk, the lanes that do its work, and the user's folders of runs and templates.

    What asks a language model is done in `models`, everything else in `lanes`. `guarded`: a token is needed.
    """

    desk: Desk
    lanes: Lanes
    models: Lanes
    guarded: bool
    runs: Path
    prompts: Path | None
    links: list[tuple[str, str]] = field(default_factory=list)

    async def json(self, work: Callable[[], PlainRecord], lanes: Lanes | None = None) -> Response:
        """The record of `work`, which is done in a lane, as JSON; errors become a status and a sentence.

        The status of what an unfinished filter has left is 207. It ends as soon as the client has left.
        """
        record = await unless_gone(asyncio.ensure_future((lanes or self.lanes).do(work)))
        return _json(record, UNFINISHED if is_unfinished(record.get("alarms", ())) else 200)

    async def reply(self, request: Request, work: Work, lanes: Lanes | None = None) -> Response:
        """The same, or its events where the request accepts `text/event-stream`."""
        if STREAM in request.headers.get("accept", ""):
            return StreamingResponse(events(lanes or self.lanes, work), media_type=STREAM)
        return await self.json(lambda: work(ignore_event), lanes)

    def lanes_for(self, request: SearchRequest, command: str) -> Lanes:
        """Where an `exposure`, a `search` or an `answer` is made; raises what its settings do."""
        return self.models if self.desk.asks_model(request.settings, command) else self.lanes

    def html(self, template: str, folder: Path = PAGES, **values: Any) -> Response:
        """A page from a template in `folder`, which may extend ours."""
        loader = FileSystemLoader([folder, PAGES])
        environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
        page = environment.get_template(template)
        return HTMLResponse(page.render(links=self.links, guarded=self.guarded, **values))


class StudioPage:
    """One or more pages with their calls; see above.

    `links` are addresses and names for the navigation, ordered by `position`; `assets` are files of `folder` that
    browsers load from /assets/NAME.
    """

    links: tuple[tuple[str, str], ...] = ()
    position: int = 50
    folder: Path = PAGES
    assets: tuple[str, ...] = ()

    def add(self, app: FastAPI, studio: Studio) -> None:
        """Add the routes."""
        raise NotImplementedError


def studio_pages() -> list[StudioPage]:
    """A page of every installed class, in order; SettingsError for one that cannot be loaded."""
    try:
        classes = load_plugins("studio page", "fairagent.studio_pages", StudioPage, "fairagent.studio.app.StudioPage")
    except ValueError as error:
        raise SettingsError(str(error)) from None
    return sorted((page() for page in classes.values()), key=lambda page: page.position)


def assets_of(pages: list[StudioPage]) -> dict[str, Path]:
    """All files that a browser may load, by their names in its address."""
    shared = {**{name: TEMPLATES / name for name in STYLES}, **{name: PAGES / name for name in SHARED}}
    # FastAPI's page of the API would load these from elsewhere.
    shared |= {name: Path(str(files("fastapi_offline"))) / "static" / name for name in SWAGGER}
    return shared | {name: page.folder / name for page in pages for name in page.assets}


def studio_app(desk: Desk, lanes: Lanes, door: Door, runs: Path = Path("runs"), prompts: Path | None = None) -> ASGIApp:
    """The whole server as an ASGI application, for those whom `door` lets in."""
    app = FastAPI(
        title="fairagent",
        version=version("fairagent"),
        description="Fair rankings, answers and the exposure of groups. Errors are `{error: a sentence}`.",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        max_body_size=LARGEST_BODY,
        dependencies=[Depends(expect_known_arguments)],
    )

    @app.exception_handler(FairAgentError)
    async def ours(request: Request, error: FairAgentError) -> Response:
        reply = _json({"error": str(error), "kind": type(error).__name__}, status(error))
        if isinstance(error, UserBudgetExceeded) and error.retry_after is not None:
            reply.headers["retry-after"] = str(error.retry_after)
        return reply

    @app.exception_handler(RequestValidationError)
    async def wrong(request: Request, error: RequestValidationError) -> Response:
        body = getattr(request.scope["route"], "body_field", None)
        faults = [{**fault, "loc": fault["loc"][1:] or ("body",)} for fault in error.errors()[:20]]
        messages = fault_lines(body and body.field_info.annotation, faults)
        return _json({"error": "; ".join(messages), "kind": "UsageError"}, 400)

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        calls = [path for one in app.routes if (path := getattr(one, "path", "")).startswith(DATA)]
        unknown = error.status_code == 404 and request.url.path.startswith(DATA)
        return refused(error.status_code, no_such("call", request.url.path, calls) if unknown else str(error.detail))

    @app.exception_handler(ClientGone)
    async def gone(request: Request, error: ClientGone) -> Response:
        return Response(status_code=CLOSED)

    @app.exception_handler(Exception)
    async def fault(request: Request, error: Exception) -> Response:
        return refused(500, FAULT)

    pages = studio_pages()
    studio = Studio(desk, lanes, lanes.beside(WITH_MODEL, share=OF_ONE_USER), door.admission is not None, runs, prompts)
    metrics = StudioMetrics(desk, {"search": lanes, "model": studio.models})
    for page in pages:
        page.add(app, studio)
        studio.links.extend(page.links)
    studio.links.append((DOCS, "API"))
    assets: Mapping[str, Path] = assets_of(pages)

    @app.get(DOCS, include_in_schema=False)
    async def docs() -> Response:
        # FastAPI's own, with all it loads from here, whose requests have the token of the tab.
        page = get_swagger_ui_html(
            openapi_url=OPEN,
            title="fairagent studio: API",
            swagger_js_url=f"/assets/{SWAGGER[0]}",
            swagger_css_url=f"/assets/{SWAGGER[1]}",
            swagger_favicon_url="data:,",
        )
        ours = '<script type="module" src="/assets/docs.js"></script></body>'
        html = bytes(page.body).decode().replace("</body>", ours)
        script = html.rpartition("<script>")[2].partition("</script>")[0]
        allowed = f"'self' 'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"
        # The page's own script, and nothing else, may stand in the page.
        policy = POLICY.replace("script-src 'self'", f"script-src {allowed}")
        return HTMLResponse(html, headers={"content-security-policy": policy})

    @app.get(OPEN, include_in_schema=False)
    async def schema() -> Response:
        return _json(app.openapi())

    @app.get(METRICS, include_in_schema=False)
    async def numbers() -> Response:
        text = prometheus.generate_latest(metrics.registry)
        return Response(text, headers={"content-type": "text/plain; version=0.0.4; charset=utf-8"})

    @app.get("/health", include_in_schema=False)
    async def health() -> Response:
        # For whoever watches over the server, without the token: nothing of the collection, and no lane is waited for.
        return _json({"ok": True, "version": app.version, "collection": "open"})

    @app.get("/assets/{name}", include_in_schema=False)
    async def asset(name: str) -> Response:
        if name not in assets:
            raise HTTPException(404)
        return Response(assets[name].read_bytes(), media_type=mimetypes.guess_type(name)[0])

    return RequestLog(RequestGuard(app, door), metrics)


class SearchPage(StudioPage):
    """The first page: a search, an answer, and what a list gives the groups."""

    links = (("/", "Search"),)
    position = 0
    assets = ("search.js", "search.css", "settings.js", "verdict.js", "lists.js", "start.js", "dial.js", "where.js")

    def add(self, app: FastAPI, studio: Studio) -> None:
        desk = studio.desk

        @app.get("/api/about", summary="The collection, its groups and topics, and what can be chosen")
        async def about() -> Response:
            return _json(desk.about())

        @app.get("/api/contents", summary="What the collection holds: documents, shares of groups, queries to try")
        async def contents() -> Response:
            return await studio.json(desk.contents)

        @app.post(
            "/api/search",
            summary="A fair ranking, and what it gives the groups; with `trace` how it came about",
            responses=STREAMS,
        )
        async def search(body: TracedRequest, request: Request) -> Response:
            """Events with `Accept: text/event-stream`: `step` for each step as it is made, then `result` or `error`."""
            return await studio.reply(
                request, partial(desk.search, body, trace=body.trace), studio.lanes_for(body, "search")
            )

        @app.post("/api/reorder", summary="The results of a search in another order, at once")
        async def reorder(body: TracedRequest) -> Response:
            """Neither the engine nor a model is called where the search was made a while ago; else it is made."""
            lanes = studio.lanes_for(body, "search")
            if lanes is studio.models:
                # Only what may ask a model waits for what does.
                with suppress(NotFinished):
                    return await studio.json(partial(desk.reorder, body, search=False, trace=body.trace))
            return await studio.json(partial(desk.reorder, body, trace=body.trace), lanes)

        @app.post("/api/answer", summary="An answer from a fair ranking, with its citations", responses=STREAMS)
        async def answer(body: TracedRequest, request: Request) -> Response:
            """Events with `Accept: text/event-stream`: `step`, `text` for each piece, then `result` or `error`."""
            return await studio.reply(
                request, partial(desk.answer, body, trace=body.trace), studio.lanes_for(body, "answer")
            )

        @app.post("/api/exposure", summary="What a list of documents gives the groups, with their targets")
        async def exposure(body: ExposureRequest) -> Response:
            return await studio.json(partial(desk.exposure, body), studio.lanes_for(body, "exposure"))

        @app.get("/api/document", summary="The text of a document")
        async def document(id: str) -> Response:
            return await studio.json(partial(desk.document, id))

        @app.get("/", include_in_schema=False)
        async def page() -> Response:
            return studio.html("search.html", longest=LONGEST_QUERY)


class StudioMetrics(Collector):
    """The numbers of one server, in a registry of its own; those of desk and `lanes` are read on request."""

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
                route = getattr(scope.get("route"), "path", "none")
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


def _json(record: PlainRecord, status: int = 200) -> Response:
    return Response(encoded(record), status, media_type="application/json")
