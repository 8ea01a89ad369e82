"""The pages of runs: a plain list of their folder, and the page that each run has made of itself."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from fastapi import FastAPI
from starlette.responses import HTMLResponse, Response

from fairagent.errors import FairAgentError, UsageError
from fairagent.evaluate.results import PAGE
from fairagent.evaluate.run import HEAD, plan_in, read_head
from fairagent.report.record import PlainRecord
from fairagent.settings.faults import no_such
from fairagent.storage.files import is_worked_in, open_to_read
from fairagent.studio.app import PAGES, Studio, StudioPage
from fairagent.studio.server import POLICY

RUN_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
"""Of the frame of a run's page, a file of whoever made it: it has no origin, and can ask this server nothing."""
AROUND = f"{POLICY}; frame-src 'self'"
"""Of the page around that frame."""


class RunPages(StudioPage):
    """The list of runs, and each run's own page in a frame."""

    links = (("/runs", "Runs"),)
    position = 2
    assets = ("runs.js", "report.js", "runs.css")

    def add(self, app: FastAPI, studio: Studio) -> None:
        @app.get("/api/runs", summary="The runs of the server's folder of runs, that which was begun last first")
        async def runs() -> Response:
            return await studio.json(partial(list_record, studio.runs))

        @app.get("/api/runs/{name}/page", summary="The page of a run, as it is in its folder (HTML)")
        async def page(name: str) -> Response:
            content = await studio.lanes.do(partial(page_of, studio.runs, name))
            # As a download at most: a browser must not show it as a page of this server.
            headers = {"content-disposition": "attachment"}
            return Response(content, headers=headers, media_type="text/plain; charset=utf-8")

        @app.get("/runs", include_in_schema=False)
        async def runs_page() -> Response:
            return studio.html("runs.html")

        @app.get("/runs/{name}", include_in_schema=False)
        async def run_page(name: str) -> Response:
            around = studio.html("report.html")
            around.headers["content-security-policy"] = AROUND
            return around

        @app.get("/frame", include_in_schema=False)
        async def frame() -> Response:
            own = {"content-security-policy": RUN_POLICY, "x-frame-options": "SAMEORIGIN"}
            return HTMLResponse((PAGES / "frame.html").read_bytes(), headers=own)


def run_folders(root: Path) -> list[Path]:
    """The folders of `root` that hold a run, by name; none that is a link."""
    folders = sorted(root.iterdir()) if root.is_dir() else []
    return [folder for folder in folders if (folder / HEAD).is_file() and not folder.is_symlink()]


def list_record(root: Path) -> PlainRecord:
    """What was compared in each run, and whether it has a page yet; the `fault` of those that cannot be read."""
    begun = {}
    for folder in run_folders(root):
        # When run.json was written: when the run was begun, or its plan changed. It may be removed meanwhile.
        with suppress(OSError):
            begun[folder] = (folder / HEAD).stat().st_mtime
    runs: list[PlainRecord] = []
    for folder in sorted(begun, key=lambda one: (-begun[one], one.name)):
        try:
            plan = plan_in(read_head(folder), folder)
        except FairAgentError as error:
            runs.append({"name": folder.name, "fault": str(error)})
            continue
        row = {
            "name": folder.name,
            "title": plan.experiment.name,
            "kind": plan.experiment.kind,
            "begun": datetime.fromtimestamp(begun[folder], UTC).isoformat(timespec="seconds"),
            "systems": list(plan.systems),
            "topics": len(plan.topics),
            "running": is_worked_in(folder),
            "page": (folder / PAGE).is_file(),
        }
        runs.append(row)
    return {"folder": str(root), "runs": runs}


def page_of(root: Path, name: str) -> bytes:
    """The page of a run, by a name that leads nowhere else; UsageError where there is none, NotRegular for a link."""
    folders = {folder.name: folder for folder in run_folders(root)}
    if name not in folders:
        raise UsageError(f"{root} has {no_such('run', name, folders)}")
    try:
        with open_to_read(folders[name] / PAGE, folders[name]) as file:
            return file.read()
    except FileNotFoundError:
        raise UsageError(f"the run {name!r} in {root} has no page yet; fairagent report makes one") from None
