"""The studio's pages and its API."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.types import ASGIApp

from fairagent.extend import LONGEST_QUERY, STYLES, TEMPLATES, FairAgentError, PlainRecord, logger
from fairagent.studio.calls import ExposureRequest, SearchRequest
from fairagent.studio.desk import Desk, Listener, nobody
from fairagent.studio.lanes import FAULT, Lanes, encoded, status
from fairagent.studio.prompt_desk import PromptDesk
from fairagent.studio.prompt_pages import add_prompts
from fairagent.studio.runs import RUN_SCRIPTS, add_runs
from fairagent.studio.server import LARGEST_BODY, RequestGuard, events, refused

PAGES = Path(__file__).parent / "pages"
SCRIPTS = ("search.js", "draw.js", "ask.js", "prompts.js", "draw-prompts.js")
ASSETS = {
    **{name: (TEMPLATES / name, "text/css") for name in STYLES},
    **{name: (PAGES / name, "text/css") for name in ("studio.css", "prompts.css", "runs.css")},
    **{name: (PAGES / name, "text/javascript") for name in (*SCRIPTS, *RUN_SCRIPTS)},
}
"""All files that a browser may have, by their names in its address."""
STREAM = "text/event-stream"
T = TypeVar("T")

log = logger(__name__)


def studio_app(
    desk: Desk, lanes: Lanes, port: int, token: str, runs: Path = Path("runs"), prompts: Path | None = None
) -> ASGIApp:
    """The whole server as an ASGI application, for `port` of this machine.

    `runs` is the folder of run folders, `prompts` that in which the user's templates are kept (`PromptDesk`).
    """
    app = FastAPI(
        title="fairagent",
        version=version("fairagent"),
        description="Fair rankings, answers and the exposure of groups. Errors are `{error: a sentence}`.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        max_body_size=LARGEST_BODY,
    )
    _add_errors(app)
    _add_pages(app)
    _add_calls(app, desk, lanes, PromptDesk(desk, prompts))
    add_runs(app, lanes, runs)
    return RequestGuard(app, port, token)


def _add_calls(app: FastAPI, desk: Desk, lanes: Lanes, prompts: PromptDesk) -> None:
    async def done(work: Callable[[], PlainRecord]) -> Response:
        return _json(await asyncio.wrap_future(lanes.submit(work)))

    async def told(request: Request, work: Callable[[Listener], PlainRecord]) -> Response:
        if STREAM in request.headers.get("accept", ""):
            return StreamingResponse(events(lanes, work), media_type=STREAM)
        return await done(lambda: work(nobody))

    add_prompts(app, prompts, told, _json)
    streams: dict[int | str, dict[str, Any]] = {
        200: {"content": {"application/json": {}, STREAM: {}}, "description": "The whole record, or events."}
    }

    @app.get("/api/about", summary="The collection, its groups and topics, and what can be chosen")
    async def about() -> Response:
        return _json(desk.about())

    @app.post("/api/search", summary="A fair ranking, the engine's own, and every step between", responses=streams)
    async def search(asked: SearchRequest, request: Request) -> Response:
        """Events with `Accept: text/event-stream`: `step` for each step as it is made, then `result` or `error`."""
        return await told(request, partial(desk.search, asked))

    @app.post("/api/answer", summary="An answer from a fair ranking, with its citations", responses=streams)
    async def answer(asked: SearchRequest, request: Request) -> Response:
        """Events with `Accept: text/event-stream`: `step`, `text` for each piece, then `result` or `error`."""
        return await told(request, partial(desk.answer, asked))

    @app.post("/api/exposure", summary="What a list of documents gives the groups, beside their targets")
    async def exposure(asked: ExposureRequest) -> Response:
        return await done(partial(desk.exposure, asked))

    @app.get("/api/document", summary="The text of a document")
    async def document(id: str) -> Response:
        return await done(partial(desk.document, id))

    @app.post("/api/recipes", summary="A search in Python, as a settings file and on the command line")
    async def recipes(asked: SearchRequest, answer: bool = False) -> Response:
        return await done(partial(desk.recipes, asked, "answer" if answer else "search"))


def _add_pages(app: FastAPI) -> None:
    environment = Environment(loader=FileSystemLoader(PAGES), autoescape=True, undefined=StrictUndefined)

    @app.get("/prompts", include_in_schema=False)
    async def prompts_page() -> Response:
        return HTMLResponse(environment.get_template("prompts.html").render(longest=LONGEST_QUERY))

    @app.get("/", include_in_schema=False)
    async def search_page() -> Response:
        return HTMLResponse(environment.get_template("search.html").render(longest=LONGEST_QUERY))

    @app.get("/api", include_in_schema=False)
    async def api_page() -> Response:
        return HTMLResponse(environment.get_template("api.html").render(schema=app.openapi()))

    @app.get("/assets/{name}", include_in_schema=False)
    async def asset(name: str) -> Response:
        if name not in ASSETS:
            raise HTTPException(404)
        path, kind = ASSETS[name]
        return Response(path.read_bytes(), media_type=kind)


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(FairAgentError)
    async def ours(request: Request, error: FairAgentError) -> Response:
        return _json({"error": str(error), "kind": type(error).__name__}, status(error))

    @app.exception_handler(RequestValidationError)
    async def wrong(request: Request, error: RequestValidationError) -> Response:
        # Without what was sent: nobody needs a megabyte back.
        faults = [f"{'.'.join(map(str, fault['loc'][1:])) or 'body'}: {fault['msg']}" for fault in error.errors()[:20]]
        return _json({"error": "; ".join(faults), "kind": "UsageError"}, 400)

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        return refused(error.status_code, str(error.detail))

    @app.exception_handler(Exception)
    async def fault(request: Request, error: Exception) -> Response:
        return refused(500, FAULT)


def _json(record: PlainRecord, status: int = 200) -> Response:
    return Response(encoded(record), status, media_type="application/json")
