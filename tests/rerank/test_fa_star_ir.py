"""FA*IR: tables against enumeration, the adjustment against every level there is, the two queues by hand."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
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

from .greedy_pools import is_fair, pool


@given(st.integers(1, 25), st.floats(0.01, 0.99), st.floats(0.001, 0.5))
def test_table_is_the_binomial_quantile(k: int, p: float, alpha: float) -> None:
    """At each rank the smallest m with F(m; rank, p) >= alpha, in exact arithmetic: 0.9 is meant as 9/10."""
    chance, level = Fraction(repr(p)), Fraction(repr(alpha))
    for rank, found in enumerate(minimum_protected(k, p, alpha).tolist(), start=1):
        terms = [comb(rank, m) * chance**m * (1 - chance) ** (rank - m) for m in range(found + 1)]
        assert sum(terms) >= level
        assert sum(terms[:-1]) < level


@given(st.integers(1, 40), st.floats(0.02, 0.98), st.floats(0.001, 0.5))
def test_no_level_comes_closer_than_the_adjusted_one(k: int, p: float, alpha: float) -> None:
    found = adjusted(k, p, alpha)
    assert found.fail == fail_probability(found.table, p)
    assert 0 <= found.alpha <= alpha
    for level in [*np.linspace(0.001, alpha, 40), alpha]:
        other = fail_probability(minimum_protected(k, p, level), p)
        assert abs(found.fail - alpha) <= abs(other - alpha) + 1e-12


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


def test_the_group_that_lacks_most_of_all_dimensions_is_protected_or_a_named_one() -> None:
    found = FAStarIRReranker(alpha=0.1).rerank(pool("f" * 10 + "m" * 10))
    table = adjusted(10, 0.5, 0.1).table
    shown = np.array([id[0] == "m" for id in found.ids])
    assert is_fair(shown, table)
    assert shown.sum() == table[-1] > 0
    assert found.scores.tolist() == pytest.approx(np.arange(10, 0, -1) / 10)
    # In the second dimension, m lacks 0.3 of 0.3; in the first, 0.6 of 0.6.
    both = pool("f" * 12 + "m" * 8, target=(0.4, 0.6), second="ffffffm" * 2 + "f" * 6, other=(0.7, 0.3))
    worst = FAStarIRReranker().rerank(both)
    assert worst.ids == FAStarIRReranker(group=ProtectedGroup(0, 1)).rerank(both).ids
    assert {"m12", "m13"} <= set(worst.ids)
    assert FAStarIRReranker(group=ProtectedGroup(1, 1)).rerank(both).ids != worst.ids


@pytest.mark.parametrize("letters", ["fmmf", "ffff", "uuuu"], ids=["nothing lacks", "none of who lacks", "unknown"])
def test_by_relevance_where_there_is_nothing_to_do(letters: str) -> None:
    made = pool(letters)
    assert FAStarIRReranker(discount=UNIFORM).rerank(made).ids == made.ranking.ids
