"""One trace with everything in it that a story can tell, built by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fairagent.types import Exposure, Group, Hit, Query, Ranking, SearchResult, Step, Term, Trace, Usage

FEMALE = Group("gender", "female")


def gender(female: float, divergence: float, unknown: float = 0.0) -> Exposure:
    shares = np.array([female, 1 - female])
    return Exposure("gender", ("female", "male"), shares, np.array([0.5, 0.5]), unknown, divergence)


def ranking(n: int) -> Ranking:
    return Ranking(tuple(f"d{i}" for i in range(n)), np.arange(n, 0, -1, dtype=np.float64))


def make_trace() -> Trace:
    query = Query("lawyers", "T1")
    first = Step("query", query, ranking(50), (gender(0.1, 0.37, unknown=0.25),), 0.37)
    words = tuple(Term(f"topic{i}", 1 / (i + 1)) for i in range(100))
    topic = replace(
        first, source="topic words", ranking=ranking(90), added=words, exposures=(gender(0.2, 0.19),), gap=0.19
    )
    kept = replace(
        topic,
        source="feedback",
        aim=FEMALE,
        added=(Term("she", 0.5), Term("judge", 0.25)),
        dropped=("zyzzyva",),
        exposures=(gender(0.4, 0.02),),
        gap=0.02,
        usage=Usage(1, 1200, 34, 0.0021, 0.5),
    )
    refused = replace(
        kept, added=(Term("her", 0.1),), dropped=(), exposures=(gender(0.3, 0.08),), gap=0.08, accepted=False
    )
    return Trace(
        query=query,
        steps=(first, topic, kept, refused),
        stopped="the gap did not fall",
        candidates="best",
        reranker="exposure",
        exposures=(gender(0.45, 0.005),),
        gap=0.005,
        targets=("uniform",),
        oracle=False,
        usage=Usage(2, 2400, 68, 0.0042, 1.0),
        seconds=1.75,
        engine_seconds=0.5,
    )


@pytest.fixture
def trace() -> Trace:
    return make_trace()


@pytest.fixture
def result(trace: Trace) -> SearchResult:
    hits = (
        Hit(1, "d0", 1.0, "First", {"gender": {"female": 1.0}}, "First of all."),
        Hit(2, "d1", 0.5, "", {"gender": {}}),
    )
    return SearchResult(trace.query, ranking(2), hits, trace)
