from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import linregress, ttest_ind

from fairagent.errors import DataError
from fairagent.measures.expected_exposure import area_under_curve, disparity_intervals, fitted_line

RNG = np.random.default_rng(3)
DISPARITY, UTILITY, OWN = RNG.random(60), RNG.random(60), RNG.random(12)


def test_intervals_beside_scipy() -> None:
    found = disparity_intervals(DISPARITY, UTILITY, OWN)
    assert sum(row.count for row in found) == 60
    for row in found:
        inside = UTILITY[(row.low <= DISPARITY) & (row.high > DISPARITY)]
        assert row.count == len(inside)
        assert row.mean == pytest.approx(inside.mean())
        assert row.difference == pytest.approx(inside.mean() - OWN.mean())
        assert row.p == pytest.approx(ttest_ind(inside, OWN).pvalue)


def test_edges_belong_to_the_interval_above_and_1_to_none() -> None:
    found = disparity_intervals([0.0, 0.2, 0.4, 0.6, 0.8, 0.8, 1.0], [1.0] * 7, [1.0, 1.0])
    assert [row.count for row in found] == [1, 1, 1, 1, 2]
    assert [row.p for row in found] == [None, None, None, None, 1.0]
    # Rounding moves nothing over an edge.
    found = disparity_intervals([0.1 * 3 * 2, 0.7 - 0.1, 1 - 1e-16, 1 - 1e-13], [1.0] * 4, [1.0])
    assert [row.count for row in found] == [0, 0, 0, 2, 0]


def test_what_is_as_unequal_as_the_ranking_itself_says_nothing_about_drawing() -> None:
    # With the values at 1 the mean would be .73, and the difference +.03.
    *_, last = disparity_intervals([0.85, 0.95, 1.0, 1.0, 1.0], [0.6, 0.7, 0.75, 0.8, 0.8], [0.7, 0.7])
    assert (last.count, last.mean, last.difference) == (2, pytest.approx(0.65), pytest.approx(-0.05))


def test_empty_intervals_and_values_that_do_not_vary() -> None:
    first, *_, last = disparity_intervals([0.9, 0.95], [0.5, 0.5], [1.0, 1.0])
    assert (first.count, first.mean, first.difference, first.p) == (0, None, None, None)
    assert (last.difference, last.p) == (-0.5, 0.0)


def test_slope_beside_scipy() -> None:
    line = fitted_line(DISPARITY, UTILITY)
    assert line
    assert line.slope == pytest.approx(linregress(DISPARITY, UTILITY).slope)


def test_area_by_hand() -> None:
    # Level at .2 up to .25, a trapezoid to (.75, .6), level from there.
    assert area_under_curve([0.75, 0.25], [0.6, 0.2]) == pytest.approx(0.05 + 0.2 + 0.15)
    # Two points of one disparity count as their mean.
    assert area_under_curve([0.5, 0.5], [0.2, 0.4]) == pytest.approx(0.3)


def test_bad_input() -> None:
    # The mean of these is not .1, by rounding.
    assert fitted_line([0.1, 0.1, 0.1], [0.1, 0.2, 0.9]) is None
    with pytest.raises(DataError, match="do not go together"):
        area_under_curve([0.5], [0.1, 0.2])
    with pytest.raises(DataError, match="expected \\[0, 1\\]"):
        disparity_intervals([1.2], [0.5], [0.5])
    with pytest.raises(DataError, match="expected \\[0, 1\\]"):
        area_under_curve([0.5, 1.5], [0.5, 0.5])
