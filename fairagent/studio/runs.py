"""The pages of runs: the folders of a folder, how far each has come, its page, and two of them compared."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

from fastapi import FastAPI
from starlette.responses import HTMLResponse, Response

from fairagent.extend import (
    HEAD,
    JOURNAL,
    PAGE,
    FairAgentError,
    PlainRecord,
    UsageError,
    differences,
    labels_of,
    read_head,
    side_by_side,
    whole_lines,
)
from fairagent.studio.app import Studio, StudioPage
from fairagent.studio.run_folder import RunFolder, open_run, whole_run

RUN_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Of a run's page, which is a file of whoever made it: it stands alone, and can ask this server nothing."""


def run_records(root: Path) -> list[PlainRecord]:
    """Every run in `root`, by name: its systems and topics, how many outcomes it has of how many, and what is wrong."""
    return [_record(folder) for folder in _folders(root)]


def folder_of(root: Path, name: str) -> Path:
    """The folder of a run in `root`, by a name that leads nowhere else; UsageError for an unknown one."""
    for folder in _folders(root):
        if folder.name == name:
            return folder
    raise UsageError(f"no run {name!r} in {root}")


def page_of(root: Path, name: str) -> Path:
    """The page of a run; UsageError where there is no such run in `root`, or no page yet."""
    page = folder_of(root, name) / PAGE
    if not page.is_file():
        raise UsageError(f"the run {name!r} in {root} has no page yet; fairagent report makes one")
    return page


def compared(root: Path, left: str, right: str) -> PlainRecord:
    """Two runs side by side: their systems by their measures, and what these systems were made from.

    Raises UsageError where there is no such run, DataError where one is damaged.
    """
    first, second = (whole_run(folder_of(root, name)) for name in (left, right))
    rows = side_by_side(first, second)
    names = labels_of(first.measures)
    return {
        "left": left,
        "right": right,
        "collections": [first.collection, second.collection],
        "systems": [one for one in first.systems if one in second.systems],
        "only_left": [one for one in first.systems if one not in second.systems],
        "only_right": [one for one in second.systems if one not in first.systems],
        "rows": [
            {
                "system": row.system,
                "dimension": row.left.dimension,
                "measure": names[row.left.measure],
                "definition": row.left.measure,
                "left": row.left.mean,
                "right": row.right.mean,
                "difference": row.right.difference,
                "better": first.gain(row.left.measure, row.right.mean, row.left.mean),
                "neutral": row.left.measure in first.neutral,
                "p": row.right.randomization_p,
                "wins": row.right.wins,
                "ties": row.right.ties,
                "losses": row.right.losses,
                "topics": row.right.topics,
            }
            for row in rows
        ],
        "differences": differences(first, second),
    }


def _folders(root: Path) -> list[Path]:
    folders = sorted(root.iterdir()) if root.is_dir() else []
    return [folder for folder in folders if (folder / HEAD).is_file() and not folder.is_symlink()]


def _record(folder: Path) -> PlainRecord:
    try:
        plan = read_head(folder)["plan"]
    except FairAgentError as error:
        return {"name": folder.name, "fault": str(error)}
    systems, topics = list(plan["systems"]), len(plan["topics"])
    return {
        "name": folder.name,
        "kind": plan["experiment"]["kind"],
        "systems": systems,
        "topics": topics,
        "outcomes": min(sum(1 for _ in whole_lines(folder / JOURNAL)), len(systems) * topics),
        "planned": len(systems) * topics,
        "page": (folder / PAGE).is_file(),
    }


class RunPages(StudioPage):
    """The list of runs, a run's topics and exchanges, its own page, and two runs compared."""

    links = (("/runs", "Runs"),)
    position = 2
    assets = ("runs.js", "run.js", "compare.js", "exchange.js", "runs.css")

    def add(self, app: FastAPI, studio: Studio) -> None:
        """Add the pages and the calls, for the run folders in the studio's folder of runs."""
        root = studio.runs

        def run(name: str) -> RunFolder:
            return open_run(folder_of(root, name))

        @app.get("/api/runs", summary="The runs of the server's folder of runs, and how far each has come")
        async def runs() -> Response:
            return await studio.json(lambda: {"folder": str(root), "runs": run_records(root)})

        @app.get("/api/runs/{name}", summary="The topics of a run, or those in which a text occurs, in any case")
        async def topics(name: str, text: str = "") -> Response:
            return await studio.json(lambda: run(name).overview(text))

        @app.get("/api/runs/{name}/topic", summary="What every system made of a topic, and its calls of models")
        async def topic(name: str, id: str) -> Response:
            return await studio.json(lambda: run(name).topic(id))

        @app.get("/api/runs/{name}/exchange", summary="An exchange with a model, uncut, by its line in the transcript")
        async def exchange(name: str, number: int) -> Response:
            return await studio.json(lambda: run(name).exchange(number))

        @app.get("/api/compared", summary="Two runs side by side: their systems, and what these were made from")
        async def two(left: str, right: str) -> Response:
            return await studio.json(partial(compared, root, left, right))

        @app.get("/runs", include_in_schema=False)
        async def runs_page() -> Response:
            return studio.html("runs.html")

        @app.get("/runs/{name}/topics", include_in_schema=False)
        async def topics_page(name: str) -> Response:
            await asyncio.wrap_future(studio.lanes.submit(partial(folder_of, root, name)))
            return studio.html("run.html")

        @app.get("/compare", include_in_schema=False)
        async def compare_page() -> Response:
            return studio.html("compare.html")

        @app.get("/runs/{name}", include_in_schema=False)
        async def run_page(name: str) -> Response:
            path = await asyncio.wrap_future(studio.lanes.submit(partial(page_of, root, name)))
            return HTMLResponse(path.read_bytes(), headers={"content-security-policy": RUN_POLICY})
