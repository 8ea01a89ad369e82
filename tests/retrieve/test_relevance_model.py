"""Relevance models by hand, on two documents of three terms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from fairagent.retrieve.relevance_model import RM3, Postings, TermSource, relevance_model, share_out, top_words
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
    return Postings(
        np.array(row, dtype=np.intp),
        np.array(term, dtype=np.intp),
        np.array(count, dtype=float),
        np.array([len(text) for text in documents], dtype=float),
        np.array([10, 20, 30]),
        np.array(share, dtype=float),
    )


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


def ranked_words(source, postings, scores, *how):
    return [(word, scores[place]) for word, place in top_words(source, postings, scores, *how)]


def test_the_stand_in_is_a_term_source(retriever):
    assert isinstance(Letters(), TermSource)
    assert isinstance(retriever, TermSource)


# --- P(w|R)


def test_two_documents_by_hand():
    # "aab" with weight 3/4, "bc" with 1/4: P(a) = 3/4 * 2/3, P(b) = 3/4 * 1/3 + 1/4 * 1/2, P(c) = 1/4 * 1/2.
    model = relevance_model(postings_of("aab", "bc"), scores(3, 1))
    assert model == pytest.approx([0.5, 0.375, 0.125])


def test_only_the_proportion_of_the_weights_counts():
    postings = postings_of("aab", "bc", "cccc")
    one, other = relevance_model(postings, scores(1, 2, 3)), relevance_model(postings, scores(10, 20, 30))
    assert one == pytest.approx(other)
    assert one.sum() == pytest.approx(1)


def test_a_weight_of_0_leaves_a_document_out():
    assert relevance_model(postings_of("aab", "bc"), scores(0, 5)) == pytest.approx([0, 0.5, 0.5])


def test_no_weight_at_all():
    assert relevance_model(postings_of("aab", "bc"), scores(0, 0)).tolist() == [0, 0, 0]
    assert relevance_model(postings_of(), scores()).tolist() == [0, 0, 0]


def test_an_empty_document_takes_its_weight_with_it():
    assert relevance_model(postings_of("", "ab"), scores(1, 1)) == pytest.approx([0.25, 0.25, 0])


# --- the best words


def test_the_best_words_come_first_and_ties_in_vocabulary_order():
    postings = postings_of("abc")
    assert ranked_words(Letters(), postings, scores(0.2, 0.5, 0.2), 3, 1.0) == [("b", 0.5), ("a", 0.2), ("c", 0.2)]
    assert ranked_words(Letters(), postings, scores(0.2, 0.2, 0.2), 2, 1.0) == [("a", 0.2), ("b", 0.2)]
    assert ranked_words(Letters(), postings, scores(0.2, 0.5, 0.2), 1, 1.0) == [("b", 0.5)]


def test_scores_that_are_not_positive_are_no_candidates():
    assert ranked_words(Letters(), postings_of("abc"), scores(0.0, -1.0, 0.3), 3, 1.0) == [("c", 0.3)]
    assert ranked_words(Letters(), postings_of("abc"), scores(0, 0, 0), 3, 1.0) == []


def test_words_of_too_many_documents_are_left_out():
    postings = postings_of("abc", share=(0.21, 0.2, 0.19))
    assert ranked_words(Letters(), postings, scores(3, 2, 1), 3, 0.2) == [("b", 2), ("c", 1)]
    assert ranked_words(Letters(), postings, scores(3, 2, 1), 3, 0.1) == []


def test_words_to_skip_make_room_for_the_next():
    postings = postings_of("abc")
    assert ranked_words(Letters(), postings, scores(3, 2, 1), 2, 1.0, frozenset({"a"})) == [("b", 2), ("c", 1)]
    assert ranked_words(Letters(), postings, scores(3, 2, 1), 2, 1.0, frozenset("xyz")) == [("a", 3), ("b", 2)]


def test_terms_without_a_word_are_left_out():
    assert ranked_words(Letters(blank="a"), postings_of("abc"), scores(3, 2, 1), 3, 1.0) == [("b", 2), ("c", 1)]


# --- shares and RM3


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


@pytest.mark.parametrize("weight", [0.1, 0.5, 0.7, 0.9])
def test_the_keywords_have_their_share_of_the_whole_weight(retriever, weight):
    query = Query("lawyers in court")
    expanded = RM3(weight=weight, max_share=1.0).expand(retriever, query, retriever.search(query, 20))
    added = sum(term.weight for term in expanded.terms)
    assert added / (added + 2) == pytest.approx(weight)


def test_nothing_to_expand_with():
    query = Query("x y")
    assert RM3().expand(Letters(), query, Ranking((), scores())) is query
    assert RM3(weight=0.0).expand(Letters(), query, Ranking(("aab",), scores(1))).terms == ()
    assert RM3().expand(Letters(), Query(""), Ranking(("aab",), scores(1))).terms == ()


def test_an_expanded_query_finds_what_the_query_does_not(retriever):
    query = Query("advocate")
    plain = retriever.search(query, 100)
    expanded = RM3(max_share=1.0).expand(retriever, query, plain)
    assert plain.ids == ("law2",)
    assert {"law1", "law2", "law3"} <= set(retriever.search(expanded, 100).ids)
