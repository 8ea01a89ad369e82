"""NDKL by hand, against its definition written out anew, and what is not defined."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.errors import DataError, UsageError
from fairagent.measures import NDKL, JudgedRanking, kl, ndkl, parse_measure
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
    """u, m, f: the first prefix with a label is the second: (0, 1), then (1, 1) / 2, weighted as they stand."""
    second = 1 / math.log2(3)
    assert ndkl(rows("umf"), HALF, 3) == pytest.approx(math.log(2) * second / (second + 1 / 2), abs=1e-12)
    # Left out, the target's own unknown share does not matter.
    assert ndkl(rows("umf"), np.array([0.5, 0.25, 0.25]), 3) == ndkl(rows("umf"), HALF, 3)


def test_a_group_without_a_target_costs_much_and_not_infinitely_much() -> None:
    assert ndkl(rows("m"), np.array([0, 1.0, 0]), 1) == pytest.approx(math.log(1e6), abs=1e-4)


def judged(letters: str, target: FloatArray = HALF, **more: object) -> JudgedRanking:
    shown = rows(letters)
    return JudgedRanking(np.zeros(len(shown), dtype=bool), 0, shown, target, **more)  # type: ignore[arg-type]


def test_the_measure() -> None:
    assert NDKL(4)(judged("mmmf")) == ndkl(rows("mmmf"), HALF, 4)
    # A document without a record is one without a label.
    assert NDKL(3)(judged("mmf", known=np.array([True, False, True]))) == ndkl(rows("muf"), HALF, 3)
    assert (NDKL(4).lower_is_better, NDKL(4).needs_labels) == (True, True)
    assert parse_measure("NDKL@20") == NDKL(20) == parse_measure(str(NDKL(20)))
    assert (NDKL(20).of_groups, NDKL(20).of_relevance, NDKL(20).label) == (True, False, "NDKL@20")
    for text in ("NDKL(smoothing=1)@9", "NDKL"):
        with pytest.raises(UsageError):
            parse_measure(text)


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


def test_bad_input() -> None:
    with pytest.raises(DataError, match="cut-off is 0"):
        ndkl(rows("m"), HALF, 0)
    with pytest.raises(DataError, match="memberships have 3 groups and target 2"):
        ndkl(rows("m"), HALF[1:], 1)
    with pytest.raises(DataError, match=r"adds up to 0\.5"):
        ndkl(rows("m"), HALF / 2, 1)
    with pytest.raises(DataError, match="no mass on any known group"):
        ndkl(rows("m"), np.array([1.0, 0, 0]), 1)
    with pytest.raises(DataError, match="nothing that is ranked has a group"):
        ndkl(rows("uu"), HALF, 2)
    with pytest.raises(DataError, match="nothing that is ranked has a group"):
        ndkl(rows(""), HALF, 2)
    with pytest.raises(DataError, match=r"memberships\[0, 0\] is nan"):
        ndkl(np.full((1, 3), np.nan), HALF, 1)
    with pytest.raises(DataError, match="needs memberships and a target"):
        NDKL(3)(JudgedRanking(np.zeros(1, dtype=bool), 0))
