"""Relevance models by hand, on two documents of three terms; BM25 + RM3 as a retriever."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.retrieve.relevance_model import RM3, Postings, RM3Retriever, relevance_model, share_out, top_words
from fairagent.types import FloatArray, Query, Ranking, Term


def postings_of(*documents: str, share: Sequence[float] = (0.5, 0.5, 0.5)) -> Postings:
    """Documents over the terms a, b, c, whose numbers are 10, 20, 30."""
    entries = [
        (row, term, text.count(letter))
        for row, text in enumerate(documents)
        for term, letter in enumerate("abc")
        if letter in text
    ]
    row, term, count = zip(*entries, strict=True) if entries else ((), (), ())
    places = (np.array(one, dtype=np.intp) for one in (row, term))
    lengths = np.array([len(text) for text in documents], dtype=float)
    return Postings(*places, np.array(count, dtype=float), lengths, np.array([10, 20, 30]), np.array(share))


class Letters:
    """An engine that knows "aab" and "bc"; the term c has no word."""

    def __init__(self, blank: str = "") -> None:
        self.blank = blank

    def postings(self, ids: Sequence[str]) -> Postings:
        return postings_of(*ids)

    def words(self, vocabulary: NDArray[np.intp]) -> list[str]:
        names = {10: "a", 20: "b", 30: "c"}
        return [name if (name := names[number]) not in self.blank else "" for number in vocabulary.tolist()]

    def analyze(self, text: str) -> list[str]:
        return text.split()


def scores(*values: float) -> FloatArray:
    return np.array(values, dtype=float)


@pytest.mark.parametrize(
    ("documents", "weights", "model"),
    [
        # "aab" with weight 3/4, "bc" with 1/4: P(a) = 3/4 * 2/3, P(b) = 3/4 * 1/3 + 1/4 * 1/2, P(c) = 1/4 * 1/2.
        (("aab", "bc"), (3, 1), [0.5, 0.375, 0.125]),
        (("aab", "bc"), (0, 5), [0, 0.5, 0.5]),
        (("aab", "bc"), (0, 0), [0, 0, 0]),
        ((), (), [0, 0, 0]),
        # An empty document takes its weight with it.
        (("", "ab"), (1, 1), [0.25, 0.25, 0]),
    ],
)
def test_the_model_by_hand(documents: tuple[str, ...], weights: tuple[float, ...], model: list[float]) -> None:
    assert relevance_model(postings_of(*documents), scores(*weights)) == pytest.approx(model)


@pytest.mark.parametrize(
    ("values", "how", "words"),
    [
        ((0.2, 0.5, 0.2), (3, 1.0), "bac"),
        ((0.2, 0.2, 0.2), (2, 1.0), "ab"),
        ((0.2, 0.5, 0.2), (1, 1.0), "b"),
        ((0.0, -1.0, 0.3), (3, 1.0), "c"),
        ((0, 0, 0), (3, 1.0), ""),
        # In .21, .2 and .19 of all documents.
        ((3, 2, 1), (3, 0.2), "bc"),
        ((3, 2, 1), (3, 0.1), ""),
        # Words to skip make room for the next.
        ((3, 2, 1), (2, 1.0, frozenset("a")), "bc"),
        ((3, 2, 1), (2, 1.0, frozenset("xyz")), "ab"),
    ],
)
def test_the_best_words(values: tuple[float, ...], how: tuple[Any, ...], words: str) -> None:
    # Of equal shares, where a tie is by the order of the vocabulary, unless the share is what counts.
    postings = postings_of("abc", share=(0.21, 0.2, 0.19) if how[1] < 1 else (0.5, 0.5, 0.5))
    best = top_words(Letters(), postings, scores(*values), *how)
    assert [(word, place) for word, place in best] == [(word, "abc".index(word)) for word in words]
    assert top_words(Letters(blank="abc"), postings, scores(*values), *how) == []


def test_shares_are_proportional():
    assert share_out([("a", 3.0), ("b", 1.0)], 2.0) == (Term("a", 1.5), Term("b", 0.5))
    assert share_out([], 2.0) == share_out([("a", 3.0)], 0.0) == ()


def test_expansion_weighs_what_it_should():
    query = Query("x y", "T1")
    expanded = RM3(documents=2, terms=2, weight=0.75, max_share=1.0).expand(
        Letters(), query, Ranking(("aab", "bc", "ccc"), scores(3, 1, 1))
    )
    # Of the whole weight, 2 words of the user's are a quarter: the rest, 6, is shared 0.5 : 0.375 among a and b.
    assert (expanded.text, expanded.id) == ("x y", "T1")
    assert [term.text for term in expanded.terms] == ["a", "b"]
    assert [term.weight for term in expanded.terms] == pytest.approx([6 * 0.5 / 0.875, 6 * 0.375 / 0.875])


def test_nothing_to_expand_with(retriever: BM25Retriever) -> None:
    query = Query("x y")
    assert RM3().expand(Letters(), query, Ranking((), scores())) is query
    assert RM3(weight=0.0).expand(Letters(), query, Ranking(("aab",), scores(1))).terms == ()
    assert RM3().expand(Letters(), Query(""), Ranking(("aab",), scores(1))).terms == ()
    for one, rm3 in ((Query("zzzz"), SMALL), (QUERY, RM3(documents=0))):
        assert RM3Retriever(retriever, rm3).expanded(one) is one
        assert RM3Retriever(retriever, rm3).search(one, 5).ids == retriever.search(one, 5).ids


QUERY = Query("lawyer", "7")
SMALL = RM3(documents=3, terms=5, weight=0.5, max_share=1.0)


def test_it_is_the_search_for_the_expanded_query(retriever: BM25Retriever) -> None:
    expanded = SMALL.expand(retriever, QUERY, retriever.search(QUERY, 3))
    assert len(expanded.terms) == 5
    found, expected = RM3Retriever(retriever, SMALL).search(QUERY, 10), retriever.search(expanded, 10)
    assert (found.ids, found.scores.tolist()) == (expected.ids, expected.scores.tolist())
    assert found.ids != retriever.search(QUERY, 10).ids
    assert RM3Retriever(retriever, SMALL).score(QUERY, found.ids[::-1]) == pytest.approx(found.scores[::-1], abs=1e-4)
