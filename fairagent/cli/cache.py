"""`fairagent cache`: the cached replies of language models: statistics, what they say, deletion."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairagent.cli.options import AsJson, Assignments, SettingsFile, console, echo, settings_of
from fairagent.errors import UsageError

if TYPE_CHECKING:
    from fairagent.llm import ModelReply

LISTED = 20
"""Replies."""
KEY_SHOWN = 12
"""Characters of a key in a list: enough to name it by."""

cache = typer.Typer(no_args_is_help=True, help="Count, show or delete the cached replies of language models.")


@cache.command("stats")
def stats(settings: SettingsFile = None, assignments: Assignments = None, as_json: AsJson = False) -> None:
    """Say how many replies are cached, of which models, and what they took when they were paid for."""
    from fairagent.llm.cache import CacheStats, ReplyCache
    from fairagent.report.record import to_json

    folder = _folder(settings, assignments)
    if folder.is_dir():
        store = ReplyCache(folder)
        stats = store.stats()
        store.close()
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


@cache.command("show")
def show(
    key: Annotated[
        str | None, typer.Argument(metavar="KEY", help="The beginning of a reply's key.", show_default=False)
    ] = None,
    newest: Annotated[bool, typer.Option("--newest", help="Show the newest reply.")] = False,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="List at most N replies.")] = LISTED,
    settings: SettingsFile = None,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """List the cached replies, the last first, or show one: by the beginning of its key, or the newest.

    The cache has the replies of models, under a hash of the request. The requests are in the transcript of
    a run, or of a search with --transcript.
    """
    from fairagent.llm.cache import ReplyCache
    from fairagent.report.record import to_json

    if key and newest:
        raise UsageError("name a key or --newest, not both")
    folder = _folder(settings, assignments)
    entries: list[tuple[str, ModelReply]] = []
    if folder.is_dir():
        with closing(ReplyCache(folder)) as store:
            those = (one for one in store.newest() if one[0].startswith(key or ""))
            entries = list(islice(those, 1 if newest else None if key else limit))
    one = bool(key) or newest
    if one and not entries:
        raise UsageError(f"no reply{f' has a key that begins with {key!r}' if key else ' is cached'} in {folder}")
    if key and len(entries) > 1:
        keys = "\n  ".join(id for id, _ in entries[:LISTED])
        raise UsageError(f"{len(entries):,} replies have keys that begin with {key!r}; give more of one:\n  {keys}")
    records = [{"key": id, **asdict(reply)} for id, reply in entries]
    if as_json:
        echo(to_json(records[0] if one else {"folder": str(folder), "replies": records}))
    elif one:
        _print_reply(*entries[0])
    else:
        _list(entries, folder)


def _list(entries: Sequence[tuple[str, ModelReply]], folder: Path) -> None:
    from rich import box
    from rich.table import Table

    from fairagent.types.clean import in_line

    if not entries:
        console().print(f"no replies are cached in {folder}", soft_wrap=True)
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for name in ("key", "model"):
        table.add_column(name, no_wrap=True)
    for name in ("tokens in", "out"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("reply", no_wrap=True, overflow="ellipsis")
    for id, reply in entries:
        counts = f"{reply.input_tokens:,}", f"{reply.output_tokens:,}"
        table.add_row(id[:KEY_SHOWN], in_line(reply.model), *counts, in_line(reply.text[:200]))
    console().print(table)


def _print_reply(key: str, reply: ModelReply) -> None:
    cost = "price unknown" if reply.cost is None else f"${reply.cost:.6f} when it was paid"
    calls = f"{reply.calls:,} call{'s' * (reply.calls != 1)}"
    tokens = f"{reply.input_tokens:,} tokens in, {reply.output_tokens:,} out"
    about = f"{reply.model}: {calls}, {tokens}, {reply.seconds:.2f} s, {cost}; ended: {reply.finish}"
    for line in (f"key {key}", about, *(f"note: {note}" for note in reply.notes), "", reply.text):
        console().print(line, soft_wrap=True)


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
    store = ReplyCache(folder)
    if not yes:
        typer.confirm(f"Delete the {store.stats().replies:,} replies in {folder}?", abort=True)
    removed = store.clear()
    store.close()
    console().print(f"{removed:,} replies deleted from {folder}", soft_wrap=True)


def _folder(settings: Path | None, assignments: list[str] | None) -> Path:
    folder = settings_of(settings, assignments).cache
    if not folder:
        raise UsageError("no replies are cached: `cache` is empty in the settings")
    return Path(folder)
