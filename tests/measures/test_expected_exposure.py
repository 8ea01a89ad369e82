from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import linregress, ttest_ind

from fairagent.errors import DataError
from fairagent.measures import Discount, expected_exposure, item_exposure, target_exposure
from fairagent.measures.expected_exposure import Bounded, area_under_curve, disparity_intervals, fitted_line

from .laws import law


@st.composite
def draws(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int]:
    """Sampled rankings (N, k') of n items, which of these are useful (from none to all), and k (also above n)."""
    n = draw(st.integers(1, 9))
    k = draw(st.integers(1, 11))
    useful = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    count = draw(st.integers(1, 6))
    rankings = [draw(st.permutations(range(n)))[: min(k, n)] for _ in range(count)]
    return np.array(rankings), useful, k


@pytest.mark.parametrize(
    ("raw", "normalized"), [(2.5, 0.5), (1.0, 0.0), (1.0 - 1e-12, 0.0), (4.0 + 1e-12, 1.0), (5.5, 1.5), (-0.5, -0.5)]
)
def test_only_what_rounding_put_outside_the_bounds_is_put_on_them(raw: float, normalized: float) -> None:
    assert Bounded(raw, 1.0, 4.0, 0.0).normalized == normalized


@law
@given(draws())
def test_values_are_between_their_bounds_and_relevance_is_expected_recall_or_precision(
    drawn: tuple[np.ndarray, np.ndarray, int],
) -> None:
    rankings, useful, k = drawn
    n, m, shown = len(useful), int(useful.sum()), min(k, len(useful))
    exposure, target = item_exposure(rankings, n), target_exposure(useful, k)
    assert exposure.sum() == pytest.approx(shown) == target.sum()
    found = expected_exposure(exposure, useful, k)
    for value in (found.disparity, found.relevance, found.difference):
        assert value.least - 1e-9 <= value.raw <= value.most + 1e-9
        assert 0.0 <= value.normalized <= 1.0
    identity = found.disparity.raw - 2 * found.relevance.raw + target @ target
    assert found.difference.raw == pytest.approx(identity, abs=1e-9)
    least = max(0, shown - (n - m))
    shown_useful = useful[rankings].sum(axis=1).mean()
    expected = 1.0 if min(m, shown) == least else (shown_useful - least) / (min(m, shown) - least)
    assert found.relevance.normalized == pytest.approx(expected, abs=1e-9)


@law
@given(draws())
def test_bounds_are_reached(drawn: tuple[np.ndarray, np.ndarray, int]) -> None:
    _, useful, k = drawn
    n, shown = len(useful), min(k, len(useful))
    alike = expected_exposure(np.full(n, shown / n), useful, k)
    assert alike.disparity.raw == pytest.approx(alike.disparity.least)
    best = np.zeros(n)
    best[np.argsort(~useful, kind="stable")[:shown]] = 1
    first = expected_exposure(best, useful, k)
    assert first.disparity.raw == first.disparity.most
    assert first.relevance.raw == pytest.approx(first.relevance.most)
    worst = np.zeros(n)
    worst[np.argsort(useful, kind="stable")[:shown]] = 1
    last = expected_exposure(worst, useful, k)
    assert last.relevance.raw == pytest.approx(last.relevance.least)
    assert last.difference.raw == pytest.approx(last.difference.most)
    target = expected_exposure(target_exposure(useful, k), useful, k)
    assert target.difference.normalized == 0.0


@pytest.mark.parametrize(
    ("useful", "k"), [([True], 1), ([True, True, True], 2), ([False, False, False], 2), ([True] * 2, 5)]
)
@pytest.mark.parametrize("compat", [None, "authors"])
def test_what_leaves_no_choice_is_defined(useful: list[bool], k: int, compat: None) -> None:
    n = len(useful)
    found = expected_exposure(np.full(n, min(k, n) / n), useful, k, compat)
    assert found.relevance.normalized == pytest.approx(1.0)
    if n <= k and compat is None:
        assert (found.disparity.normalized, found.difference.normalized) == (0.0, 0.0)
    assert np.isfinite([found.disparity.normalized, found.difference.normalized]).all()


@pytest.mark.parametrize(
    ("exposure", "useful", "k", "message"),
    [
        ([0.5, np.nan], [True, False], 1, "exposure"),
        ([0.5, 1.5], [True, False], 1, r"1\.5, expected a share"),
        ([0.5, 0.5], [True], 1, "expected \\(n,\\) in both"),
        ([1.0, 1.0, 0.0], [True, False, False], 1, "adds up to 2, expected 1 or less"),
    ],
)
def test_bad_input(exposure: list[float], useful: list[bool], k: int, message: str) -> None:
    with pytest.raises(DataError, match=message):
        expected_exposure(exposure, useful, k)


def test_other_ways_of_reading() -> None:
    rankings = [[0, 1, 2], [1, 0, 2]]
    assert item_exposure(rankings, 4, Discount("geometric", (0.5,))).tolist() == [0.75, 0.75, 0.25, 0.0]
    assert item_exposure(rankings, 3, Discount("given", (1.0, 0.2, 1.0))).tolist() == [0.6, 0.6, 1.0]


def test_intervals_and_lines_beside_scipy() -> None:
    rng = np.random.default_rng(3)
    disparity, utility, own = rng.random(60), rng.random(60), rng.random(12)
    for row in disparity_intervals(disparity, utility, own):
        inside = utility[(row.low <= disparity) & (row.high > disparity)]
        assert row.count == len(inside)
        assert (row.mean, row.difference) == pytest.approx((inside.mean(), inside.mean() - own.mean()))
        assert row.p == pytest.approx(ttest_ind(inside, own).pvalue)
    line = fitted_line(disparity, utility)
    assert line
    assert line.slope == pytest.approx(linregress(disparity, utility).slope)


def test_intervals_at_their_edges_and_of_few_values() -> None:
    found = disparity_intervals([0.0, 0.2, 0.4, 0.6, 0.8, 0.8, 1.0], [1.0] * 7, [1.0, 1.0])
    assert [row.count for row in found] == [1, 1, 1, 1, 2]
    assert [row.p for row in found] == [None, None, None, None, 1.0]
    # Rounding moves nothing over an edge.
    found = disparity_intervals([0.1 * 3 * 2, 0.7 - 0.1, 1 - 1e-16, 1 - 1e-13], [1.0] * 4, [1.0])
    assert [row.count for row in found] == [0, 0, 0, 2, 0]
    first, *_, last = disparity_intervals([0.9, 0.95], [0.5, 0.5], [1.0, 1.0])
    assert (first.count, first.mean, first.difference, first.p) == (0, None, None, None)
    assert (last.difference, last.p) == (-0.5, 0.0)


def test_line_and_area_by_hand() -> None:
    # Level at .2 up to .25, a trapezoid to (.75, .6), level from there.
    assert area_under_curve([0.75, 0.25], [0.6, 0.2]) == pytest.approx(0.05 + 0.2 + 0.15)
    # Two points of one disparity count as their mean.
    assert area_under_curve([0.5, 0.5], [0.2, 0.4]) == pytest.approx(0.3)
    # The mean of these is not .1, by rounding.
    assert fitted_line([0.1, 0.1, 0.1], [0.1, 0.2, 0.9]) is None
    with pytest.raises(DataError, match="do not go together"):
        area_under_curve([0.5], [0.1, 0.2])
    with pytest.raises(DataError, match="expected a share in \\[0, 1\\]"):
        disparity_intervals([1.2], [0.5], [0.5])
    with pytest.raises(DataError, match="expected a share in \\[0, 1\\]"):
        area_under_curve([0.5, 1.5], [0.5, 0.5])
