"""Skew and NDKL by hand, against their definitions written out anew, and what is not defined."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.errors import DataError, UsageError
from fairagent.measures import NDKL, JudgedRanking, MaxSkew, MinSkew, kl, ndkl, skew
from fairagent.types import FloatArray

from .laws import law, rankings

ROW = {"f": [0.0, 1.0, 0.0], "m": [0.0, 0.0, 1.0], "u": [1.0, 0.0, 0.0], "b": [0.0, 1.0, 1.0]}
"""Unknown, female, male; b is both."""


def rows(letters: str) -> FloatArray:
    return np.array([ROW[letter] for letter in letters]).reshape(len(letters), 3)


HALF = np.array([0.0, 0.5, 0.5])


def test_ndkl_by_hand() -> None:
    """m, m, f with 1/2 each: ln 2; ln 2; 1/3 ln 2/3 + 2/3 ln 4/3, weighted 1, 1 / log2 3, 1/2."""
    second = 1 / math.log2(3)
    third = math.log(2 / 3) / 3 + 2 * math.log(4 / 3) / 3
    expected = (math.log(2) * (1 + second) + third / 2) / (1 + second + 1 / 2)
    assert ndkl(rows("mmf"), HALF, 20) == pytest.approx(expected, abs=1e-12)
    # The cut-off, and what is on target everywhere.
    assert ndkl(rows("mmf"), HALF, 1) == pytest.approx(math.log(2), abs=1e-12)
    assert ndkl(rows("bbb"), HALF, 3) == 0.0
    assert ndkl(rows("mm"), np.array([0, 0, 1.0]), 2) == pytest.approx(0, abs=2e-6)


def test_ndkl_of_documents_without_a_label() -> None:
    """u, m, f: left out, the first prefix with a label is the second: (0, 1), then (1, 1) / 2, weighted as they stand.

    As a group with 1/2, 1/4, 1/4: (1, 0, 0): ln 2; (1, 0, 1) / 2: ln(2) / 2; (1, 1, 1) / 3.
    """
    second = 1 / math.log2(3)
    assert ndkl(rows("umf"), HALF, 3) == pytest.approx(math.log(2) * second / (second + 1 / 2), abs=1e-12)
    third = (math.log(2 / 3) + 2 * math.log(4 / 3)) / 3
    expected = (math.log(2) + second * math.log(2) / 2 + third / 2) / (1 + second + 1 / 2)
    assert ndkl(rows("umf"), np.array([0.5, 0.25, 0.25]), 3, "group") == pytest.approx(expected, abs=1e-12)
    # Left out, the target's own unknown share does not matter.
    assert ndkl(rows("umf"), np.array([0.5, 0.25, 0.25]), 3) == ndkl(rows("umf"), HALF, 3)


def test_a_group_without_a_target_costs_much_and_not_infinitely_much() -> None:
    assert ndkl(rows("m"), np.array([0, 1.0, 0]), 1) == pytest.approx(math.log(1e6), abs=1e-4)


def test_skew_by_hand() -> None:
    """m m m f: 1/4 and 3/4 where 1/2 is due: ln 1/2 and ln 3/2."""
    assert skew(rows("mmmf"), HALF, 4) == pytest.approx([math.log(1 / 2), math.log(3 / 2)])
    assert skew(rows("mmmf"), np.array([0, 0.25, 0.75]), 4) == pytest.approx([0, 0])
    # Of three documents none is f: half of one, 1/6 to 1/2. Of a target of 0 there is no skew.
    assert skew(rows("mmmf"), HALF, 3) == pytest.approx([math.log(1 / 3), math.log(2)])
    found = skew(rows("mf"), np.array([0, 1.0, 0]), 2)
    assert found[0] == pytest.approx(math.log(1 / 2))
    assert math.isnan(found[1])
    # u m m f, unknown a group of 1/4; else it is as if it were not there.
    quarter = np.array([0.25, 0.375, 0.375])
    assert skew(rows("ummf"), quarter, 4, "group") == pytest.approx([0, math.log(2 / 3), math.log(4 / 3)])
    assert skew(rows("ummf"), quarter, 4) == pytest.approx([math.log(2 / 3), math.log(4 / 3)])
    # b counts for both: 2 of 3 and 1 of 3.
    assert skew(rows("bm"), HALF, 2) == pytest.approx([math.log(2 / 3), math.log(4 / 3)])


def judged(letters: str, target: FloatArray = HALF, **more: object) -> JudgedRanking:
    shown = rows(letters)
    return JudgedRanking(np.zeros(len(shown), dtype=bool), 0, shown, target, **more)  # type: ignore[arg-type]


def test_measures() -> None:
    made = judged("mmmf")
    assert MinSkew(4)(made) == pytest.approx(math.log(1 / 2))
    assert MaxSkew(4)(made) == pytest.approx(math.log(3 / 2))
    assert NDKL(4)(made) == ndkl(rows("mmmf"), HALF, 4)
    # A group without a target has no skew, and is neither the least nor the most.
    assert MinSkew(2)(judged("mf", np.array([0, 1.0, 0]))) == MaxSkew(2)(judged("mf", np.array([0, 1.0, 0])))
    # A document without a record is one without a label.
    hidden = judged("mmf", known=np.array([True, False, True]))
    assert MaxSkew(3)(hidden) == pytest.approx(0)
    assert (NDKL(4).lower_is_better, MaxSkew(4).lower_is_better, MinSkew(4).lower_is_better) == (True, True, False)
    assert (NDKL(4).needs_labels, NDKL(4, "group").needs_labels, MinSkew(4, "group").needs_labels) == (1, 0, 0)


@law
@given(rankings(), st.integers(1, 14))
def test_laws(ranking: tuple[FloatArray, FloatArray], n: int) -> None:
    memberships, target = ranking
    target = (target + 0.01) / (target + 0.01).sum()
    whole, due = np.hstack([np.zeros((len(memberships), 1)), memberships]), np.concatenate(([0.0], target))
    prefixes = [whole[:k, 1:].mean(axis=0) for k in range(1, min(n, len(whole)) + 1)]
    weights = np.array([1 / math.log2(k + 1) for k in range(1, len(prefixes) + 1)])
    plain = sum(w * kl(p / p.sum(), target, 0) for w, p in zip(weights, prefixes, strict=True)) / weights.sum()
    assert ndkl(whole, due, n) == pytest.approx(plain, abs=1e-9)
    assert ndkl(np.tile(due, (5, 1)), due, n) == pytest.approx(0, abs=1e-9)
    found = skew(whole, due, n)
    held = whole[:n, 1:].sum(axis=0)
    many = held >= 0.5
    assert found[many] == pytest.approx(np.log(held[many] / held.sum() / target[many]))
    assert found.max() >= -1e-9
    # Nobody is unknown: as a group it has no share, and changes nothing for the others.
    assert skew(whole, due, n, "group")[1:] == pytest.approx(found)


def test_bad_input() -> None:
    for function in (ndkl, skew):
        with pytest.raises(UsageError, match="unknown is 'drop'"):
            function(rows("m"), HALF, 1, "drop")  # type: ignore[arg-type]
        with pytest.raises(DataError, match="cut-off is 0"):
            function(rows("m"), HALF, 0)
        with pytest.raises(DataError, match="no mass on any known group"):
            function(rows("m"), np.array([1.0, 0, 0]), 1)
        with pytest.raises(DataError, match="nothing that is ranked has a group"):
            function(rows("uu"), HALF, 2)
        with pytest.raises(DataError, match="nothing that is ranked has a group"):
            function(rows(""), HALF, 2)
    with pytest.raises(DataError, match="needs memberships and a target"):
        NDKL(3)(JudgedRanking(np.zeros(1, dtype=bool), 0))
