"""`fairagent cache`: the cached replies of language models: statistics, deletion."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from fairagent.cli.options import AsJson, Assignments, SettingsFile, console, echo, settings_of
from fairagent.errors import UsageError

cache = typer.Typer(no_args_is_help=True, help="Count or delete the cached replies of language models.")


@cache.command("stats")
def stats(settings: SettingsFile = None, assignments: Assignments = None, as_json: AsJson = False) -> None:
    """Say how many replies are cached, of which models, and what they took when they were paid for."""
    from fairagent.llm.cache import CacheStats, ReplyCache
    from fairagent.report.record import to_json

    folder = _folder(settings, assignments)
    if folder.is_dir():
        with closing(ReplyCache(folder)) as store:
            stats = store.stats()
    else:
        stats = CacheStats(str(folder), 0, 0, 0, 0, 0.0, {})
    if as_json:
        echo(to_json(asdict(stats)))
        return
    out = console()
    out.print(f"{stats.folder}: {stats.replies:,} replies, {stats.bytes / 1e6:.1f} MB", soft_wrap=True)
    for model, count in sorted(stats.models.items()):
        out.print(f"  {model}: {count:,}", soft_wrap=True)
    if stats.replies:
        out.print(f"they took {stats.calls:,} calls, {stats.tokens:,} tokens, ${stats.dollars:.4f} at known prices")


@cache.command("clear")
def clear(
    settings: SettingsFile = None,
    assignments: Assignments = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
) -> None:
    """Delete all cached replies: what was paid for is then paid for again."""
    from fairagent.llm.cache import ReplyCache

    folder = _folder(settings, assignments)
    if not folder.is_dir():
        console().print(f"no replies are cached in {folder}", soft_wrap=True)
        return
    with closing(ReplyCache(folder)) as store:
        if not yes:
            typer.confirm(f"Delete the {store.stats().replies:,} replies in {folder}?", abort=True)
        removed = store.clear()
    console().print(f"{removed:,} replies deleted from {folder}", soft_wrap=True)


def _folder(settings: Path | None, assignments: list[str] | None) -> Path:
    folder = settings_of(settings, assignments).cache
    if not folder:
        raise UsageError("no replies are cached: `cache` is empty in the settings")
    return Path(folder)
