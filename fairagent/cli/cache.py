"""`fairagent cache`: statistics and deletion of the cached replies of language models."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from fairagent.cli.options import AsJson, Assignments, SettingsFile, settings_of
from fairagent.cli.terminal import console, echo
from fairagent.errors import UsageError

cache = typer.Typer(no_args_is_help=True, help="Show or delete the cached replies of language models.")


@cache.command("stats")
def stats(settings: SettingsFile = None, assignments: Assignments = None, as_json: AsJson = False) -> None:
    """Say how many replies are kept, of which models, and what they took when they were paid for."""
    from fairagent.llm.cache import CacheStats, ReplyCache
    from fairagent.report.record import to_json

    folder = _folder(settings, assignments)
    if folder.is_dir():
        kept = ReplyCache(folder)
        found = kept.stats()
        kept.close()
    else:
        found = CacheStats(str(folder), 0, 0, 0, 0, 0.0, {})
    if as_json:
        echo(to_json(asdict(found)))
        return
    out = console()
    out.print(f"{found.folder}: {found.replies:,} replies, {found.bytes / 1e6:.1f} MB", soft_wrap=True)
    for model, count in sorted(found.models.items()):
        out.print(f"  {model}: {count:,}", soft_wrap=True)
    if found.replies:
        out.print(f"they took {found.calls:,} calls, {found.tokens:,} tokens, ${found.dollars:.4f} at known prices")


@cache.command("clear")
def clear(
    settings: SettingsFile = None,
    assignments: Assignments = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
) -> None:
    """Delete all kept replies: what was paid for is then paid for again."""
    from fairagent.llm.cache import ReplyCache

    folder = _folder(settings, assignments)
    if not folder.is_dir():
        console().print(f"no replies are kept in {folder}", soft_wrap=True)
        return
    kept = ReplyCache(folder)
    if not yes:
        typer.confirm(f"Delete the {kept.stats().replies:,} replies in {folder}?", abort=True)
    removed = kept.clear()
    kept.close()
    console().print(f"{removed:,} replies deleted from {folder}", soft_wrap=True)


def _folder(settings: Path | None, assignments: list[str] | None) -> Path:
    folder = settings_of(settings, assignments).cache
    if not folder:
        raise UsageError("no replies are kept: `cache` is empty in the settings")
    return Path(folder)
