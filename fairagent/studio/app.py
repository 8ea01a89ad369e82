"""The studio's application: pages, ours and other packages', their calls, and how errors leave it.

A page is a `StudioPage`, named in an entry point of the group `fairagent.studio_pages`, as ours are (docs/extending.md
has one). A page is given to whoever reaches the port on this machine (`RequestGuard`): it holds nothing of the
collection, and its script asks for that under /api/ by `record` and `events` of /assets/ask.js, which send the token.
"""

from __future__ import annotations

import asyncio
import mimetypes
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.docs import get_swagger_ui_html
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from prometheus_client import generate_latest
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.types import ASGIApp

from fairagent.errors import FairAgentError, SettingsError
from fairagent.report.page import STYLES, TEMPLATES
from fairagent.report.record import PlainRecord
from fairagent.settings.faults import fault_lines, no_such
from fairagent.settings.plugins import load_plugins
from fairagent.studio.access import MEDIA, RequestLog, StudioMetrics, expect_known_arguments
from fairagent.studio.calls import ExposureRequest, SearchRequest, TracedRequest
from fairagent.studio.desk import Desk, NotFinished
from fairagent.studio.lanes import (
    FAULT,
    OF_ONE_USER,
    WITH_MODEL,
    Lanes,
    Work,
    encoded,
    events,
    ignore_event,
    status,
)
from fairagent.studio.server import (
    DATA,
    LARGEST_BODY,
    METRICS,
    OPEN,
    POLICY,
    ClientGone,
    Door,
    RequestGuard,
    refused,
    unless_gone,
)
from fairagent.studio.spending import UserBudgetExceeded
from fairagent.types.clean import LONGEST_QUERY

DOCS = "/docs"
PAGES = Path(__file__).parent / "pages"
STREAM = "text/event-stream"
SHARED = ("studio.css", "ask.js", "token.js", "draw.js", "docs.js")
"""Files of every page, and of that of the API."""
SWAGGER = ("swagger-ui-bundle.js", "swagger-ui.css")
STREAMS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/json": {}, STREAM: {}}, "description": "The whole record, or events."}
}
"""What OpenAPI says of a call that answers with events for those who accept them."""


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

        It ends as soon as the client has left.
        """
        return _json(await unless_gone(asyncio.ensure_future((lanes or self.lanes).do(work))))

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
    _add_errors(app)
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
        html = (
            bytes(page.body).decode().replace("</body>", '<script type="module" src="/assets/docs.js"></script></body>')
        )
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
        return Response(generate_latest(metrics.registry), headers={"content-type": MEDIA})

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
    assets = (
        "search.js",
        "search.css",
        "settings.js",
        "verdict.js",
        "lists.js",
        "start.js",
        "dial.js",
        "where.js",
    )

    def add(self, app: FastAPI, studio: Studio) -> None:
        """Add the page and the calls."""
        desk = studio.desk

        @app.get("/api/about", summary="The collection, its groups and topics, and what can be chosen")
        async def about() -> Response:
            return _json(desk.about())

        @app.get(
            "/api/contents", summary="What the collection holds: documents, groups with their shares, queries to try"
        )
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

        @app.post("/api/reorder", summary="What a search has found in another order, at once")
        async def reorder(body: TracedRequest) -> Response:
            """Nothing is searched and no model is asked, if the search itself was made a while ago; else it is made."""
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


def _add_errors(app: FastAPI) -> None:
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
        said = fault_lines(body and body.field_info.annotation, faults)
        return _json({"error": "; ".join(said), "kind": "UsageError"}, 400)

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        calls = [path for one in app.routes if (path := getattr(one, "path", "")).startswith(DATA)]
        unknown = error.status_code == 404 and request.url.path.startswith(DATA)
        return refused(error.status_code, no_such("call", request.url.path, calls) if unknown else str(error.detail))

    @app.exception_handler(ClientGone)
    async def gone(request: Request, error: ClientGone) -> Response:
        return Response(status_code=499)

    @app.exception_handler(Exception)
    async def fault(request: Request, error: Exception) -> Response:
        return refused(500, FAULT)


def _json(record: PlainRecord, status: int = 200) -> Response:
    return Response(encoded(record), status, media_type="application/json")
