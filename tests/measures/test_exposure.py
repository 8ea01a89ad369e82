"""Scores on a common scale: of a list, of one without a difference, and of what differs by rounding alone."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.special import rel_entr

from fairagent.errors import DataError
from fairagent.measures import (
    Discount,
    blend,
    gini,
    group_exposure,
    jensen_shannon,
    known_part,
    min_max,
    most_underexposed,
)
from fairagent.measures.exposure import LARGEST, TERMS
from fairagent.types import FloatArray

from .laws import DISCOUNTS, distributions, law, masses, pairs, rankings


@pytest.mark.parametrize(
    ("shares", "target", "group"),
    [
        ([0.6, 0.15, 0.25], [0.2, 0.35, 0.45], (0, 2)),  # both lack .2: the larger target
        ([0.5, 0.25, 0.25], [0.25, 0.375, 0.375], (0, 1)),  # equal targets too: the lower index
        ([0.1, 0.3, 0.6], [0.4, 0.6, 0.0], (0, 1)),  # .4 - .1 and .6 - .3 differ by rounding only: a tie
        ([0.2, 0.8, 0.0], [0.4, 0.6, 0.0], (0, 0)),  # no exposure, and none is due
        ([1.0], [1.0], None),
        ([0.3, 0.7], [0.1 + 0.2, 0.7], None),  # 5e-17 is rounding
    ],
)
def test_the_most_underexposed_group_and_its_ties(shares: list[float], target: list[float], group: object) -> None:
    assert most_underexposed([np.array(shares)], [np.array(target)]) == group


def test_the_worst_group_over_all_dimensions_and_its_ties() -> None:
    half, third = np.array([0.5, 0.5]), np.array([0.2, 0.4, 0.4])
    assert most_underexposed([np.array([0.4, 0.6]), np.array([0.2, 0.6, 0.2])], [half, third]) == (1, 2)
    # Both lack .1: the larger target, wherever it stands; of equal ones the first dimension's.
    assert most_underexposed([np.array([0.2, 0.3, 0.5]), np.array([0.4, 0.6])], [third, half]) == (1, 0)
    assert most_underexposed([np.array([0.6, 0.4]), np.array([0.4, 0.6])], [half, half]) == (0, 1)
    # What lies below the 12th decimal decides nothing.
    assert most_underexposed([np.array([0.4, 0.6]), np.array([0.4 - 1e-14, 0.6])], [half, half]) == (0, 0)
    assert most_underexposed([np.array([0.4, 0.6]), np.array([0.4 - 1e-11, 0.6])], [half, half]) == (1, 0)


@law
@given(rankings(), DISCOUNTS, st.floats(0.001, 1000.0))
def test_exposure_is_a_distribution_whatever_the_scale_of_the_weights(
    ranking: tuple[FloatArray, FloatArray], discount: Discount, scale: float
) -> None:
    rows, _ = ranking
    weights = discount(len(rows))
    exposure = group_exposure(rows, weights)
    assert exposure.sum() == pytest.approx(1.0)
    assert (exposure >= 0.0).all()
    assert group_exposure(rows, weights * scale) == pytest.approx(exposure)
    assert group_exposure(rows * scale, weights) == pytest.approx(exposure)
    assert group_exposure(rows[:, ::-1], weights) == pytest.approx(exposure[::-1])


@law
@given(pairs())
def test_the_chosen_group_lacks_most_and_has_a_target(pair: tuple[FloatArray, FloatArray]) -> None:
    shares, target = pair
    lacking = target - shares
    assert lacking.sum() == pytest.approx(0.0, abs=1e-12)
    place = most_underexposed([shares], [target])
    if place is None:
        assert shares == pytest.approx(target)
    else:
        _, group = place
        assert target[group] > 0.0
        assert lacking[group] == pytest.approx(lacking.max())


def test_divergences_by_hand() -> None:
    # The middle is (5/8, 3/8).
    p, q = np.array([0.5, 0.5]), np.array([0.75, 0.25])
    left = 0.5 * math.log(0.8) + 0.5 * math.log(4 / 3)
    right = 0.75 * math.log(1.2) + 0.25 * math.log(2 / 3)
    expected = {
        "kl": 0.5 * math.log(2 / 3) + 0.5 * math.log(2),
        "kl-reverse": 0.75 * math.log(1.5) + 0.25 * math.log(0.5),
        "js": (left + right) / 2,
        "tv": 0.25,
    }
    assert {name: terms(p, q).sum() for name, terms in TERMS.items()} == pytest.approx(expected)
    assert jensen_shannon(p, q) == pytest.approx(expected["js"])


def test_rounding_leads_out_of_no_range() -> None:
    # Without bounds: a division by zero, -1e-16, and ln 2 + 1e-16.
    assert jensen_shannon(np.array([1.0, 5e-324]), np.array([1.0, 0.0])) == pytest.approx(0.0, abs=1e-15)
    near = np.array([0.988, 0.01200000000000001]), np.array([0.988000001, 0.011999999000000011])
    assert jensen_shannon(*near) >= 0.0
    elevenths = np.array([0.6363636363636362, 0.2727272727272727, 0.09090909090909091, 0.0])
    assert jensen_shannon(elevenths, np.array([0.0, 0.0, 0.0, 1.0])) <= math.log(2)


@law
@given(pairs(), st.randoms(use_true_random=False))
def test_laws_of_the_jensen_shannon_divergence(pair: tuple[FloatArray, FloatArray], random: Random) -> None:
    p, q = pair
    js = jensen_shannon(p, q)
    assert 0.0 <= js <= math.log(2)
    assert jensen_shannon(p, p) == pytest.approx(0.0, abs=1e-15)
    assert js > 1e-12 or p == pytest.approx(q, abs=1e-5)
    # scipy's is the square root, which turns rounding of 1e-16 into 1e-8.
    assert js == pytest.approx(jensenshannon(p, q) ** 2, rel=1e-9, abs=1e-15)
    assert jensen_shannon(q, p) == pytest.approx(js, abs=1e-15)
    assert jensen_shannon(p, q, base=2) == pytest.approx(js / math.log(2))
    order = list(range(p.size))
    random.shuffle(order)
    assert jensen_shannon(p[order], q[order]) == pytest.approx(js, abs=1e-14)
    # What is a distribution but for rounding is normalized.
    assert jensen_shannon(p * (1 + 9e-7), q) == pytest.approx(js, rel=1e-9, abs=1e-12)


@law
@given(pairs())
def test_laws_of_all_divergences(pair: tuple[FloatArray, FloatArray]) -> None:
    p, q = ((side + 1e-6) / (1 + 1e-6 * side.size) for side in pair)
    found = {name: float(terms(p, q).sum()) for name, terms in TERMS.items()}
    assert found["kl"] == pytest.approx(rel_entr(p, q).sum(), rel=1e-9, abs=1e-15)
    assert found["kl-reverse"] == pytest.approx(rel_entr(q, p).sum(), rel=1e-9, abs=1e-15)
    assert found["js"] == pytest.approx(jensen_shannon(p, q), rel=1e-9, abs=1e-15)
    assert found["tv"] == pytest.approx(np.abs(p - q).sum() / 2)
    assert all(-1e-15 <= value <= LARGEST[name] for name, value in found.items())


@law
@given(masses(5), distributions(4), st.floats(0.001, 1000.0))
def test_the_unknown_share_is_kept_and_the_known_part_is_half_of_each(
    alignment: FloatArray, background: FloatArray, scale: float
) -> None:
    target = blend(alignment, background)
    assert target.sum() == pytest.approx(1.0)
    assert target[0] == pytest.approx(alignment[0] / alignment.sum())
    if alignment[1:].any():
        assert known_part(target) == pytest.approx((known_part(alignment) + background) / 2)
    assert blend(alignment * scale, background * (1 + 9e-7)) == pytest.approx(target)


@pytest.mark.parametrize(("difference", "expected"), [(1e-13, [0.0, 0.0]), (1e-11, [0.0, 1.0])])
def test_a_difference_may_be_called_rounding(difference: float, expected: list[float]) -> None:
    scores = np.array([0.5, 0.5 + difference])
    assert min_max(scores, flat=0.0, within=1e-12).tolist() == expected
    assert min_max(scores).tolist() == [0.0, 1.0]


@given(st.lists(st.floats(-1e100, 1e100), min_size=1, max_size=10))
def test_the_order_stays_and_the_ends_are_0_and_1(scores: list[float]) -> None:
    found = min_max(np.array(scores))
    assert (np.diff(found[np.argsort(scores)]) >= 0).all()
    assert (found.min(), found.max()) == (len(set(scores)) == 1, 1)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4)), min_size=1, max_size=6))
def test_gini_is_half_the_relative_mean_difference_of_two_documents(pairs: list[tuple[int, int]]) -> None:
    values, weights = np.array(pairs, dtype=np.float64).T
    each = np.repeat(values, weights.astype(int))
    expected = np.abs(each[:, None] - each).mean() / (2 * each.mean()) if each.any() else 0.0
    assert gini(values, weights) == pytest.approx(expected, abs=1e-12)


def test_gini_of_what_is_negative_or_nothing() -> None:
    assert gini(np.zeros(3), np.ones(3)) == 0.0
    with pytest.raises(DataError, match=r"weights\[1\]"):
        gini(np.ones(2), np.array([1.0, -1.0]))
