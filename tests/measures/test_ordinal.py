"""Divergences over ordered groups: by hand in fractions, and their laws."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.errors import DataError
from fairagent.measures import normalized_match_distance, order_aware_divergence, total_variation
from fairagent.types import FloatArray

from .laws import distributions, law

EVEN = np.full(4, 0.25)


@st.composite
def ordered(draw: st.DrawFn) -> tuple[FloatArray, FloatArray]:
    g = draw(st.integers(2, 8))
    return draw(distributions(g)), draw(distributions(g))


def test_all_in_the_first_of_four_levels() -> None:
    """Cumulated 1, 1, 1 against 1/4, 1/2, 3/4: (3/4 + 1/2 + 1/4) / 3.

    Squared differences 9/16, 1/16, 1/16, 1/16; weighted by distance 6/16, 12/16, 20/16, 30/16; their mean is 17/16.
    """
    first = np.array([1.0, 0.0, 0.0, 0.0])
    assert normalized_match_distance(first, EVEN) == 0.5
    assert order_aware_divergence(first, EVEN) == pytest.approx(math.sqrt(Fraction(17, 16) / 3))


def test_only_groups_with_a_target_are_averaged() -> None:
    """The p of 1/2, 1/2, 0 and a target of 0, 0, 1: the one group of the target sees 2 (1/4) + 1 (1/4) = 3/4."""
    shown, due = np.array([0.5, 0.5, 0.0]), np.array([0.0, 0.0, 1.0])
    assert order_aware_divergence(shown, due) == pytest.approx(math.sqrt(Fraction(3, 4) / 2))
    # The other way round, groups 1 and 2: (0 + 1/4 + 2) / 1 and (1/4 + 0 + 1) / 1, their mean 7/4.
    assert order_aware_divergence(due, shown) == pytest.approx(math.sqrt(Fraction(7, 4) / 2))
    assert normalized_match_distance(shown, due) == normalized_match_distance(due, shown) == 0.75


def test_what_is_far_off_counts_more() -> None:
    first, second, last = np.eye(4)[[0, 1, 3]]
    for divergence in (normalized_match_distance, order_aware_divergence):
        assert divergence(first, second) < divergence(first, last) == 1.0
    assert total_variation(first, second) == total_variation(first, last)


@law
@given(ordered())
def test_laws(pair: tuple[FloatArray, FloatArray]) -> None:
    p, q = pair
    for divergence in (normalized_match_distance, order_aware_divergence):
        value = divergence(p, q)
        assert 0.0 <= value <= 1.0
        assert divergence(p, p) == 0.0
        assert divergence(p[::-1], q[::-1]) == pytest.approx(value, abs=1e-12)
    assert normalized_match_distance(q, p) == pytest.approx(normalized_match_distance(p, q), abs=1e-12)
    if p.size == 2 and q.all():
        assert normalized_match_distance(p, q) == pytest.approx(total_variation(p, q), abs=1e-12)
        assert order_aware_divergence(p, q) == pytest.approx(total_variation(p, q), abs=1e-12)


def test_bad_input() -> None:
    for divergence in (normalized_match_distance, order_aware_divergence):
        with pytest.raises(DataError, match="two groups or more"):
            divergence(np.array([1.0]), np.array([1.0]))
        with pytest.raises(DataError, match=r"q adds up to 1\.5"):
            divergence(EVEN, EVEN * 1.5)
        with pytest.raises(DataError, match="expected the same groups"):
            divergence(EVEN, np.array([0.5, 0.5]))
