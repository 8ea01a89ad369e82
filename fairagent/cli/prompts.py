"""`fairagent prompts`: list, show, check, try out and copy the prompt templates."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairagent.cli import options
from fairagent.cli.options import AsJson, console, echo, error_console, option, print_json
from fairagent.cli.search import Topic, check_query, query_of
from fairagent.errors import Fault, PromptError, ReplyError, UsageError
from fairagent.settings.faults import no_such
from fairagent.storage.files import explained, new_file
from fairagent.storage.readers import Malformed, file_bytes, file_text
from fairagent.types.common import counted

if TYPE_CHECKING:
    from fairagent.llm.prompts import Prompt, Prompts
    from fairagent.studio.tryout import TryoutReply

LARGEST = 1 << 20
"""Bytes of a template's file to be shown."""
Name = Annotated[str, typer.Argument(metavar="NAME", help="A template, e.g. refine_query.", show_default=False)]
Source = Annotated[str | None, option("--prompts", "A folder or shipped variant. (default: the settings')", "DIR")]

prompts = typer.Typer(no_args_is_help=True, help="List, show, check, try out and copy the prompt templates.")


def _open(source: str | None, under: options.SettingsOptions) -> Prompts:
    from fairagent.llm.prompts import Prompts

    return Prompts(source if source is not None else under.chosen().prompts)


def _known(name: str, used: Prompts) -> str:
    """`name`, if there is such a template; UsageError with the nearest one else."""
    id = name.removesuffix(".j2")
    if id not in used.ids:
        raise UsageError(no_such("prompt template", id, used.ids))
    return id


def _record(prompt: Prompt) -> dict[str, object]:
    return {**prompt.head.model_dump(mode="json"), "file": str(prompt.path), "sha256": prompt.sha256}


@prompts.command("list")
@options.spread
def list_prompts(under: options.SettingsOptions, source: Source = None, as_json: AsJson = False) -> None:
    """List the templates that a call would use, and the shipped variants."""
    from fairagent.llm.prompts import variants

    used = _open(source, under)
    if as_json:
        print_json({"prompts": [_record(used[id]) for id in used.ids], "variants": list(variants())})
        return
    for id in used.ids:
        head = used[id].head
        echo(f"{id} version {head.version}, replies with {head.reply}\n    {head.purpose}")
        if used.folder and used[id].path.parent == used.folder:
            echo(f"    from {used[id].path}")
    echo(f"variants, for --prompts and `prompts:` in the settings: {', '.join(variants())}")


@prompts.command("show")
@options.spread
def show(name: Name, under: options.SettingsOptions, source: Source = None, as_json: AsJson = False) -> None:
    """Print a template as it stands in its file."""
    used = _open(source, under)
    prompt = used[_known(name, used)]
    try:
        text = file_text(prompt.path, LARGEST)
    except (OSError, Malformed) as error:
        raise PromptError("a prompt template cannot be read", [Fault(prompt.path, None, str(error))]) from None
    if as_json:
        print_json({**_record(prompt), "text": text})
    else:
        echo(text, end="")


@prompts.command("check")
@options.spread
def check(under: options.SettingsOptions, source: Source = None, as_json: AsJson = False) -> None:
    """Check templates, and name every error with its file and line (exit code 4).

    Without --prompts, the shipped ones with their variants, and the settings' own.
    """
    from fairagent.llm.prompts import check_prompts, variants

    sources = dict.fromkeys(["", *variants(), under.chosen().prompts]) if source is None else [source]
    checks = [check_prompts(each) for each in sources]
    files = {file for check in checks for file in check.files}
    # The shipped ones are checked with every source.
    distinct = dict.fromkeys(fault for check in checks for fault in check.faults)
    faults = sorted(distinct, key=lambda fault: (str(fault.path), fault.line or 0))
    if as_json:
        records = [{"file": str(fault.path), "line": fault.line, "message": fault.message} for fault in faults]
        print_json({"templates": len(files), "faults": records})
    elif faults:
        places = counted(len({fault.path for fault in faults}), "file")
        for line in (*map(str, faults), f"{counted(len(faults), 'error')} in {places}"):
            error_console().print(line, soft_wrap=True)
    else:
        console().print(f"{len(files)} templates, no error")
    if faults:
        raise typer.Exit(PromptError.exit_code)


@prompts.command("eject")
def eject(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to copy to.", show_default=False)],
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Their names. (default: all)")] = None,
    source: Annotated[str, option("--prompts", "Copy from this variant or folder. (default: as shipped)", "DIR")] = "",
) -> None:
    """Copy templates to a folder, to edit them there; nothing is overwritten."""
    from fairagent.llm.prompts import Prompts

    used = Prompts(source)
    paths = [used[_known(name, used)].path for name in names or used.ids]
    if there := [path.name for path in paths if os.path.lexists(folder / path.name)]:
        raise UsageError(f"{folder} already holds {', '.join(there)}; nothing was copied. Name another folder")
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for path in paths:
            with new_file(folder / path.name, replacing=False) as file:
                file.write(file_bytes(path, LARGEST))
    echo(f"{', '.join(path.name for path in paths)} copied to {folder}")
    echo(f"Edit, then: fairagent prompts check --prompts {folder}")


@prompts.command("try")
@options.spread
def try_prompt(
    name: Name,
    query: Annotated[str | None, option("--query -q", "What to search for.", "TEXT")] = None,
    topic: Topic = None,
    group: Annotated[str, option("--group", "Group to refine for. (default: the most under-exposed)", "LABEL")] = "",
    dimension: options.Dimensions = None,
    target: options.Target = None,
    documents: Annotated[
        int, option("--documents", "How many documents to show, if the template shows any.", "N", min=1)
    ] = 3,
    answer: Annotated[str, option("--answer", "The answer to attribute, for the template `attribute`.", "TEXT")] = "",
    send: Annotated[bool, option("--send", "Send it, and show the reply and its effect.")] = False,
    source: Source = None,
    *,
    of: options.CollectionOptions,
    log_prompts: options.LogPrompts = False,
    as_json: AsJson = False,
) -> None:
    """Fill a template from a real search, and show the messages for the model.

    For the refining templates the first turn of the loop is run on the index; those that read documents get the first
    ones, and those that no search can fill are shown with examples. With --send the model is called, and its reply is
    shown with what the index and the loop do with it.
    """
    from rich.table import Table
    from rich.text import Text

    from fairagent.llm.prompts import Prompts
    from fairagent.llm.request import estimate_tokens
    from fairagent.report.story import usage_text
    from fairagent.search.pipeline import open_live
    from fairagent.studio.tryout import RecordingModel, tryout_of

    chosen = of.chosen(
        prompts=source,
        dimensions=dimension or None,
        target=options.target_of(target),
        model=options.logged(log_prompts),
        iterations=1,
        threshold=0.0,
    )
    check_query(query, topic)
    used = Prompts(chosen.prompts)
    id = _known(name, used)
    site = open_live(settings=chosen).now()
    tryout = tryout_of(id, used, site, query_of(query, topic, site.collection), group, documents, answer)
    tokens = estimate_tokens(*(text for _, text in tryout.messages))
    longest = used[id].longest_reply(chosen.model.max_tokens)
    if not as_json:
        console().print(tryout.about, soft_wrap=True)
        if tryout.messages:
            _print_texts(tryout.messages)
            console().print(f"about {tokens:,} tokens (one for every 4 bytes), and at most {longest:,} for the reply")
    reply: TryoutReply | None = None
    if send and tryout.messages:
        model = RecordingModel(site.model)
        try:
            reply = tryout.send(model)
        except ReplyError:
            if not as_json:
                _print_texts(("reply", text) for text in model.texts)
            raise
        finally:
            site.models.close()
    if as_json:
        prompt, replied = used[id], None
        if reply:
            usage = reply.usage.whole
            replied = {"texts": reply.texts, "rows": [row._asdict() for row in reply.rows], "end": reply.end}
            replied |= {name: getattr(usage, name) for name in ("calls", "input_tokens", "output_tokens", "cost")}
        record: dict[str, Any] = {
            "template": {"id": id, "version": prompt.head.version, "file": str(prompt.path), "sha256": prompt.sha256},
            "about": tryout.about,
            "messages": [{"role": role, "text": text} for role, text in tryout.messages],
            "tokens": tokens,
            "reply": replied,
        }
        print_json(record)
    elif reply:
        _print_texts(("reply", text) for text in reply.texts)
        if reply.rows:
            table = Table.grid(padding=(0, 2))
            for row in reply.rows:
                table.add_row(Text(row.what), Text(row.value, justify="right"), Text(row.effect))
            console().print(table)
        if reply.end:
            console().print(reply.end, soft_wrap=True)
        console().print(usage_text(reply.usage.whole) + (", from the cache" if reply.usage.saved else ""))


def _print_texts(texts: Iterable[tuple[str, str]]) -> None:
    """Print texts, each below the role of who says it."""
    out = console()
    for role, text in texts:
        out.rule(role, style="dim")
        out.print(text, soft_wrap=True)
    out.rule(style="dim")
