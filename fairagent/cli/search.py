"""`fairagent search`: a fair ranking, the exposure of the groups, and the steps that led to it."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from fairagent.cli import options
from fairagent.cli.options import console, echo, status
from fairagent.cli.search_options import ListOptions
from fairagent.errors import UsageError
from fairagent.settings.faults import no_such

if TYPE_CHECKING:
    from fairagent.collection import Collection
    from fairagent.types import Query, SearchResult


Topic = Annotated[
    str | None,
    typer.Option("--topic", metavar="ID", help="A topic of the collection, with its query or yours."),
]
Dimensions = Annotated[
    list[str] | None,
    typer.Option("--dimension", metavar="NAME", help="A dimension to be fair in; may be repeated. (default: all)"),
]

Stochastic = Annotated[
    float | None,
    typer.Option(
        "--stochastic",
        metavar="ALPHA",
        help="Draw the ranking at random: 0 is any order, 8 nearly the best. (another draw: --set sampling.seed=1)",
    ),
]


@options.spread
def search(
    query: Annotated[str | None, typer.Argument(help="What to search for.", show_default=False)] = None,
    topic: Topic = None,
    *,
    listed: ListOptions,
    dimension: Dimensions = None,
    target: options.Target = None,
    stochastic: Stochastic = None,
    of: options.SiteOptions,
    as_json: options.AsJson = False,
) -> None:
    """Search fairly, and show how it came about.

    Prints what changed for the groups, a sentence a dimension, the ranking with the documents' groups, the groups'
    exposure before and after, and every step between.
    Exposure is the share of the readers' attention that a group's documents get; "before" is the engine's ranking for
    the plain query.
    """
    from fairagent.llm.exchange import transcript as transcript_in
    from fairagent.report.record import result_record, to_json
    from fairagent.search.pipeline import build, open_live, with_settings

    asked_for = listed.asked
    chosen = of.chosen(
        dimensions=dimension or None,
        target=options.target_of(target),
        sampling=None if stochastic is None else {"alpha": stochastic},
    )
    check_query(query, topic)
    with status(hidden=of.log_prompts):
        live = open_live(settings=chosen)
        site = live.now()
        asked = query_of(query, topic, site.collection)
    under = asked_for.over(site.settings, site.collection.groups.dimensions)
    options.announce_search(with_settings(site, under), asked)
    with status(hidden=of.log_prompts), closing(live), transcript_in(of.transcript):
        result = live.use(lambda site: build(site).search(asked, **asked_for.given))
    if as_json:
        echo(to_json(result_record(result)))
        return
    _print(result, asked_for.n or chosen.n)


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


def _print(result: SearchResult, n: int) -> None:
    from fairagent.report.story import story
    from fairagent.report.text import exposure_table, hits_table, verdict_text

    out = console()
    if not result.hits:
        kept = [note for note in result.trace.notes if note.startswith("where ")]
        out.print(kept[0] if kept else "No hits: no word of the query occurs in the index.", markup=False)
        return
    if len(result.hits) < n:
        out.print(f"Only {len(result.hits)} of the {n} documents wanted have a word of the query.")
    trace = result.trace
    if trace.exposures:
        out.print(verdict_text(trace.changes))
    out.print(hits_table(result.hits, trace.steps[0].ranking))
    if trace.exposures:
        out.print(exposure_table(trace))
    out.print()
    out.print(story(trace))
