"""Maximal marginal relevance, and the three ways to be alike."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.retrieve.relevance_model import Postings
from fairagent.search.rerank.base import Pool
from fairagent.search.rerank.similarity import MMRReranker, by_embeddings, by_groups, by_terms, mmr
from fairagent.types import FloatArray, Query, Ranking


def pool(scores: Sequence[float], rows: Sequence[Sequence[float]] = (), n: int = 10) -> Pool:
    """Documents a, b, c ... with memberships (unknown, then the groups) of one dimension."""
    memberships = (np.array(rows, dtype=np.float64),) if rows else ()
    targets = tuple(np.full(rows.shape[1] - 1, 1 / (rows.shape[1] - 1)) for rows in memberships)
    ids = tuple("abcdefghij"[: len(scores)])
    return Pool(Query("q"), Ranking(ids, np.array(scores, dtype=np.float64)), memberships, targets, n)


def naive(relevance: FloatArray, similarity: FloatArray, weight: float, n: int) -> list[int]:
    """The definition, every maximum taken anew."""
    picked: list[int] = []
    while len(picked) < n:
        values = [
            -np.inf
            if d in picked
            else weight * relevance[d] - (1 - weight) * max((similarity[s, d] for s in picked), default=0.0)
            for d in range(len(relevance))
        ]
        picked.append(int(np.argmax(values)))
    return picked


@given(
    st.integers(1, 8).flatmap(
        lambda m: st.tuples(
            st.lists(st.integers(0, 4), min_size=m, max_size=m),
            st.lists(st.integers(-4, 4), min_size=m * m, max_size=m * m),
            st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]),
            st.integers(1, m),
        )
    )
)
def test_picks_are_those_of_the_definition(case: tuple[list[int], list[int], float, int]) -> None:
    relevance, flat, weight, n = np.array(case[0]) / 4, np.array(case[1]) / 4, case[2], case[3]
    similarity = flat.reshape(len(relevance), -1)
    similarity = (similarity + similarity.T) / 2
    assert mmr(relevance, similarity.__getitem__, weight, n) == naive(relevance, similarity, weight, n)


def test_groups_take_turns() -> None:
    # Half of relevance 1, 3/4, 1/2, 1/4, 0, less 1/2 for a group that is there: after a comes d, then all lose alike.
    rows = [[0, 1, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]]
    assert MMRReranker(by_groups).rerank(pool([5, 4, 3, 2, 1], rows)).ids == ("a", "d", "b", "c", "e")


def test_documents_without_a_label_are_alike() -> None:
    # With nothing in common, u and v would both come before b.
    rows = [[0, 1, 0], [0, 1, 0], [1, 0, 0], [1, 0, 0]]
    assert MMRReranker(by_groups).rerank(pool([4, 3.9, 1, 0.9], rows)).ids == ("a", "c", "b", "d")


def test_relevance_alone_and_novelty_alone() -> None:
    rows = [[0, 1, 0], [0, 1, 0], [0, 0, 1]]
    assert MMRReranker(by_groups, relevance=1).rerank(pool([3, 2, 1], rows)).ids == ("a", "b", "c")
    assert MMRReranker(by_groups, relevance=0).rerank(pool([3, 2, 1], rows, n=2)).ids == ("a", "c")


class Terms:
    """a: court court judge, b: judge, c: river, d: nothing; every document of 8 holds "the"."""

    def postings(self, ids: Sequence[str]) -> Postings:
        assert list(ids) == ["a", "b", "c", "d"]
        row, term = np.array([0, 0, 0, 1, 1, 2, 2, 3]), np.array([0, 1, 3, 1, 3, 2, 3, 3])
        count = np.array([2.0, 1, 1, 1, 1, 1, 1, 1])
        share = np.array([1 / 8, 2 / 8, 1 / 8, 1.0])
        return Postings(row, term, count, np.array([3.0, 2, 2, 1]), np.arange(4), share)

    def words(self, vocabulary: object) -> list[str]:
        raise NotImplementedError

    def analyze(self, text: str) -> list[str]:
        raise NotImplementedError


def test_similarity_of_terms_by_hand() -> None:
    similar = by_terms(Terms(), pool([4, 3, 2, 1]))
    court, judge = (1 + np.log(2)) * np.log(8), np.log(4)
    assert similar(0) == pytest.approx([1, judge / np.hypot(court, judge), 0, 0])
    assert similar(2) == pytest.approx([0, 0, 1, 0])
    # A document with nothing but a word that is everywhere is like none, not even itself.
    assert similar(3) == pytest.approx([0, 0, 0, 0])


def test_by_text() -> None:
    # relevance 1, 2/3, 1/3, 0: b is like a by about .37, which costs it .18; c is like nothing above it.
    assert MMRReranker(partial(by_terms, Terms()), relevance=0.3).rerank(pool([4, 3, 2, 1], n=3)).ids == ("a", "c", "d")
    assert MMRReranker(partial(by_terms, Terms()), relevance=0.9).rerank(pool([4, 3, 2, 1], n=3)).ids == ("a", "b", "c")


class Vectors:
    def vectors(self, ids: Sequence[str]) -> np.ndarray:
        known = {"a": [3, 0], "b": [2, 2], "c": [0, -1], "d": [0, 0]}
        return np.array([known[id] for id in ids], dtype=np.float32)


def test_similarity_of_embeddings_is_the_cosine() -> None:
    similar = by_embeddings(Vectors(), pool([4, 3, 2, 1]))
    assert similar(1) == pytest.approx([0.5**0.5, 1, -(0.5**0.5), 0], abs=1e-7)
