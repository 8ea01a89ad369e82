"""Scores of a given pool: the engine's own, whatever is in the pool."""

from __future__ import annotations

import numpy as np
import pytest

from fairagent.errors import DataError
from fairagent.types import Query, Term

from ..conftest import MADE

QUERIES = [
    Query("lawyer court"),
    Query("harbor"),
    Query("ocean tide lawyer woman"),
    Query("lawyer", terms=(Term("woman", 0.3), Term("advocate harbor", 0.01), Term("адвокат", 7))),
    Query("", terms=(Term("court", 0.5),)),
    Query(" ".join(f"word{number}" for number in range(2_000)) + " odd"),
]
EVERY = [document.id for document in MADE.made]


@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
def test_scores_are_those_of_the_search(retriever, query):
    ranking = retriever.search(query, len(EVERY))
    assert len(ranking) > 0
    found = dict(zip(ranking.ids, ranking.scores, strict=True))
    expected = np.array([found.get(id, 0.0) for id in EVERY])
    np.testing.assert_allclose(retriever.score(query, EVERY), expected, atol=1e-4, rtol=1e-6)
    np.testing.assert_allclose(retriever.score(query, ranking.ids), ranking.scores, atol=1e-4, rtol=1e-6)


def test_documents_without_a_query_term_score_0(retriever):
    ids = ["empty", "law1", "stop-words-only", "tie00", "title-only"]
    scores = retriever.score(Query("lawyer"), ids)
    assert (scores > 0).tolist() == [False, True, False, False, True]
    assert retriever.score(Query("qqqq"), EVERY).tolist() == [0.0] * len(EVERY)


def test_scores_follow_the_order_of_the_ids(retriever):
    query = Query("lawyer court odd harbor")
    every = dict(zip(EVERY, retriever.score(query, EVERY).tolist(), strict=True))
    for ids in (EVERY[::-1], sorted(EVERY), EVERY[5:50:7], ["law2"]):
        np.testing.assert_allclose(retriever.score(query, ids), [every[id] for id in ids], rtol=1e-6)


def test_an_id_may_come_twice(retriever):
    scores = retriever.score(Query("lawyer"), ["law2", "empty", "law2", "law1", "law2"])
    assert scores[0] == scores[2] == scores[4] > 0
    assert scores[1] == 0
    assert scores[3] not in (0, scores[0])


def test_no_ids(retriever):
    assert retriever.score(Query("lawyer"), []).shape == (0,)
    assert retriever.score(Query(""), ()).dtype == np.float64


def test_ids_may_come_in_an_array(retriever):
    ids = np.array(["law1", "tie00"])
    assert retriever.score(Query("lawyer"), ids)[0] > 0


def test_ids_that_are_not_in_the_index_are_named(retriever):
    with pytest.raises(DataError, match=r"^2 document id\(s\) are not in the index: 'nobody', 'zz\\x00'$"):
        retriever.score(Query("lawyer"), ["law1", "nobody", "zz\0"])
    with pytest.raises(DataError, match=r"^9 document") as error:
        retriever.score(Query("lawyer"), [f"unknown{number}" + "x" * 500 for number in range(9)])
    assert "unknown4" in str(error.value)
    assert len(str(error.value)) < 500
