"""`fairagent serve`: the studio, a page in the browser to search with, and its API."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from fairagent.cli import options
from fairagent.cli.options import echo
from fairagent.settings.tree import TOKEN
from fairagent.storage.packages import expect_installed

PORT = 8765


def serve(
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 is any free one.")] = PORT,
    host: Annotated[
        str,
        typer.Option("--host", metavar="ADDRESS", help="The address to listen at; 0.0.0.0: all of this machine."),
    ] = "127.0.0.1",
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="NAME",
            help="A name that browsers and programs may call the server by, e.g. that of a proxy; may be repeated.",
        ),
    ] = None,
    token: Annotated[
        bool,
        typer.Option(
            "--token/--no-token", help="Whether a token is needed: that of FAIRAGENT_TOKEN, else a new one each start."
        ),
    ] = True,
    tokens: Annotated[
        Path | None,
        typer.Option(
            "--tokens",
            metavar="FILE",
            help="Who may ask in the place of one token: JSON lines of `name`, `sha256` (of the token) and `budget`.",
        ),
    ] = None,
    metrics_open: Annotated[
        bool, typer.Option("--metrics-open", help="Let anybody who reaches the server read /metrics, without a token.")
    ] = False,
    log_format: options.LogFormat = "text",
    log_texts: options.LogTexts = False,
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

    Prints the address. It is served until Ctrl-C, on this machine alone (127.0.0.1) where no --host says otherwise, and
    loads nothing from elsewhere. A program can use the same under /api, with the token in the header `Authorization:
    Bearer TOKEN`. All requests together share the settings' budget, and each user of --tokens has one besides.
    """
    for package in ("fastapi", "uvicorn", "prometheus-client"):
        expect_installed(package, "fairagent serve")
    options.logged_as(log_format, log_texts)
    from fairagent.studio.desk import Desk
    from fairagent.studio.serving import Serving, serve

    called = options.overrides(assignments, collection=collection, index=index)
    serving = Serving(host, port, tuple(allow_host or ()), tokens, token, os.environ.get(TOKEN, ""), metrics_open)
    serve(lambda: Desk(options.settings_file(settings), called), serving, runs, prompts, echo)
