"""BM25 + RM3 as a retriever: expands by itself, keeps the query's own keywords."""

from __future__ import annotations

import pytest

from fairagent.retrieve.base import TextSource, Vocabulary
from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.retrieve.relevance_model import RM3, RM3Retriever, TermSource
from fairagent.types import Query, Term

QUERY = Query("lawyer", "7")
SMALL = RM3(documents=3, terms=5, weight=0.5, max_share=1.0)


def test_it_is_the_search_for_the_expanded_query(retriever: BM25Retriever) -> None:
    expanded = SMALL.expand(retriever, QUERY, retriever.search(QUERY, 3))
    assert len(expanded.terms) == 5
    found = RM3Retriever(retriever, SMALL).search(QUERY, 10)
    expected = retriever.search(expanded, 10)
    assert found.ids == expected.ids
    assert found.scores.tolist() == expected.scores.tolist()
    assert found.ids != retriever.search(QUERY, 10).ids


def test_scores_of_a_pool_are_those_of_the_search(retriever: BM25Retriever) -> None:
    rm3 = RM3Retriever(retriever, SMALL)
    found = rm3.search(QUERY, 10)
    assert rm3.score(QUERY, found.ids[::-1]) == pytest.approx(found.scores[::-1], abs=1e-4)


def test_keywords_of_the_query_stay(retriever: BM25Retriever) -> None:
    query = Query("lawyer", "7", (Term("harbor", 2.0),))
    expanded = RM3Retriever(retriever, SMALL).expanded(query)
    assert expanded.terms[0] == Term("harbor", 2.0)
    assert len(expanded.terms) == 6
    # The first documents are those of the whole query.
    assert expanded == SMALL.expand(retriever, query, retriever.search(query, 3))


@pytest.mark.parametrize(("query", "rm3"), [(Query("zzzz"), SMALL), (QUERY, RM3(documents=0))])
def test_nothing_to_learn_from(retriever: BM25Retriever, query: Query, rm3: RM3) -> None:
    assert RM3Retriever(retriever, rm3).expanded(query) is query
    assert RM3Retriever(retriever, rm3).search(query, 5).ids == retriever.search(query, 5).ids


def test_texts_are_the_engines_and_no_agent_expands_again(retriever: BM25Retriever) -> None:
    rm3 = RM3Retriever(retriever)
    assert isinstance(rm3, TextSource)
    assert isinstance(rm3, Vocabulary)
    assert not isinstance(rm3, TermSource)
    assert rm3.document("law1") == retriever.document("law1")
    assert rm3.document_frequency("lawyer") == retriever.document_frequency("lawyer") > 0
