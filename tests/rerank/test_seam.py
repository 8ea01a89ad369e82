"""The re-rankers that fairagent brings pass the check of what a re-ranker gives, and write into nothing."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairagent.papers.rivals.fa_star_ir import FAStarIRReranker
from fairagent.papers.rivals.representative import RepresentativeReranker
from fairagent.search.rerank.base import Pool, Reranker, rerank_with
from fairagent.search.rerank.exposure import ExposureReranker
from fairagent.search.rerank.relevance import ChainReranker, FusedReranker, OriginalReranker, PlackettLuceReranker
from fairagent.search.rerank.similarity import MMRReranker, by_groups
from fairagent.types import Dial, Query, Ranking

from .greedy_pools import pools

POOLS = int(os.environ.get("FAULT_TRIALS", "15"))


class Engine:
    """Scores by the hash of the id, some alike."""

    def search(self, query: Query, n: int) -> Ranking:
        raise AssertionError

    def score(self, query: Query, ids: Any) -> Any:
        return np.array([sum(map(ord, id)) % 5 for id in ids], np.float64)


SHIPPED: dict[str, Reranker] = {
    "original": OriginalReranker(Engine()),
    "fused": FusedReranker(Engine()),
    "plackett-luce": PlackettLuceReranker(),
    "exposure": ExposureReranker(),
    "exposure, dear": ExposureReranker(Dial(fairness=50)),
    "mmr": MMRReranker(by_groups),
    "fa-star-ir": FAStarIRReranker(),
    "representative": RepresentativeReranker(),
    "chain": ChainReranker((FusedReranker(Engine()), ExposureReranker())),
}
SCORES = st.one_of(st.floats(-1e6, 1e6), st.sampled_from([0.0, 1.0, 1.0 + 1e-15, 1e-300, -1e-300, 1e150, -1e150]))


@st.composite
def scored_pools(draw: st.DrawFn) -> Pool:
    """Pools with scores of any size, that differ by nothing or by next to nothing."""
    made = draw(pools())
    size = len(made.ranking)
    scores = sorted(draw(st.lists(SCORES, min_size=size, max_size=size)), reverse=True)
    return replace(made, ranking=Ranking(made.ranking.ids, np.array(scores, np.float64)))


@pytest.mark.parametrize("name", SHIPPED)
@given(made=scored_pools())
@settings(max_examples=POOLS, deadline=None)
def test_what_is_shipped_passes_the_check(name: str, made: Pool) -> None:
    before = made.ranking.scores.tolist(), [rows.tolist() for rows in (*made.memberships, *made.targets)]
    assert len(rerank_with(SHIPPED[name], made)) == min(made.n, len(made.ranking))
    assert before == (made.ranking.scores.tolist(), [rows.tolist() for rows in (*made.memberships, *made.targets)])
