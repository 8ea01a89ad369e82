"""`fairagent serve`: the studio and its API; `fairagent mcp`: search as tools for agents."""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

from fairagent.cli import options
from fairagent.cli.options import echo, option
from fairagent.settings.tree import TOKEN
from fairagent.storage.packages import expect_installed


@options.spread
def serve(
    port: Annotated[int, option("--port", "The port; 0 is any free one.", min=0, max=65535)] = 8765,
    host: Annotated[
        str, option("--host", "The address to listen at; 0.0.0.0: all of this machine.", "ADDRESS")
    ] = "127.0.0.1",
    allow_host: Annotated[
        list[str] | None,
        option(
            "--allow-host",
            "A name that browsers and programs may call the server by, e.g. that of a proxy; may be repeated.",
            "NAME",
        ),
    ] = None,
    token: Annotated[
        bool,
        option("--token/--no-token", "Whether a token is needed: that of FAIRAGENT_TOKEN, else a new one each start."),
    ] = True,
    tokens: Annotated[
        Path | None,
        option(
            "--tokens",
            "Who may ask in the place of one token: JSON lines of `name`, `sha256` (of the token) and `budget`.",
            "FILE",
        ),
    ] = None,
    metrics_open: Annotated[
        bool, option("--metrics-open", "Let anybody who reaches the server read /metrics, without a token.")
    ] = False,
    log_format: options.LogFormat = "text",
    log_texts: options.LogTexts = False,
    runs: Annotated[Path, option("--runs", "The folder of run folders.", "DIR")] = Path("runs"),
    prompts: Annotated[
        Path | None,
        option("--prompts", "The folder for edited templates. (default: the settings', else my-prompts)", "DIR"),
    ] = None,
    model: options.ModelName = None,
    *,
    of: options.CollectionOptions,
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

    called = _called(of, model)
    serving = Serving(host, port, tuple(allow_host or ()), tokens, token, os.environ.get(TOKEN, ""), metrics_open)
    serve(lambda: Desk(options.settings_file(of.settings), called), serving, runs, prompts, echo)


def _called(of: options.CollectionOptions, model: str | None) -> dict[str, Any]:
    """What the call of a server sets."""
    named = {"name": model} if model else None
    return options.overrides(of.assignments, collection=of.collection, index=of.index, model=named)


@options.spread
def mcp(
    of: options.CollectionOptions,
    model: options.ModelName = None,
    log_format: options.LogFormat = "text",
    log_texts: options.LogTexts = False,
) -> None:
    """Serve the tools search, steer, answer and exposure to another agent, over the Model Context Protocol.

    It reads standard input and writes standard output; the agent that starts it ends it, by closing standard input or
    by a signal. All calls together share the settings' budget, and none can choose files or servers.
    """
    expect_installed("mcp", "fairagent mcp")
    options.logged_as(log_format, log_texts)
    from fairagent.studio.desk import Desk
    from fairagent.studio.lanes import Lanes
    from fairagent.studio.tools import mcp_server

    with closing(Desk(options.settings_file(of.settings), _called(of, model))) as desk:
        desk.warm()
        # In a thread that nobody waits for, as those are that it starts: the one that reads standard input waits until
        # that ends, and would keep the process after a signal.
        ended: Future[None] = Future()

        def run() -> None:
            try:
                ended.set_result(mcp_server(desk, Lanes()).run())
            except BaseException as error:
                ended.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        try:
            ended.result()
        except* BrokenPipeError:
            # The other agent read no more, and has left.
            pass
