"""Maximal marginal relevance, the three ways to be alike, and smoothing over the graph of the candidates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.retrieve.encoders import Embeddings
from fairagent.retrieve.relevance_model import Postings
from fairagent.search.rerank.base import Pool
from fairagent.search.rerank.similarity import (
    GraphReranker,
    MMRReranker,
    by_embeddings,
    by_groups,
    by_terms,
    smoothed,
)
from fairagent.types import Query, Ranking


def pool(scores: Sequence[float], rows: Sequence[Sequence[float]] = (), n: int = 10) -> Pool:
    """Documents a, b, c ... with memberships (unknown, then the groups) of one dimension."""
    memberships = (np.array(rows, dtype=np.float64),) if rows else ()
    targets = tuple(np.full(rows.shape[1] - 1, 1 / (rows.shape[1] - 1)) for rows in memberships)
    ids = tuple("abcdefghij"[: len(scores)])
    return Pool(Query("q"), Ranking(ids, np.array(scores, dtype=np.float64)), memberships, targets, n)


def test_groups_take_turns_and_documents_without_a_label_are_alike() -> None:
    # Half of relevance 1, 3/4, 1/2, 1/4, 0, less 1/2 for a group that is there: after a comes d, then all lose alike.
    rows = [[0, 1, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]]
    assert MMRReranker(by_groups).rerank(pool([5, 4, 3, 2, 1], rows)).ids == ("a", "d", "b", "c", "e")
    # With nothing in common, c and d would both come before b.
    rows = [[0, 1, 0], [0, 1, 0], [1, 0, 0], [1, 0, 0]]
    assert MMRReranker(by_groups).rerank(pool([4, 3.9, 1, 0.9], rows)).ids == ("a", "c", "b", "d")


class Terms:
    """a: court court judge, b: judge, c: river, d: nothing; every document of 8 holds "the"."""

    def postings(self, ids: Sequence[str]) -> Postings:
        assert list(ids) == ["a", "b", "c", "d"]
        row, term = np.array([0, 0, 0, 1, 1, 2, 2, 3]), np.array([0, 1, 3, 1, 3, 2, 3, 3])
        count = np.array([2.0, 1, 1, 1, 1, 1, 1, 1])
        share = np.array([1 / 8, 2 / 8, 1 / 8, 1.0])
        return Postings(row, term, count, np.array([3.0, 2, 2, 1]), np.arange(4), share)


def test_similarity_of_terms_and_embeddings_by_hand() -> None:
    terms: Any = Terms()
    similar = by_terms(terms, pool([4, 3, 2, 1]))
    court, judge = (1 + np.log(2)) * np.log(8), np.log(4)
    assert similar(0) == pytest.approx([1, judge / np.hypot(court, judge), 0, 0])
    assert similar(2) == pytest.approx([0, 0, 1, 0])
    # A document with nothing but a word that is everywhere is like none, not even itself.
    assert similar(3) == pytest.approx([0, 0, 0, 0])
    # relevance 1, 2/3, 1/3, 0: b is like a by about .37, which costs it .18; c is like nothing above it.
    for weight, ids in ((0.3, "acd"), (0.9, "abc")):
        assert MMRReranker(partial(by_terms, terms), weight).rerank(pool([4, 3, 2, 1], n=3)).ids == tuple(ids)
    similar = by_embeddings(Vectors(), pool([4, 3, 2, 1]))
    assert similar(1) == pytest.approx([0.5**0.5, 1, -(0.5**0.5), 0], abs=1e-7)


class Vectors:
    def vectors(self, ids: Sequence[str]) -> np.ndarray:
        known = {"a": [3, 0], "b": [2, 2], "c": [0, -1], "d": [0, 0]}
        return np.array([known[id] for id in ids], dtype=np.float32)


class Angles:
    """A document's embedding has the length 1 and the angle, in degrees, that is written down for it."""

    def __init__(self, **angles: float) -> None:
        self.angles, self.asked = angles, list[tuple[str, ...]]()

    def vectors(self, ids: Sequence[str]) -> Embeddings:
        self.asked.append(tuple(ids))
        angles = np.radians([self.angles[id] for id in ids])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def scored(n: int = 10, **scores: float) -> Pool:
    return Pool(Query("q"), Ranking(tuple(scores), np.array(list(scores.values()))), (), (), n)


# a and c point almost the same way, b and d too, at right angles to them; e is between.
ANGLES = {"a": 0, "b": 90, "c": 1, "d": 89, "e": 44}
SCORES = {"a": 1.0, "b": 0.9, "c": 0.4, "d": 0.0, "e": -0.5}


def test_the_nearest_by_hand() -> None:
    # .6 own + .4 of the nearest: a of c, b of d, c of a, d of b, e of c (43 degrees; d is 45 away).
    expected = {"a": 0.6 + 0.16, "b": 0.54, "c": 0.24 + 0.4, "d": 0.36, "e": -0.3 + 0.16}
    found = GraphReranker(Angles(**ANGLES), weight=0.4, k=1).rerank(scored(**SCORES))
    assert found.ids == ("a", "c", "b", "d", "e")
    assert found.scores.tolist() == pytest.approx([expected[id] for id in found.ids])
    scores, vectors = np.array([3.0, 2.0, 1.0]), Angles(a=0, b=10, c=20).vectors("abc")
    assert smoothed(scores, vectors, 0.5, k=2).tolist() == smoothed(scores, vectors, 0.5, k=99).tolist()
    assert smoothed(scores, vectors, 0.5, k=99).tolist() == [2.25, 2.0, 1.75]


def test_what_is_not_looked_at_stays_behind() -> None:
    source = Angles(a=0, b=90, c=0.5, d=89)
    found = GraphReranker(source, weight=0.4, k=1, depth=3).rerank(scored(a=1.0, b=0.9, c=0.1, d=0.05))
    # a and c are each other's nearest; b's nearest of the three is c. The last score is that of d: no more than b's.
    assert source.asked == [("a", "b", "c")]
    assert found.ids == ("a", "b", "c", "d")
    assert found.scores.tolist() == pytest.approx([0.64, 0.58, 0.46, 0.05])
    low = GraphReranker(source, weight=0.4, k=1, depth=3).rerank(scored(a=1.0, b=0.9, c=0.5, d=0.499, n=3))
    assert low.ids == ("a", "b", "c")
    tight = GraphReranker(Angles(a=0, b=1, c=0, d=0), weight=0.9, k=1, depth=2).rerank(
        scored(a=1.0, b=0.0, c=-0.1, d=-9)
    )
    # b takes from a (.9) what a loses to b (.1).
    assert (tight.ids, tight.scores[:2].tolist()) == (("b", "a", "c", "d"), pytest.approx([0.9, 0.1]))
    assert tight.scores[2:].tolist() == [-0.1, -9]


def test_without_embeddings_or_of_one_document_nothing_changes() -> None:
    found = GraphReranker(None).rerank(scored(a=3.0, b=2.0, c=1.0, n=2))
    assert (found.ids, found.scores.tolist()) == (("a", "b"), [3.0, 2.0])
    source = Angles()
    assert [GraphReranker(source).rerank(scored(**scores)).ids for scores in ({}, {"a": 2.0})] == [(), ("a",)]
    assert source.asked == []


@given(
    st.lists(st.tuples(st.integers(0, 359), st.integers(-5, 5)), min_size=2, max_size=8),
    st.integers(1, 8),
    st.sampled_from([0.0, 0.3, 0.9]),
    st.integers(2, 9),
    st.integers(1, 9),
)
def test_what_holds_of_every_list(rows: list[tuple[int, int]], k: int, weight: float, depth: int, n: int) -> None:
    scores = dict(zip("abcdefgh", sorted((float(score) for _, score in rows), reverse=True), strict=False))
    source = Angles(**dict(zip("abcdefgh", (angle for angle, _ in rows), strict=False)))
    given = scored(n, **scores)
    found = GraphReranker(source, weight, k, depth).rerank(given)
    # The documents that are looked at come first, the others after them as they stood.
    whole = GraphReranker(source, weight, k, depth).rerank(scored(99, **scores))
    assert (np.diff(whole.scores) <= 0).all()
    assert set(whole.ids[:depth]) == set(given.ranking.ids[:depth])
    assert whole.ids[depth:] == given.ranking.ids[depth:]
    assert found.ids == whole.ids[:n]
    if weight == 0:
        assert whole.ids == given.ranking.ids
