"""The frontier of a search as a page walks along it: all its lists in one record, so that no move asks for more."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from fairagent.collection.exposure import total_gap
from fairagent.report.record import PlainRecord, exposure_record, hit_record
from fairagent.search.rerank.frontier import Frontier
from fairagent.search.run import SearchRun, hits_of
from fairagent.types import Ranking, SearchResult

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
    engine, gap = frontier.engine, frontier.gap
    # The engine's list is left out where another is at least as good in everything.
    numbers = [one for one in range(len(gap)) if one in (0, number) or one != engine or gap[one] < gap[:one].min()]
    lists = [frontier.ranking(one) for one in numbers]
    every = tuple(dict.fromkeys(id for one in lists for id in one.ids))
    hits = hits_of(Ranking(every, np.zeros(len(every))), run.meter, run.retriever, run.query)
    traces = [replace(result.trace, exposures=run.meter.measure(one)) for one in lists]
    return {
        "served": numbers.index(number),
        "own": None if engine is None else {"kept": float(frontier.kept[engine]), "gap": float(gap[engine])},
        "lists": [
            {
                "keep": share_of(frontier, place),
                "kept": float(frontier.kept[place]),
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


def share_of(frontier: Frontier, number: int) -> float:
    """The share of the relevance to keep that asks for this list, with as few digits as that takes."""
    kept = float(frontier.kept[number])
    shares = (math.floor(kept * 10**digits) / 10**digits for digits in range(2, 10))
    return next((share for share in shares if frontier.keeping(share) == number), kept)
