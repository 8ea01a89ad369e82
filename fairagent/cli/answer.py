"""`fairagent answer`: an answer from a fair ranking, its sources, and the group exposure in both."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from fairagent.cli import options
from fairagent.cli.evaluate import PARTIAL
from fairagent.cli.options import console, echo, status
from fairagent.cli.search import Dimensions, Topic, check_query, query_of
from fairagent.cli.search_options import ListOptions

if TYPE_CHECKING:
    from rich.console import Console

    from fairagent.retrieve.site import Site
    from fairagent.types import AnswerResult


@options.spread
def answer(
    query: Annotated[str | None, typer.Argument(help="The question.", show_default=False)] = None,
    topic: Topic = None,
    *,
    listed: ListOptions,
    dimension: Dimensions = None,
    target: options.Target = None,
    beside: Annotated[
        bool, typer.Option("--beside", help="Also show the documents and the answer of the engine alone, side by side.")
    ] = False,
    of: options.SiteOptions,
    as_json: options.AsJson = False,
) -> None:
    """Search fairly, and answer from its hits.

    Prints the answer with its numbered sources, the exposure of the groups in what was retrieved and in what the answer
    rests on, and how it came about. Without more settings the answer is made of sentences of the documents;
    `--set generate.kind=llm` has the language model write it, `--set filter.kind=fair` has it judge the documents
    beforehand; `--set debias.kind=debias-rag` chooses contexts unlike the biased passages of a library. An answer that
    was cut off is shown as far as it goes, and the exit code is 7.
    """
    from fairagent.llm.exchange import transcript as transcript_in
    from fairagent.report.record import answer_record, to_json
    from fairagent.report.story import comparison_table
    from fairagent.search.pipeline import build, engine_alone, open_live, with_settings

    asked_for = listed.asked
    chosen = of.chosen(
        dimensions=dimension or None,
        target=options.target_of(target),
    )
    check_query(query, topic)
    out = console()
    streams = out.is_terminal and not (beside or as_json)
    with status(hidden=of.log_prompts):
        live = open_live(settings=chosen)
        site = live.now()
        name, question = site.collection.name, query_of(query, topic, site.collection)
    under = asked_for.over(site.settings, site.collection.groups.dimensions)
    options.announce_search(with_settings(site, under), question, answers=True)
    with status(hidden=of.log_prompts) as ended, closing(live), transcript_in(of.transcript):

        def write(piece: str) -> None:
            ended()
            echo(piece, end="")

        def answered(site: Site) -> list[AnswerResult]:
            # The engine alone has no dial.
            alone = asked_for.model_copy(update={"fairness": None, "keep": None, "gap": None})
            plain = [engine_alone(site).answer(question, **alone.given)] if beside else []
            return [*plain, build(site).answer(question, write if streams else None, **asked_for.given)]

        results = live.use(answered)
    records = list(map(answer_record, results)) if as_json else []
    if as_json and beside:
        echo(to_json({"collection": name, **dict(zip(("plain", "fair"), records, strict=True))}))
    elif as_json:
        echo(results[0].to_json())
    elif beside:
        out.print(comparison_table(*zip(("the engine alone", "fairagent"), results, strict=True)))
    else:
        # A second pass is not heard while it is written: what stands there then is the first answer.
        written = streams and bool(results[0].answer.text) and not results[0].revised
        if streams and results[0].revised:
            out.print("\n\nRevised, since its citations missed the target:")
        print_answer(results[0], out, written)
    if any(result.answer.truncated for result in results):
        raise typer.Exit(PARTIAL)


def print_answer(result: AnswerResult, out: Console, written: bool = False) -> None:
    """Print an answer and all that belongs to it; the text itself only where it was not `written` before."""
    from fairagent.report.story import CUT_OFF, answer_body, answer_story, sources_table
    from fairagent.report.text import ExposureBars, verdict_text

    if written:
        out.print(CUT_OFF if result.answer.truncated else "")
    else:
        out.print(answer_body(result), soft_wrap=False)
    out.print()
    if result.search.trace.exposures:
        out.print(verdict_text(result.search.trace.changes))
    if result.context:
        out.print(sources_table(result))
        if (rests := result.attribution) and rests.exposures:
            pairs = tuple(zip(rests.retrieved, rests.exposures, strict=True))
            out.print(ExposureBars(("retrieved", rests.called), pairs, result.search.trace))
            out.print()
    out.print(answer_story(result))
