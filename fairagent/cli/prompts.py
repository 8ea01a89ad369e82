"""`fairagent prompts`: list, show, check, try out and copy the prompt templates.

`fairagent prompts try`: fill a template from a real search, show it, and with --send ask the model.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from fairagent.cli import options
from fairagent.cli.options import AsJson, Assignments, SettingsFile, console, echo, error_console, settings_of
from fairagent.cli.search import Dimensions, Topic, check_query, query_of
from fairagent.errors import Fault, PromptError, ReplyError, UsageError
from fairagent.settings.faults import no_such
from fairagent.storage.files import explained
from fairagent.storage.readers import Malformed, file_bytes, file_text
from fairagent.storage.regular import new_file
from fairagent.types.common import counted

if TYPE_CHECKING:
    from fairagent.llm.prompts import Prompt, Prompts
    from fairagent.studio.tryout import TryoutReply


Name = Annotated[str, typer.Argument(metavar="NAME", help="A template, e.g. refine_query.", show_default=False)]
Source = Annotated[
    str | None,
    typer.Option("--prompts", metavar="DIR", help="A folder or shipped variant. (default: the settings')"),
]


def try_prompt(
    name: Name,
    query: Annotated[str | None, typer.Option("--query", "-q", metavar="TEXT", help="What to search for.")] = None,
    topic: Topic = None,
    group: Annotated[
        str, typer.Option(metavar="LABEL", help="Group to refine for. (default: the most under-exposed)")
    ] = "",
    dimension: Dimensions = None,
    target: options.Target = None,
    documents: Annotated[
        int,
        typer.Option("--documents", min=1, metavar="N", help="How many documents to show, if the template shows any."),
    ] = 3,
    answer: Annotated[
        str, typer.Option("--answer", metavar="TEXT", help="The answer to attribute, for the template `attribute`.")
    ] = "",
    send: Annotated[bool, typer.Option("--send", help="Send it, and show the reply and its effect.")] = False,
    source: Source = None,
    collection: options.CollectionFile = None,
    index: options.IndexFolder = None,
    settings: options.SettingsFile = None,
    assignments: options.Assignments = None,
    log_prompts: options.LogPrompts = False,
    as_json: options.AsJson = False,
) -> None:
    """Fill a template from a real search, and show the messages for the model.

    For the refining templates the first turn of the loop is run on the index; those that read documents get the first
    ones, and those that no search can fill are shown with examples. With --send the model is called, and its reply is
    shown with what the index and the loop do with it.
    """
    from fairagent.llm.prompts import Prompts
    from fairagent.llm.request import estimate_tokens
    from fairagent.report.record import to_json
    from fairagent.search.pipeline import open_live
    from fairagent.studio.tryout import RecordingModel, tryout_of

    chosen = options.settings_of(
        settings,
        assignments,
        prompts=source,
        collection=collection,
        index=index,
        dimensions=dimension or None,
        target=options.target_of(target),
        model=options.logged(log_prompts),
        iterations=1,
        threshold=0.0,
    )
    check_query(query, topic)
    prompts = Prompts(chosen.prompts)
    id = known(name, prompts)
    site = open_live(settings=chosen).now()
    tryout = tryout_of(id, prompts, site, query_of(query, topic, site.collection), group, documents, answer)
    shown = tryout.show()
    tokens = estimate_tokens(*(text for _, text in shown.messages))
    longest = prompts[id].longest_reply(chosen.model.max_tokens)
    if not as_json:
        console().print(shown.about, soft_wrap=True)
        if shown.messages:
            _print_texts(shown.messages)
            console().print(f"about {tokens:,} tokens (one for every 4 bytes), and at most {longest:,} for the reply")
    reply = None
    if send and shown.messages:
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
        prompt, replied = prompts[id], None
        if reply:
            usage, names = reply.usage.whole, ("calls", "input_tokens", "output_tokens", "cost")
            replied = {"texts": reply.texts, "rows": [row._asdict() for row in reply.rows], "end": reply.end}
            replied |= {name: getattr(usage, name) for name in names}
        record = {
            "template": {"id": id, "version": prompt.head.version, "file": str(prompt.path), "sha256": prompt.sha256},
            "about": shown.about,
            "messages": [{"role": role, "text": text} for role, text in shown.messages],
            "tokens": tokens,
            "reply": replied,
        }
        echo(to_json(record))
    elif reply:
        _print_reply(reply)


def known(name: str, used: Prompts) -> str:
    """`name`, if there is such a template; UsageError with the nearest one else."""
    id = name.removesuffix(".j2")
    if id not in used.ids:
        raise UsageError(no_such("prompt template", id, used.ids))
    return id


def _print_texts(texts: Iterable[tuple[str, str]]) -> None:
    """Print texts, each below the role of who says it."""
    out = console()
    for role, text in texts:
        out.rule(role, style="dim")
        out.print(text, soft_wrap=True)
    out.rule(style="dim")


def _print_reply(reply: TryoutReply) -> None:
    from rich.table import Table

    from fairagent.report.story import usage_text

    _print_texts(("reply", text) for text in reply.texts)
    out = console()
    if reply.rows:
        table = Table.grid(padding=(0, 2))
        for row in reply.rows:
            table.add_row(Text(row.what), Text(row.value, justify="right"), Text(row.effect))
        out.print(table)
    if reply.end:
        out.print(reply.end, soft_wrap=True)
    out.print(usage_text(reply.usage.whole) + (", from the cache" if reply.usage.saved else ""))


LARGEST = 1 << 20
"""Bytes of a template's file to be shown."""

prompts = typer.Typer(no_args_is_help=True, help="List, show, check, try out and copy the prompt templates.")


@prompts.command("list")
def list_prompts(
    source: Source = None, settings: SettingsFile = None, assignments: Assignments = None, as_json: AsJson = False
) -> None:
    """List the templates that a call would use, and the shipped variants."""
    from fairagent.llm.prompts import variants
    from fairagent.report.record import to_json

    used = _open(source, settings, assignments)
    if as_json:
        records = [_record(used[id]) for id in used.ids]
        echo(to_json({"prompts": records, "variants": list(variants())}))
        return
    out = console()
    for id in used.ids:
        head = used[id].head
        out.print(Text(id, "bold"), f"version {head.version}, replies with {head.reply}", soft_wrap=True)
        out.print(f"    {head.purpose}", soft_wrap=True)
        if used.folder and used[id].path.parent == used.folder:
            out.print(f"    from {used[id].path}", soft_wrap=True)
    out.print(f"variants, for --prompts and `prompts:` in the settings: {', '.join(variants())}")


@prompts.command("show")
def show(
    name: Name,
    source: Source = None,
    settings: SettingsFile = None,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Print a template as it stands in its file."""
    from fairagent.report.record import to_json

    used = _open(source, settings, assignments)
    prompt = used[known(name, used)]
    try:
        text = file_text(prompt.path, LARGEST)
    except (OSError, Malformed) as error:
        raise PromptError("a prompt template cannot be read", [Fault(prompt.path, None, str(error))]) from None
    echo(to_json({**_record(prompt), "text": text}) if as_json else text, end="\n" if as_json else "")


@prompts.command("check")
def check(
    source: Source = None, settings: SettingsFile = None, assignments: Assignments = None, as_json: AsJson = False
) -> None:
    """Check templates, and name every error with its file and line (exit code 4).

    Without --prompts, the shipped ones with their variants, and the settings' own.
    """
    from fairagent.llm.prompts import check_prompts, variants
    from fairagent.report.record import to_json

    own = settings_of(settings, assignments).prompts
    checks = [
        check_prompts(each) for each in ([source] if source is not None else dict.fromkeys(["", *variants(), own]))
    ]
    files = {file for check in checks for file in check.files}
    # The shipped ones are checked with every source.
    distinct = dict.fromkeys(fault for check in checks for fault in check.faults)
    faults = sorted(distinct, key=lambda fault: (str(fault.path), fault.line or 0))
    if as_json:
        records = [{"file": str(fault.path), "line": fault.line, "message": fault.message} for fault in faults]
        echo(to_json({"templates": len(files), "faults": records}))
    elif faults:
        for fault in faults:
            error_console().print(str(fault), soft_wrap=True)
        error_console().print(
            f"{counted(len(faults), 'error')} in {counted(len({fault.path for fault in faults}), 'file')}"
        )
    else:
        console().print(f"{len(files)} templates, no error")
    if faults:
        raise typer.Exit(PromptError.exit_code)


@prompts.command("eject")
def eject(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to copy to.", show_default=False)],
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Their names. (default: all)")] = None,
    source: Annotated[
        str, typer.Option("--prompts", metavar="DIR", help="Copy from this variant or folder. (default: as shipped)")
    ] = "",
) -> None:
    """Copy templates to a folder, to edit them there; nothing is overwritten."""
    from fairagent.llm.prompts import Prompts

    used = Prompts(source)
    paths = [used[known(name, used)].path for name in names or used.ids]
    there = [path.name for path in paths if os.path.lexists(folder / path.name)]
    if there:
        raise UsageError(f"{folder} already holds {', '.join(there)}; nothing was copied. Name another folder")
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for path in paths:
            with new_file(folder / path.name, replacing=False) as file:
                file.write(file_bytes(path, LARGEST))
    out = console()
    out.print(f"{', '.join(path.name for path in paths)} copied to {folder}", soft_wrap=True)
    out.print(f"Edit, then: fairagent prompts check --prompts {folder}", soft_wrap=True)


prompts.command("try")(try_prompt)


def _open(source: str | None, settings: Path | None, assignments: list[str] | None) -> Prompts:
    from fairagent.llm.prompts import Prompts

    return Prompts(source if source is not None else settings_of(settings, assignments).prompts)


def _record(prompt: Prompt) -> dict[str, object]:
    head = prompt.head
    return {**head.model_dump(mode="json"), "file": str(prompt.path), "sha256": prompt.sha256}
