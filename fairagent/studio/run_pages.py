"""The pages of runs, and what they ask for: the list, a run's topics and exchanges, two runs compared."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

from fastapi import FastAPI
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response

from fairagent.report.record import Record
from fairagent.studio.lanes import Lanes
from fairagent.studio.run_folder import RunFolder, open_run
from fairagent.studio.runs import compared, folder_of, page_of, run_records
from fairagent.studio.said import encoded

PAGES = Path(__file__).parent / "pages"
RUN_SCRIPTS = ("runs.js", "run.js", "compare.js", "exchange.js")
RUN_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Of a run's page, which is a file of whoever made it: it stands alone, and can ask this server nothing."""


def add_runs(app: FastAPI, lanes: Lanes, root: Path) -> None:
    """Add all of them to `app`, for the run folders in `root`."""

    async def done(work: Callable[[], Record]) -> Response:
        found = await asyncio.wrap_future(lanes.submit(work))
        return Response(encoded(found), media_type="application/json")

    def run(name: str) -> RunFolder:
        return open_run(folder_of(root, name))

    @app.get("/api/runs", summary="The runs of the server's folder of runs, and how far each has come")
    async def runs() -> Response:
        return await done(lambda: {"folder": str(root), "runs": run_records(root)})

    @app.get("/api/runs/{name}", summary="The topics of a run, or those in which a text occurs, in any case")
    async def topics(name: str, text: str = "") -> Response:
        return await done(lambda: run(name).overview(text))

    @app.get("/api/runs/{name}/topic", summary="What every system made of a topic, and what models were asked for it")
    async def topic(name: str, id: str) -> Response:
        return await done(lambda: run(name).topic(id))

    @app.get("/api/runs/{name}/exchange", summary="An exchange with a model, uncut, by its line in the transcript")
    async def exchange(name: str, number: int) -> Response:
        return await done(lambda: run(name).exchange(number))

    @app.get("/api/compared", summary="Two runs side by side: their systems, and what these were made from")
    async def two(left: str, right: str) -> Response:
        return await done(partial(compared, root, left, right))

    @app.get("/runs", include_in_schema=False)
    async def runs_page() -> Response:
        return _page("runs.html")

    @app.get("/runs/{name}/topics", include_in_schema=False)
    async def topics_page(name: str) -> Response:
        await asyncio.wrap_future(lanes.submit(partial(folder_of, root, name)))
        return _page("run.html")

    @app.get("/compare", include_in_schema=False)
    async def compare_page() -> Response:
        return _page("compare.html")

    @app.get("/runs/{name}", include_in_schema=False)
    async def run_page(name: str) -> Response:
        path = await asyncio.wrap_future(lanes.submit(partial(page_of, root, name)))
        return HTMLResponse(path.read_bytes(), headers={"content-security-policy": RUN_POLICY})


def _page(name: str) -> Response:
    environment = Environment(loader=FileSystemLoader(PAGES), autoescape=True, undefined=StrictUndefined)
    return HTMLResponse(environment.get_template(name).render())
