"""Laws of the loop, whatever the engine says: the trap first, then what holds of every search.

THE TRAP. The union of all lists holds the first list, so to re-rank it by the user's own query gives the first list's
top n back: the agent would do nothing at all. The same holds for the best list once it reaches down to the whole
collection. Both are stated here, for made-up engines and for Lucene, so that nobody takes them for a result.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import Proposals, agent, by_letter

from fairagent import BM25Retriever, build_index, load_collection, open_agent, write_demo
from fairagent.search.rerank.exposure import ExposureReranker
from fairagent.search.rerank.relevance import FusedReranker, OriginalReranker
from fairagent.types import FloatArray, Query, Ranking

DOCUMENTS = [f"{letter}{place}" for place in range(4) for letter in "fmu"]
WORDS = ["a", "b", "c"]
QUERIES = [" ".join(["q", *WORDS[:i]]) for i in range(len(WORDS) + 1)]


class Table:
    """Scores each document for each query as the table says; 0 is not found."""

    def __init__(self, scores: Mapping[str, Mapping[str, int]]) -> None:
        self.scores = scores

    def search(self, query: Query, n: int) -> Ranking:
        found = sorted((-score, id) for id, score in self.scores[str(query)].items() if score > 0)[:n]
        return Ranking(tuple(id for _, id in found), np.array([-score for score, _ in found], dtype=np.float64))

    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        return np.array([self.scores[str(query)][id] for id in ids], dtype=np.float64)


one_query = st.fixed_dictionaries(dict.fromkeys(DOCUMENTS, st.integers(0, 5)))
tables = st.fixed_dictionaries(dict.fromkeys(QUERIES, one_query)).map(Table)


def searched(engine: Table, reranker: Any, **more: Any) -> Any:
    made = agent(engine, Proposals(*WORDS), groups=by_letter(DOCUMENTS), reranker=reranker, iterations=3, **more)
    return made.search("q")


@given(tables, st.integers(1, 14), st.integers(0, 14))
def test_the_union_reranked_by_the_original_query_is_the_plain_engine(engine: Table, n: int, deeper: int) -> None:
    plain = engine.search(Query("q"), n)
    result = searched(engine, OriginalReranker, candidates="union", n=n, depth=n + deeper)
    # Where the plain engine finds fewer than n, documents that only refined queries find come after them.
    assert result.ranking.ids[: len(plain)] == plain.ids
    assert result.ranking.scores[: len(plain)].tolist() == plain.scores.tolist()


@given(tables, st.integers(1, 14))
def test_the_best_list_of_the_whole_collection_is_the_plain_engine_too(engine: Table, n: int) -> None:
    # Refined queries keep the user's words, so what these find is found again.
    user = engine.scores["q"]
    kept = {query: {id: score + user[id] for id, score in scores.items()} for query, scores in engine.scores.items()}
    engine = Table(kept | {"q": user})
    plain = engine.search(Query("q"), n)
    result = searched(engine, OriginalReranker, candidates="best", n=n, depth=len(DOCUMENTS))
    assert result.ranking.ids[: len(plain)] == plain.ids


rerankers: st.SearchStrategy[Any] = st.sampled_from(
    [OriginalReranker, FusedReranker, lambda engine: ExposureReranker()]
)
policies = st.sampled_from(["best", "last", "union"])


@settings(max_examples=60)
@given(tables, rerankers, policies, st.integers(1, 6), st.integers(6, 12))
def test_every_search(engine: Table, reranker: Any, policy: str, n: int, depth: int) -> None:
    result = searched(engine, reranker, candidates=policy, n=n, depth=depth, discount="log2-max2")
    trace, ranking = result.trace, result.ranking
    accepted = [step for step in trace.steps if step.accepted]

    # The user's query comes first; each accepted gap is below the one before; at most one step, the last, is not.
    assert (trace.steps[0].source, accepted[0]) == ("query", trace.steps[0])
    assert all(after.gap < before.gap for before, after in pairwise(accepted))
    assert len(trace.steps) <= 1 + 3
    assert [step.accepted for step in trace.steps[:-1]] == [True] * (len(trace.steps) - 1)
    assert trace.stopped

    # What is returned was retrieved, once each, and as much of it as was asked for.
    lists = {"best": [accepted[-1]], "last": [trace.steps[-1]], "union": accepted}[policy]
    candidates = {id for step in lists for id in step.ranking.ids}
    assert set(ranking.ids) <= candidates
    assert len(ranking) == len(set(ranking.ids)) == min(n, len(candidates))
    assert [hit.rank for hit in result.hits] == list(range(1, len(ranking) + 1))
    assert all(before >= after for before, after in pairwise(ranking.scores.tolist()))

    # Numbers are numbers, and where nothing is labeled no group has a share.
    assert math.isfinite(trace.gap)
    for exposure in [exposure for step in (*trace.steps, trace) for exposure in step.exposures]:
        assert exposure.shares.sum() == pytest.approx(1.0 if exposure.shares.any() else 0.0)
        assert exposure.divergence >= 0


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The made-up collection, small, and its index."""
    folder = tmp_path_factory.mktemp("laws")
    file = write_demo(folder / "demo", people=800)
    build_index(load_collection(file), folder / "index")
    return file, folder / "index"


def test_the_trap_on_lucene(demo: tuple[Path, Path]) -> None:
    def opened(policy: str, kind: str, depth: int) -> Any:
        rerank = {"kind": "exposure", "fairness": 0.5, "unlabeled": 1} if kind == "exposure" else kind
        told = {"candidates": policy, "rerank": rerank, "depth": depth, "expansion": {"documents": 50}}
        return open_agent(*demo, loop="fair-qr", n=10, **told)

    rerankers = ("union", "original", 30), ("best", "original", 1000), ("best", "exposure", 30)
    union, best, fair = (opened(*one) for one in rerankers)
    plain: BM25Retriever = union.retriever
    assert len(plain) <= 1000
    refined = 0
    for topic in list(union.collection.topics.values())[:6]:
        expected = plain.search(Query(topic.query), 10)
        assert len(expected) == 10
        trapped = union.search(topic)
        assert trapped.ranking.ids == best.search(topic).ranking.ids == expected.ids
        assert trapped.ranking.scores.tolist() == expected.scores.tolist()
        refined += sum(step.accepted for step in trapped.trace.steps) > 2
        # It is no law about a loop that does nothing: another re-ranker shows what was found.
        assert fair.search(topic).ranking.ids != expected.ids
    assert refined >= 2
