"""What pages show of a collection (documents, groups with their shares, queries to try) and of a search's frontier."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path

import numpy as np

from fairagent.collection import Collection
from fairagent.collection.exposure import total_gap
from fairagent.collection.table import tables_of
from fairagent.errors import FairAgentError
from fairagent.report.record import PlainRecord, exposure_record, hit_record
from fairagent.retrieve.bm25.analysis import STOP_WORDS, plain_words
from fairagent.retrieve.manifest import Manifest
from fairagent.search.run import SearchRun, hits_of
from fairagent.types import Document, Ranking, SearchResult
from fairagent.types.clean import logger

EXAMPLES = 3
LOOKED_AT = 2_000
"""Documents that words for examples are taken from."""
BEGINNING = 1_000
"""Characters of each of them."""
MOST_VALUES = 60
"""Of a column, to choose from."""
SHORTEST = 4
COMMON = 0.1
"""Words in a larger part of the documents say nothing about any of them."""
LONGEST_TITLE = 60

log = logger(__name__)


def contents_record(collection: Collection, index: Path) -> PlainRecord:
    """How many documents there are (`exact` where an index says so), the groups' shares of them, and example queries.

    A group's share is of all documents, and so is that of those without a label; a document may be of several groups.
    """
    count, exact = document_count(collection, index)
    documents: list[Document] = []
    try:
        documents = list(islice(collection.source, LOOKED_AT))
    except FairAgentError as error:
        log.debug("the documents of %r cannot be read for columns and examples (%s)", collection.name, error)
    return {
        "documents": count,
        "exact": exact,
        "passages": collection.chunks is not None and exact,
        "dimensions": [_dimension(collection, name, count if exact else 0) for name in collection.groups.dimensions],
        "columns": columns(collection, documents),
        "examples": example_queries(collection, documents),
    }


def columns(collection: Collection, documents: Iterable[Document]) -> list[PlainRecord]:
    """What documents can be filtered by: dimensions with their groups, columns with the values of these documents.

    The commonest come first; `values` is empty where there are more than `MOST_VALUES`, or another sort of cells.
    """
    groups = collection.groups
    choices = {name: list(groups.labels(name)) for name in groups.dimensions}
    counts: dict[str, Counter[str]] = {}
    for document in documents:
        for name, cell in document.extra.items():
            cells = cell if isinstance(cell, list | tuple) else [cell]
            counts.setdefault(name, Counter()).update(
                str(one) for one in cells if isinstance(one, str | int | float) and one != ""
            )
    for name, values in counts.items():
        if values:
            few = [value for value, _ in values.most_common()] if len(values) <= MOST_VALUES else []
            choices.setdefault(name, few)
    return [{"name": name, "values": values} for name, values in choices.items()]


def document_count(collection: Collection, index: Path) -> tuple[int, bool]:
    """How many documents, or passages, there are, and whether the index says so; else it is about so many."""
    if Manifest.exists(index):
        try:
            return Manifest.read(index).documents, True
        except FairAgentError as error:
            log.debug("the index at %s does not tell how many documents it has (%s)", index, error)
    return collection.source.count(), False


def _dimension(collection: Collection, name: str, documents: int) -> PlainRecord:
    groups = collection.groups
    unknown, *known = groups.shares(name).tolist()
    table = next((one for one in tables_of(groups) if name in one.dimensions), None)
    # Documents that the table of labels does not have are without one as well; passages are none.
    there = min(1.0, len(table) / documents) if table is not None and documents and not collection.chunks else 1.0
    labels = zip(groups.labels(name), known, strict=True)
    return {
        "dimension": name,
        "groups": [{"label": label, "share": share * there} for label, share in labels],
        "unknown": 1 - (1 - unknown) * there,
        "predicted": name in groups.predicted,
        "oracle": name in groups.oracle,
    }


def example_queries(collection: Collection, documents: Iterable[Document]) -> list[PlainRecord]:
    """Queries that this collection can answer: those of its topics, else phrases and words of these documents."""
    if collection.topics:
        return [{"query": one.query, "topic": one.id} for one in islice(collection.topics.values(), EXAMPLES)]
    return [{"query": query, "topic": ""} for query in islice(phrases(documents), EXAMPLES)]


def phrases(documents: Iterable[Document]) -> Iterator[str]:
    """What some of the documents have in common, the commonest first: two words, then one; then their titles.

    No word comes twice, and none that most of the documents have.
    """
    documents = list(documents)
    pairs, words = Counter[tuple[str, str]](), Counter[str]()
    for document in documents:
        row = plain_words(f"{document.title} . {document.text[:BEGINNING]}")
        words.update(list(dict.fromkeys(row)))
        pairs.update(list(dict.fromkeys(pairwise(row))))
    most = min(max(2.0, COMMON * len(documents)), len(documents) - 1)

    def tells(word: str) -> bool:
        return len(word) >= SHORTEST and word.isalpha() and word not in STOP_WORDS and words[word] <= most

    used = set[str]()
    common = [pair for pair, count in pairs.most_common() if count > 1 and tells(pair[0]) and tells(pair[1])]
    single = [(word,) for word, count in words.most_common() if count > 1 and tells(word)]
    for phrase in (*common, *single):
        if used.isdisjoint(phrase):
            used.update(phrase)
            yield " ".join(phrase)
    yield from (one.title for one in documents if 0 < len(one.title) <= LONGEST_TITLE)


OF_HITS = ("id", "name", "title", "snippet", "groups")


def frontier_record(run: SearchRun, result: SearchResult, ranks: Mapping[str, int]) -> PlainRecord | None:
    """The lists from the most relevant to the fairest, and which of them is served; None where there is no dial.

    Each has its ids, the share of the relevance that it `kept`, its gap, the exposures, their changes in words, and the
    `keep` that asks for it. `own` is the engine's list, a point beside them. `hits` are all documents once, with their
    `ranks` in the engine's list.
    """
    reranked = run.loop.reranked
    if reranked is None or reranked.frontier is None or result.trace.draw is not None or not len(run.pool):
        return None
    frontier, number = reranked.frontier, reranked.frontier.choose(reranked.dial)

    def share_of(share: float, place: int) -> float:
        """The share of the relevance to keep that asks for this list, with as few digits as that takes."""
        shares = (math.floor(share * 10**digits) / 10**digits for digits in range(2, 10))
        return next((one for one in shares if frontier.keeping(one) == place), share)

    engine, gap, kept = frontier.engine, frontier.gap, [frontier.share(one) for one in frontier.relevance.tolist()]
    # The engine's list is left out where another is at least as good in everything.
    numbers = [one for one in range(len(gap)) if one in (0, number) or one != engine or gap[one] < gap[:one].min()]
    lists = [frontier.ranking(one) for one in numbers]
    every = tuple(dict.fromkeys(id for one in lists for id in one.ids))
    hits = hits_of(Ranking(every, np.zeros(len(every))), run.meter, run.retriever, run.query)
    traces = [replace(result.trace, exposures=run.meter.measure(one)) for one in lists]
    return {
        "served": numbers.index(number),
        "own": None if engine is None else {"kept": kept[engine], "gap": float(gap[engine])},
        "lists": [
            {
                "keep": share_of(kept[place], place),
                "kept": kept[place],
                "gap": total_gap(trace.exposures),
                "exposure": [exposure_record(one) for one in trace.exposures],
                "changes": [one.record() for one in trace.changes],
                "ids": list(ranking.ids),
            }
            for place, ranking, trace in zip(numbers, lists, traces, strict=True)
        ],
        "hits": {
            one["id"]: {**{name: one[name] for name in OF_HITS}, "engine_rank": ranks.get(one["id"])}
            for one in map(hit_record, hits)
        },
    }
