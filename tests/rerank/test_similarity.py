"""Maximal marginal relevance, the three ways to be alike, and smoothing over the graph of the candidates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

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
    mmr,
    smoothed,
)
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


def test_groups_take_turns_and_documents_without_a_label_are_alike() -> None:
    # Half of relevance 1, 3/4, 1/2, 1/4, 0, less 1/2 for a group that is there: after a comes d, then all lose alike.
    rows = [[0, 1, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]]
    assert MMRReranker(by_groups).rerank(pool([5, 4, 3, 2, 1], rows)).ids == ("a", "d", "b", "c", "e")
    # With nothing in common, u and v would both come before b.
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

    def words(self, vocabulary: object) -> list[str]:
        raise NotImplementedError

    def analyze(self, text: str) -> list[str]:
        raise NotImplementedError


def test_similarity_of_terms_and_embeddings_by_hand() -> None:
    similar = by_terms(Terms(), pool([4, 3, 2, 1]))
    court, judge = (1 + np.log(2)) * np.log(8), np.log(4)
    assert similar(0) == pytest.approx([1, judge / np.hypot(court, judge), 0, 0])
    assert similar(2) == pytest.approx([0, 0, 1, 0])
    # A document with nothing but a word that is everywhere is like none, not even itself.
    assert similar(3) == pytest.approx([0, 0, 0, 0])
    # relevance 1, 2/3, 1/3, 0: b is like a by about .37, which costs it .18; c is like nothing above it.
    assert MMRReranker(partial(by_terms, Terms()), relevance=0.3).rerank(pool([4, 3, 2, 1], n=3)).ids == ("a", "c", "d")
    assert MMRReranker(partial(by_terms, Terms()), relevance=0.9).rerank(pool([4, 3, 2, 1], n=3)).ids == ("a", "b", "c")
    similar = by_embeddings(Vectors(), pool([4, 3, 2, 1]))
    assert similar(1) == pytest.approx([0.5**0.5, 1, -(0.5**0.5), 0], abs=1e-7)


class Vectors:
    def vectors(self, ids: Sequence[str]) -> np.ndarray:
        known = {"a": [3, 0], "b": [2, 2], "c": [0, -1], "d": [0, 0]}
        return np.array([known[id] for id in ids], dtype=np.float32)


# --- smoothing over the graph of the candidates ---------------------------------------------------------------


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
    # Of a: c, e; b: d, e; c: a, e; d: b, e; e: c (43 degrees), a (44).
    means = {"a": -0.05, "b": -0.25, "c": 0.25, "d": 0.2, "e": 0.7}
    found = GraphReranker(Angles(**ANGLES), weight=0.5, k=2).rerank(scored(**SCORES))
    by_hand = {id: 0.5 * SCORES[id] + 0.5 * mean for id, mean in means.items()}
    assert dict(zip(found.ids, found.scores.tolist(), strict=True)) == pytest.approx(by_hand)
    assert list(found.ids) == sorted(SCORES, key=lambda id: -by_hand[id])
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


def test_without_embeddings_nothing_changes() -> None:
    found = GraphReranker(None).rerank(scored(a=3.0, b=2.0, c=1.0, n=2))
    assert (found.ids, found.scores.tolist()) == (("a", "b"), [3.0, 2.0])


@pytest.mark.parametrize("scores", [{}, {"a": 2.0}])
def test_of_no_document_or_one_nothing_is_asked(scores: dict[str, float]) -> None:
    source = Angles()
    assert GraphReranker(source).rerank(scored(**scores)).ids == tuple(scores)
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
    assert len(found) == len(set(found.ids)) == min(n, len(scores))
    assert (np.diff(found.scores) <= 0).all()
    # The documents that are looked at come first, the others after them as they stood.
    whole = GraphReranker(source, weight, k, depth).rerank(scored(99, **scores))
    assert set(whole.ids[:depth]) == set(given.ranking.ids[:depth])
    assert whole.ids[depth:] == given.ranking.ids[depth:]
    assert found.ids == whole.ids[:n]
    if weight == 0:
        assert whole.ids == given.ranking.ids
