"""Documents whose labels are known in part: whatever a row leaves open, no measure leaves its bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fairagent.measures import (
    AWRF,
    LOG2_MAX2,
    NDKL,
    JudgedRanking,
    Product,
    Unlabeled,
    awrf_bounds,
    exposure_bounds,
    group_exposure,
    joint_memberships,
    known_part,
    ndkl,
    parse_measure,
)
from fairagent.measures.exposure import LARGEST
from fairagent.measures.objective import GapColumns, GapTarget, gap_rows
from fairagent.types import FloatArray

from .laws import AMOUNTS, distributions, law

SLACK = 1e-9


@st.composite
def partial(draw: st.DrawFn) -> tuple[FloatArray, FloatArray]:
    """Rows (n, 1 + g) that add up to at most 1, the rest in column 0 or nowhere, and a target of some known group."""
    n, groups = draw(st.integers(1, 8)), draw(st.integers(2, 5))
    rows = np.zeros((n, 1 + groups))
    rows[:, 1:] = draw(arrays(np.float64, (n, groups), elements=AMOUNTS))
    rows /= np.maximum(rows.sum(axis=1, keepdims=True), 1.0)
    rows *= draw(arrays(np.float64, (n, 1), elements=st.sampled_from([1.0, 0.5, 0.2])))
    if draw(st.booleans()):
        rows[:, 0] = np.maximum(0.0, 1.0 - rows[:, 1:].sum(axis=1))
    return rows, np.concatenate(([0.0], draw(distributions(groups))))


BOUNDS = {
    "AWRF@5": (1 - math.log(2), 1.0),
    "AWRF(unknown=ignore)@5": (1 - math.log(2), 1.0),
    "AWRF(log=2)@5": (0.0, 1.0),
    "AWRF(log=2, unknown=ignore)@5": (0.0, 1.0),
    "unlabeled@5": (0.0, 1.0),
    "unlabeled(of=type)@5": (0.0, 1.0),
    "nDCG@5*AWRF(unknown=ignore)@5": (0.0, 1.0),
}


@law
@given(partial(), st.sampled_from([None, 0.2]), st.integers(0, 2**8 - 1))
def test_no_measure_leaves_its_bounds(drawn: tuple[FloatArray, FloatArray], unknown: float | None, of: int) -> None:
    rows, target = drawn
    some = np.array([bool(of >> place & 1) for place in range(len(rows))])
    if unknown:
        target = np.concatenate(([unknown], (1 - unknown) * target[1:]))
    judged = JudgedRanking(some | (np.arange(len(rows)) == 0), len(rows), rows, target, some, some)
    for text, (low, high) in BOUNDS.items():
        assert low - SLACK <= parse_measure(text)(judged) <= high + SLACK, text
    if rows[:5, 1:].any():
        assert 0 <= ndkl(rows, target, 5) <= -math.log(1e-6 / 2)


@law
@given(partial())
def test_shares_are_shares(drawn: tuple[FloatArray, FloatArray]) -> None:
    rows, target = drawn
    exposure = group_exposure(rows, LOG2_MAX2(len(rows)))
    joint = group_exposure(joint_memberships([rows, rows]), LOG2_MAX2(len(rows)))
    for shares in (exposure, known_part(exposure), joint):
        assert shares.min() >= 0
        assert shares.sum() == pytest.approx(1) or not shares.any()
    if exposure.any():
        low, high = exposure_bounds(exposure)
        assert (low >= 0).all()
        assert (low <= high).all()
        assert (high <= 1 + SLACK).all()
        least, most = awrf_bounds(exposure, target[1:])
        assert 1 - math.log(2) - SLACK <= least <= most <= 1 + SLACK
    for name, largest in LARGEST.items():
        columns = GapColumns([GapTarget(target[1:], np.array([0.1]))], name)
        gap = columns.gaps(LOG2_MAX2(len(rows)) @ gap_rows((rows[:, 1:], rows[:, :1])))
        assert 0 <= gap <= 2 * largest + SLACK


def test_a_fifth_of_a_label_is_all_that_is_known() -> None:
    """One document, .2 of it labelled: the known part is that group's alone, whatever is written of the rest."""
    due = np.array([0.0, 0.5, 0.5])
    for row in ([0.8, 0.2, 0.0], [0.0, 0.2, 0.0]):
        shown = JudgedRanking(np.ones(1, np.bool_), 1, np.array([row]), due)
        assert NDKL(1)(shown) == pytest.approx(math.log(2))
        assert AWRF(1, unknown="ignore")(shown) == pytest.approx(0.784238, abs=1e-6)
        assert Unlabeled(1)(shown) == pytest.approx(row[0])
        assert Product(AWRF(1, unknown="ignore"), AWRF(1, unknown="ignore"))(shown) <= 1
