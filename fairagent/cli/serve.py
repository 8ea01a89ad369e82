"""`fairagent serve`: the studio, a page in the browser to search with, and its API."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairagent.cli import options
from fairagent.cli.options import echo
from fairagent.storage.packages import expect_installed

PORT = 8765


def serve(
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 is any free one.")] = PORT,
    token: Annotated[
        bool, typer.Option("--token/--no-token", help="Whether the address needs a token, new at each start.")
    ] = True,
    runs: Annotated[Path, typer.Option("--runs", metavar="DIR", help="The folder of run folders.")] = Path("runs"),
    prompts: Annotated[
        Path | None,
        typer.Option(
            "--prompts",
            metavar="DIR",
            help="The folder for edited templates. (default: the settings', else my-prompts)",
        ),
    ] = None,
    collection: options.CollectionFile = None,
    index: options.IndexFolder = None,
    settings: options.SettingsFile = None,
    assignments: options.Assignments = None,
) -> None:
    """Open the studio: search in the browser, and see how a ranking becomes fair.

    Prints the address. It is served on this machine alone (127.0.0.1) until Ctrl-C, and loads nothing from elsewhere. A
    program can use the same under /api, with the token in the header `Authorization: Bearer TOKEN`. All requests
    together share the settings' budget.
    """
    for package in ("fastapi", "uvicorn"):
        expect_installed(package, "fairagent serve")
    from fairagent.studio.app import serve
    from fairagent.studio.desk import StartSettings

    origin = StartSettings(options.settings_file(settings), overrides(assignments, collection, index))
    serve(origin, port, token, runs, prompts, lambda address: echo(f"{address}\nCtrl-C ends it."))


def overrides(assignments: list[str] | None, collection: Path | None, index: Path | None) -> dict[str, object]:
    """What the command sets, as settings."""
    return options.overrides(assignments, collection=collection and str(collection), index=index and str(index))
