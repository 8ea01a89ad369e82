"""FA*IR: tables against enumeration, the adjustment against every level there is, the two queues by hand."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.errors import UsageError
from fairagent.measures import UNIFORM
from fairagent.papers.rivals.fa_star_ir import (
    FAStarIRReranker,
    ProtectedGroup,
    adjusted,
    fa_star_ir,
    fail_probability,
    minimum_protected,
)
from fairagent.search.rerank.base import Pool
from fairagent.types import Query, Ranking

from .greedy_pools import is_fair


@given(st.integers(1, 25), st.floats(0.01, 0.99), st.floats(0.001, 0.5))
def test_table_is_the_binomial_quantile(k: int, p: float, alpha: float) -> None:
    assert minimum_protected(k, p, alpha).tolist() == [
        quantile(i, as_written(p), as_written(alpha)) for i in range(1, k + 1)
    ]


def as_written(value: float) -> Fraction:
    """The number that was meant: 0.9 is 9/10, though no double is."""
    return Fraction(repr(value))


def quantile(i: int, p: Fraction, alpha: Fraction) -> int:
    """The smallest m with F(m; i, p) >= alpha, in exact arithmetic."""
    below, m = (1 - p) ** i, 0
    while below < alpha:
        m += 1
        below += comb(i, m) * p**m * (1 - p) ** (i - m)
    return m


@pytest.mark.parametrize(("p", "alpha"), [(0.25, 0.3), (0.9, 0.5)])
def test_fail_probability_by_enumeration(p: float, alpha: float) -> None:
    k = 9
    table = minimum_protected(k, p, alpha)
    for compat, tested in ((None, table), ("library", table[:-1])):
        failed = sum(
            p ** sum(tosses) * (1 - p) ** (k - sum(tosses))
            for tosses in product((0, 1), repeat=k)
            if not is_fair(np.array(tosses) == 1, tested)
        )
        assert fail_probability(table, p, compat) == pytest.approx(failed, rel=1e-9, abs=1e-15)


@given(st.integers(1, 40), st.floats(0.02, 0.98), st.floats(0.001, 0.5))
def test_no_level_comes_closer_than_the_adjusted_one(k: int, p: float, alpha: float) -> None:
    found = adjusted(k, p, alpha)
    assert found.fail == fail_probability(found.table, p)
    assert 0 <= found.alpha <= alpha
    for level in [*np.linspace(0.001, alpha, 40), alpha]:
        other = fail_probability(minimum_protected(k, p, level), p)
        assert abs(found.fail - alpha) <= abs(other - alpha) + 1e-12


def test_the_published_example() -> None:
    # The README of fairsearchcore, k = 20, p = 0.25, alpha = 0.1: its figure leaves the last rank out.
    table = minimum_protected(20, 0.25, 0.1)
    assert fail_probability(table, 0.25, compat="library") == pytest.approx(0.11517506930977, abs=1e-13)
    assert fail_probability(table, 0.25) == pytest.approx(0.146887, abs=5e-7)


@pytest.mark.parametrize(
    ("k", "p", "alpha"), [(0, 0.5, 0.1), (5, -0.1, 0.1), (5, 1.1, 0.1), (5, 0.5, 0.0), (5, 0.5, 0.6)]
)
def test_numbers_out_of_range(k: int, p: float, alpha: float) -> None:
    for call in (minimum_protected, adjusted):
        with pytest.raises(UsageError, match="FA\\*IR needs"):
            call(k, p, alpha)


def order(scores: Sequence[float], protected: str, table: Sequence[int]) -> list[int]:
    return fa_star_ir(np.array(scores), np.array([letter == "P" for letter in protected]), np.array(table))


def test_queues_by_hand() -> None:
    # Rank 2 asks for one protected document, rank 4 for two; elsewhere the better head.
    assert order([9, 8, 7, 6, 5, 4], "---PP-", [0, 1, 1, 2]) == [0, 3, 1, 4]
    # A tie goes to the protected one; more than asked is no fault.
    assert order([5, 5, 4, 4], "-P-P", [0, 0, 0, 0]) == [1, 0, 3, 2]
    # Either queue may run out.
    assert order([3, 2, 1], "P--", [1, 2, 3]) == [0, 1, 2]
    assert order([3, 2, 1], "PP-", [0, 0, 0]) == [0, 1, 2]
    # As many ranks as there are documents, and documents in any order.
    assert order([1, 2], "--", [0, 0, 0]) == [1, 0]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=30),
    st.floats(0.05, 0.95),
    st.integers(1, 30),
)
def test_fair_whenever_there_are_enough_protected(rows: list[tuple[int, bool]], p: float, k: int) -> None:
    scores, protected = np.array([float(score) for score, _ in rows]), np.array([flag for _, flag in rows])
    k = min(k, len(rows))
    table = adjusted(k, p, 0.1).table
    found = fa_star_ir(scores, protected, table)
    assert len(found) == len(set(found)) == k
    if protected.sum() >= table[-1]:
        assert is_fair(protected[found], table)
    for side in (True, False):
        of_side = [scores[i] for i in found if protected[i] == side]
        assert of_side == sorted(scores[protected == side], reverse=True)[: len(of_side)]


def pool(memberships: Sequence[object], targets: Sequence[Sequence[float]], n: int = 10) -> Pool:
    """Documents a, b, c ... from the best to the worst."""
    rows = tuple(np.array(of_dimension, dtype=np.float64) for of_dimension in memberships)
    ids = tuple("abcdefghijklmnopqrst"[: len(rows[0])])
    ranking = Ranking(ids, np.arange(len(ids), 0, -1, dtype=np.float64))
    return Pool(Query("q"), ranking, rows, tuple(np.array(target) for target in targets), n)


A, B, UNKNOWN = [0, 1, 0], [0, 0, 1], [1, 0, 0]


def test_the_group_that_lacks_most_of_all_dimensions_is_protected_or_a_named_one() -> None:
    rows = [A] * 10 + [B] * 10
    found = FAStarIRReranker(alpha=0.1).rerank(pool([rows], [[0.5, 0.5]]))
    table = adjusted(10, 0.5, 0.1).table
    shown = np.array([id in "klmnopqrst" for id in found.ids])
    assert is_fair(shown, table)
    assert shown.sum() == table[-1] > 0
    assert found.scores.tolist() == pytest.approx(np.arange(10, 0, -1) / 10)
    first = [A] * 12 + [B] * 8
    # In the second dimension, B lacks 0.3 of 0.3; in the first, 0.6 of 0.6.
    second = ([A] * 6 + [B] * 1) * 2 + [A] * 6
    both = pool([first, second], [[0.4, 0.6], [0.7, 0.3]])
    worst = FAStarIRReranker().rerank(both)
    assert worst.ids == FAStarIRReranker(group=ProtectedGroup(0, 1)).rerank(both).ids
    assert {"m", "n"} <= set(worst.ids)
    named = FAStarIRReranker(group=ProtectedGroup(1, 1)).rerank(both)
    assert named.ids != worst.ids


@pytest.mark.parametrize(
    "rows",
    [
        [A, B, B, A],  # nothing lacks
        [A] * 4,  # the group that lacks has no document
        [UNKNOWN] * 4,
    ],
)
def test_by_relevance_where_there_is_nothing_to_do(rows: list[list[float]]) -> None:
    found = FAStarIRReranker(discount=UNIFORM).rerank(pool([rows], [[0.5, 0.5]]))
    assert found.ids == ("a", "b", "c", "d")
