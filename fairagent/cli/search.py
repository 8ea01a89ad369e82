"""`fairagent search`: a fair ranking and how it came about; `fairagent answer`: an answer from its hits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from fairagent.cli import options
from fairagent.cli.options import console, echo, error_console, option, print_json, status
from fairagent.errors import UsageError
from fairagent.settings.faults import no_such
from fairagent.types.clean import in_line
from fairagent.types.common import is_unfinished

if TYPE_CHECKING:
    from fairagent.collection import Collection
    from fairagent.retrieve.site import Site
    from fairagent.search.live import LiveSite
    from fairagent.settings import SearchOptions, Settings
    from fairagent.types import AnswerResult, Query

Topic = Annotated[str | None, option("--topic", "A topic of the collection, with its query or yours.", "ID")]
Stochastic = Annotated[
    float | None,
    option(
        "--stochastic",
        "Draw the ranking at random: 0 is any order, 8 nearly the best. (another draw: --set sampling.seed=1)",
        "ALPHA",
    ),
]


@options.spread
def search(
    query: Annotated[str | None, typer.Argument(help="What to search for.", show_default=False)] = None,
    topic: Topic = None,
    *,
    listed: options.ListOptions,
    dimension: options.Dimensions = None,
    target: options.Target = None,
    stochastic: Stochastic = None,
    of: options.SiteOptions,
    as_json: options.AsJson = False,
) -> None:
    """Search fairly, and show how it came about.

    Prints what changed for the groups, a sentence a dimension, the ranking with the documents' groups, the groups'
    exposure before and after, and every step between.
    Exposure is the share of the readers' attention that a group's documents get; "before" is the engine's ranking for
    the plain query. Where a filter gave no verdict on some documents an alarm says so, and the exit code is 7.
    """
    from fairagent.report.record import result_record
    from fairagent.report.story import story
    from fairagent.report.text import exposure_table, hits_table, verdict_text
    from fairagent.search.pipeline import build

    requested = listed.requested
    drawn = None if stochastic is None else {"alpha": stochastic}
    chosen = of.chosen(dimensions=dimension or None, target=options.target_of(target), sampling=drawn)
    with _opened(of, chosen, requested, (query, topic), answers=False) as (live, question, _):
        result = live.use(lambda site: build(site).search(question, **requested.given))
    out, trace, n = console(), result.trace, requested.n or chosen.n
    if as_json:
        print_json(result_record(result))
    elif not result.hits:
        notes = [note for note in trace.notes if note.startswith("where ")]
        out.print(notes[0] if notes else "No hits: no word of the query occurs in the index.", markup=False)
    else:
        if len(result.hits) < n:
            out.print(f"Only {len(result.hits)} of the {n} documents wanted have a word of the query.")
        if trace.exposures:
            out.print(verdict_text(trace.changes))
        out.print(hits_table(result.hits, trace.steps[0].ranking))
        if trace.exposures:
            out.print(exposure_table(trace))
        out.print()
        out.print(story(trace))
    if is_unfinished(trace.alarms):
        raise typer.Exit(options.PARTIAL)


@contextmanager
def _opened(
    of: options.SiteOptions,
    chosen: Settings,
    requested: SearchOptions,
    asked: tuple[str | None, str | None],
    answers: bool,
) -> Iterator[tuple[LiveSite, Query, Callable[[], None]]]:
    """What searches the collection, the query, and what ends the line that says what is being done.

    `asked` are a query and a topic. What may be asked of models is said before; calls go to the transcript.
    """
    from fairagent.llm.exchange import transcript
    from fairagent.search.pipeline import most_calls, open_live, unasked
    from fairagent.search.run import unpriced

    check_query(*asked)
    with status(hidden=of.log_prompts):
        live = open_live(settings=chosen)
        site = live.now()
        question = query_of(*asked, site.collection)
    settings = requested.over(site.settings, site.collection.groups.dimensions)
    model, calls = settings.model.name, most_calls(site.collection, settings, [question.text], answers)
    options.announce_calls(options.requests_of(calls, settings.prices), any(one.corrected for one in calls))
    # What a model's name, or its lack, comes to.
    line = unasked(settings)
    if model and settings.profile == "agent":
        does = ", filters and writes the answer" if answers else ""
        line = f"profile: agent: it names words of groups that lack exposure{does}; --set profile=offline asks none"
    elif model and not calls:
        line = f"{model} is named, and nothing asks it under profile: {settings.profile}; --set profile=agent does"
    for one in (*unpriced(settings), *[line] * bool(line)):
        error_console().print(in_line(one), soft_wrap=True, markup=False)
    with status(hidden=of.log_prompts) as end_status, closing(live), transcript(of.transcript):
        yield live, question, end_status


def check_query(query: str | None, topic: str | None) -> None:
    """Raise UsageError where there is nothing to search for."""
    if query is None and topic is None:
        raise UsageError("nothing to search for: give a query, or --topic ID for a topic of the collection")
    if query is not None and not query.strip():
        raise UsageError("the query is empty; give at least one word")


def query_of(text: str | None, topic: str | None, collection: Collection) -> Query:
    """The user's words, the topic's, or the user's in the topic's place."""
    from fairagent.types import Query

    if topic is None:
        return Query(text or "")
    if topic not in collection.topics:
        raise UsageError(f"collection {collection.name!r} has {no_such('topic', topic, collection.topics)}")
    return Query(text or collection.topics[topic].query, topic)


@options.spread
def answer(
    query: Annotated[str | None, typer.Argument(help="The question.", show_default=False)] = None,
    topic: Topic = None,
    *,
    listed: options.ListOptions,
    dimension: options.Dimensions = None,
    target: options.Target = None,
    beside: Annotated[
        bool, option("--beside", "Also show the documents and the answer of the engine alone, side by side.")
    ] = False,
    of: options.SiteOptions,
    as_json: options.AsJson = False,
) -> None:
    """Search fairly, and answer from its hits.

    Prints the answer with its numbered sources, the exposure of the groups in what was retrieved and in what the answer
    rests on, and how it came about. Without more settings the answer is made of sentences of the documents;
    `--set generate.kind=llm` has the language model write it, `--set filter.kind=fair` has it judge the documents
    beforehand; `--set debias.kind=debias-rag` chooses contexts unlike the biased passages of a library. An answer that
    was cut off is shown as far as it goes, and the exit code is 7; so it is where the filter gave no verdict on some
    documents.
    """
    from fairagent.report.record import answer_record
    from fairagent.report.story import CUT_OFF, answer_body, answer_story, comparison_table, sources_table
    from fairagent.report.text import ExposureBars, verdict_text
    from fairagent.search.pipeline import build, engine_alone

    requested = listed.requested
    chosen = of.chosen(dimensions=dimension or None, target=options.target_of(target))
    out = console()
    streams, pieces = out.is_terminal and not (beside or as_json), list[str]()
    with _opened(of, chosen, requested, (query, topic), answers=True) as (live, question, end_status):

        def write(piece: str) -> None:
            end_status()
            pieces.append(piece)
            echo(piece, end="")

        def answers(site: Site) -> list[AnswerResult]:
            # The engine alone has no dial.
            alone = requested.model_copy(update={"fairness": None, "keep": None, "gap": None})
            plain = [engine_alone(site).answer(question, **alone.given)] if beside else []
            return [*plain, build(site).answer(question, write if streams else None, **requested.given)]

        results = live.use(answers)
    result = results[0]
    if as_json and beside:
        plain, fair = map(answer_record, results)
        print_json({"collection": fair["collection"], "plain": plain, "fair": fair})
    elif as_json:
        echo(result.to_json())
    elif beside:
        out.print(comparison_table(*zip(("the engine alone", "fairagent"), results, strict=True)))
    else:
        # What takes the place of a first answer is not heard while it is written.
        other = bool(pieces) and "".join(pieces) != result.answer.text
        if other and (choice := result.aimed) and not choice.aimed:
            out.print("\n\nThe plain answer's citations are worth more; in its place:")
        elif other and result.revised:
            out.print("\n\nRevised, since its citations missed the target:")
        elif other:
            out.print("\n\nThat cites no document; in its place:")
        written = bool(pieces) and not other
        out.print((CUT_OFF if result.answer.truncated else "") if written else answer_body(result))
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
    if any(one.answer.truncated or is_unfinished(one.alarms) for one in results):
        raise typer.Exit(options.PARTIAL)
