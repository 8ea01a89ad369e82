"""Laws of search, on drawn queries."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fairagent.types import Query, Term

from ..conftest import MADE

WORDS = [
    "lawyer",
    "courts",
    "harbor",
    "town",
    "quiet",
    "odd",
    "ocean",
    "woman",
    "адвокат",
    "律師",
    "the",
    "qqqq",
    ", AND",
]
WEIGHTS = st.floats(0.001, 100)
QUERIES = st.builds(
    Query,
    st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join),
    terms=st.lists(st.builds(Term, st.sampled_from(WORDS), WEIGHTS), max_size=4).map(tuple),
)
LENGTHS = st.integers(1, len(MADE.made) + 5)
few = settings(max_examples=40)


@given(query=QUERIES, n=LENGTHS)
@few
def test_a_ranking_is_a_ranking(retriever, query, n):
    ranking = retriever.search(query, n)
    assert len(ranking) == len(ranking.scores) <= n
    assert len(set(ranking.ids)) == len(ranking)
    assert set(ranking.ids) <= {document.id for document in MADE.made}
    assert np.isfinite(ranking.scores).all()
    assert (ranking.scores > 0).all()
    assert ranking.scores.max(initial=0) <= retriever.bound(query) * (1 + 1e-6)
    # Scores never increase, and ids never decrease within a tie.
    assert list(zip(-ranking.scores, ranking.ids, strict=True)) == sorted(
        zip(-ranking.scores, ranking.ids, strict=True)
    )


@given(query=QUERIES, n=LENGTHS, m=LENGTHS)
@few
def test_a_shorter_ranking_is_the_beginning_of_a_longer_one(retriever, query, n, m):
    shorter, longer = sorted((retriever.search(query, n), retriever.search(query, m)), key=len)
    assert longer.ids[: len(shorter)] == shorter.ids
    np.testing.assert_allclose(longer.scores[: len(shorter)], shorter.scores, rtol=1e-6)


@given(query=QUERIES, ids=st.lists(st.sampled_from([document.id for document in MADE.made]), max_size=30))
@few
def test_a_pool_is_scored_as_it_is_found(retriever, query, ids):
    found = retriever.search(query, len(MADE.made))
    scores = dict(zip(found.ids, found.scores.tolist(), strict=True))
    expected = np.array([scores.get(id, 0.0) for id in ids])
    np.testing.assert_allclose(retriever.score(query, ids), expected, rtol=1e-6, atol=1e-4)
