"""`fairagent prompts try`: fill a template from a real search, show it, and with --send ask the model."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Annotated

import typer

from fairagent.cli import options
from fairagent.cli.search import Dimensions, Target, Topic, check_query, query_of
from fairagent.cli.terminal import console, echo
from fairagent.errors import ReplyError, UsageError

if TYPE_CHECKING:
    from fairagent.prompts import Prompts
    from fairagent.tryout import FilledTemplate, TryoutReply

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
        str | None,
        typer.Option("--group", metavar="LABEL", help="Group to refine for. (default: the most under-exposed)"),
    ] = None,
    dimension: Dimensions = None,
    target: Target = None,
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
    """Fill a template from a real search, and show what the model would be asked.

    For the refining templates the first turn of the loop is run on the index; those that read documents get the first
    ones, and those that no search can fill are shown with examples. With --send the model is asked, and its reply is
    shown with what the index and the loop do with it.
    """
    from fairagent.llm.request import estimate_tokens
    from fairagent.pipeline import open_site
    from fairagent.prompts import Prompts
    from fairagent.report.record import to_json
    from fairagent.tryout import RecordingModel, tryout_of

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
    site = open_site(settings=chosen)
    tried = tryout_of(id, prompts, site, query_of(query, topic, site.collection), group or "", documents, answer)
    shown = tried.show()
    tokens = estimate_tokens(*(text for _, text in shown.messages))
    longest = prompts[id].longest_reply(chosen.model.max_tokens)
    out = console()
    if not as_json:
        _print_filled(shown)
        if shown.messages:
            out.print(f"about {tokens:,} tokens (one for every 4 bytes), and at most {longest:,} for the reply")
    reply = None
    if send and shown.messages:
        model = RecordingModel(site.model)
        try:
            reply = tried.send(model)
        except ReplyError:
            if not as_json:
                _print_texts(model.texts)
            raise
        finally:
            site.models.close()
    if as_json:
        echo(to_json(_record(id, prompts, shown, tokens, reply)))
    elif reply:
        _print_reply(reply)


def known(name: str, used: Prompts) -> str:
    """`name`, if there is such a template; UsageError with the nearest one else."""
    id = name.removesuffix(".j2")
    if id in used.ids:
        return id
    near = difflib.get_close_matches(id, used.ids, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(used.ids)}"
    raise UsageError(f"no prompt template {name!r}; {hint}")


def _print_filled(shown: FilledTemplate) -> None:
    out = console()
    out.print(shown.about, soft_wrap=True)
    for role, text in shown.messages:
        out.rule(role, style="dim")
        out.print(text, soft_wrap=True)
    if shown.messages:
        out.rule(style="dim")


def _print_texts(texts: list[str] | tuple[str, ...]) -> None:
    out = console()
    for text in texts:
        out.rule("reply", style="dim")
        out.print(text, soft_wrap=True)
    out.rule(style="dim")


def _print_reply(reply: TryoutReply) -> None:
    from rich.table import Table
    from rich.text import Text

    from fairagent.report.story import usage_text

    _print_texts(reply.texts)
    out = console()
    if reply.rows:
        table = Table.grid(padding=(0, 2))
        for what, found, becomes in reply.rows:
            table.add_row(Text(what), Text(found, justify="right"), Text(becomes))
        out.print(table)
    if reply.end:
        out.print(reply.end, soft_wrap=True)
    cached = ", from the cache" if reply.usage.saved else ""
    out.print(usage_text(reply.usage.whole) + cached)


def _record(
    id: str, prompts: Prompts, shown: FilledTemplate, tokens: int, reply: TryoutReply | None
) -> dict[str, object]:
    prompt = prompts[id]
    told = reply and {
        "texts": list(reply.texts),
        "rows": [{"what": what, "found": found, "becomes": becomes} for what, found, becomes in reply.rows],
        "end": reply.end,
        "calls": reply.usage.whole.calls,
        "input_tokens": reply.usage.whole.input_tokens,
        "output_tokens": reply.usage.whole.output_tokens,
        "cost": reply.usage.whole.cost,
    }
    return {
        "template": {"id": id, "version": prompt.head.version, "file": str(prompt.path), "sha256": prompt.sha256},
        "about": shown.about,
        "messages": [{"role": role, "text": text} for role, text in shown.messages],
        "tokens": tokens,
        "reply": told,
    }
