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

from fairagent.measures import (
    DIVERGENCES,
    UNIFORM,
    Discount,
    blend,
    group_exposure,
    jensen_shannon,
    kl,
    kl_reverse,
    known_part,
    min_max,
    most_underexposed,
    total_variation,
)
from fairagent.types import FloatArray

from .laws import DISCOUNTS, distributions, law, masses, pairs, rankings


def test_rows_count_by_their_mass() -> None:
    two_labels_and_one_and_none = np.array([[0.0, 1.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    assert group_exposure(two_labels_and_one_and_none, UNIFORM(3)) == pytest.approx([0.0, 1 / 3, 2 / 3])


@pytest.mark.parametrize(
    ("shares", "target", "group"),
    [
        ([0.9, 0.1], [0.5, 0.5], 1),
        ([0.6, 0.15, 0.25], [0.2, 0.35, 0.45], 2),  # both lack .2: the larger target
        ([0.5, 0.25, 0.25], [0.25, 0.375, 0.375], 1),  # equal targets too: the lower index
        ([0.1, 0.3, 0.6], [0.4, 0.6, 0.0], 1),  # .4 - .1 and .6 - .3 differ by rounding only: a tie
        ([0.2, 0.8, 0.0], [0.4, 0.6, 0.0], 0),  # no exposure, and none is due
    ],
)
def test_the_most_underexposed_group_and_its_ties(shares: list[float], target: list[float], group: int) -> None:
    assert most_underexposed([np.array(shares)], [np.array(target)]) == (0, group)


def test_the_worst_group_over_all_dimensions_and_its_ties() -> None:
    half, third = np.array([0.5, 0.5]), np.array([0.2, 0.4, 0.4])
    assert most_underexposed([np.array([0.4, 0.6]), np.array([0.2, 0.6, 0.2])], [half, third]) == (1, 2)
    # Both lack .1: the larger target, wherever it stands; of equal ones the first dimension's.
    assert most_underexposed([np.array([0.2, 0.3, 0.5]), np.array([0.4, 0.6])], [third, half]) == (1, 0)
    assert most_underexposed([np.array([0.6, 0.4]), np.array([0.4, 0.6])], [half, half]) == (0, 1)
    # What lies below the 12th decimal decides nothing.
    assert most_underexposed([np.array([0.4, 0.6]), np.array([0.4 - 1e-14, 0.6])], [half, half]) == (0, 0)
    assert most_underexposed([np.array([0.4, 0.6]), np.array([0.4 - 1e-11, 0.6])], [half, half]) == (1, 0)


@pytest.mark.parametrize(
    ("shares", "target"),
    [([0.3, 0.7], [0.3, 0.7]), ([1.0], [1.0]), ([0.3, 0.7], [0.1 + 0.2, 0.7])],  # 5e-17 is rounding
)
def test_no_group_is_underexposed(shares: list[float], target: list[float]) -> None:
    assert most_underexposed([np.array(shares)], [np.array(target)]) is None


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


@law
@given(rankings(), DISCOUNTS, st.randoms(use_true_random=False))
def test_exposure_follows_the_order_of_the_groups(
    ranking: tuple[FloatArray, FloatArray], discount: Discount, random: Random
) -> None:
    rows, target = ranking
    order = list(range(len(target)))
    random.shuffle(order)
    weights = discount(len(rows))
    assert group_exposure(rows[:, order], weights) == pytest.approx(group_exposure(rows, weights)[order])


@law
@given(rankings())
def test_with_equal_weights_the_order_of_the_documents_does_not_matter(ranking: tuple[FloatArray, FloatArray]) -> None:
    rows, _ = ranking
    weights = UNIFORM(len(rows))
    assert group_exposure(rows[::-1], weights) == pytest.approx(group_exposure(rows, weights))


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


P, Q = np.array([0.5, 0.5]), np.array([0.75, 0.25])


def test_hand_computed_values() -> None:
    assert kl(P, Q, 0.0) == pytest.approx(0.5 * math.log(2 / 3) + 0.5 * math.log(2))
    assert kl_reverse(P, Q, 0.0) == pytest.approx(0.75 * math.log(1.5) + 0.25 * math.log(0.5))
    assert total_variation(P, Q) == pytest.approx(0.25)
    # m = (5/8, 3/8)
    left = 0.5 * math.log(0.8) + 0.5 * math.log(4 / 3)
    right = 0.75 * math.log(1.2) + 0.25 * math.log(2 / 3)
    assert jensen_shannon(P, Q) == pytest.approx((left + right) / 2)


def test_smoothing_adds_to_every_share_and_renormalizes() -> None:
    smoothed = np.array([1.1, 0.1]) / 1.2
    assert kl(np.array([1.0, 0.0]), P, 0.1) == pytest.approx(kl(smoothed, P, 0.0))
    assert jensen_shannon(np.array([1.0, 0.0]), P, 0.1) == pytest.approx(jensen_shannon(smoothed, P))
    assert total_variation(np.array([1.0, 0.0]), P, 0.1) == pytest.approx(total_variation(smoothed, P))


@pytest.mark.parametrize("name", DIVERGENCES)
def test_with_smoothing_nothing_labeled_counts_as_uniform(name: str) -> None:
    divergence = DIVERGENCES[name]
    assert divergence(np.zeros(2), Q, 1e-6) == pytest.approx(divergence(P, Q, 1e-6), rel=1e-12)


def test_a_group_without_exposure_is_infinitely_far_one_way_only() -> None:
    shares, target = np.array([1.0, 0.0]), np.array([0.5, 0.5])
    assert kl(shares, target, 0.0) == pytest.approx(math.log(2))
    assert kl_reverse(shares, target, 0.0) == math.inf
    assert kl_reverse(shares, target) < 8.0


@pytest.mark.parametrize(("base", "most"), [(math.e, math.log(2)), (2.0, 1.0), (10.0, math.log10(2))])
def test_disjoint_distributions_are_as_far_as_can_be(base: float, most: float) -> None:
    assert jensen_shannon(np.array([1.0, 0.0]), np.array([0.0, 1.0]), base=base) == pytest.approx(most)
    assert total_variation(np.array([1.0, 0.0]), np.array([0.0, 1.0])) == 1.0


def test_the_smallest_share_is_no_division_by_zero() -> None:
    tiny = np.array([1.0, 5e-324])
    assert jensen_shannon(tiny, np.array([1.0, 0.0])) == pytest.approx(0.0, abs=1e-15)
    assert kl(np.array([0.5, 0.5]), tiny, 0.0) == pytest.approx(0.5 * math.log(0.5) * 2 - 0.5 * math.log(5e-324))


def test_rounding_leads_out_of_no_range() -> None:
    # Without bounds: -1e-16, -1e-16, ln 2 + 1e-16 and 1 + 2e-16.
    assert kl(np.array([0.53, 0.22, 0.25]), np.array([0.5300000000000001, 0.22, 0.25])) >= 0.0
    near = np.array([0.988, 0.01200000000000001]), np.array([0.988000001, 0.011999999000000011])
    assert jensen_shannon(*near) >= 0.0
    elevenths = np.array([0.6363636363636362, 0.2727272727272727, 0.09090909090909091, 0.0])
    assert jensen_shannon(elevenths, np.array([0.0, 0.0, 0.0, 1.0])) <= math.log(2)
    sixths = np.array([2 / 3, 1 / 6, 1 / 6, 0.0, 0.0, 0.0]), np.array([0.0, 0.0, 0.0, 1 / 2, 1 / 3, 1 / 6])
    assert total_variation(*sixths) == 1.0


@law
@given(pairs())
def test_kl_is_zero_for_equals_and_positive_otherwise(pair: tuple[FloatArray, FloatArray]) -> None:
    p, q = pair
    for divergence in DIVERGENCES.values():
        for smoothing in (0.0, 1e-6):
            assert divergence(p, p, smoothing) == pytest.approx(0.0, abs=1e-15)
            value = divergence(p, q, smoothing)
            assert value >= 0.0
            assert (value > 1e-12) or p == pytest.approx(q, abs=1e-5)


@law
@given(pairs())
def test_the_values_are_scipy_s(pair: tuple[FloatArray, FloatArray]) -> None:
    p, q = pair
    assert kl(p, q, 0.0) == pytest.approx(rel_entr(p, q).sum(), rel=1e-9, abs=1e-15)
    # scipy's is the square root, which turns rounding of 1e-16 into 1e-8
    assert jensen_shannon(p, q) == pytest.approx(jensenshannon(p, q) ** 2, rel=1e-9, abs=1e-15)


@law
@given(pairs())
def test_ranges_and_symmetry(pair: tuple[FloatArray, FloatArray]) -> None:
    p, q = pair
    js = jensen_shannon(p, q)
    assert 0.0 <= js <= math.log(2)
    assert jensen_shannon(q, p) == pytest.approx(js, abs=1e-15)
    assert jensen_shannon(p, q, base=2) == pytest.approx(js / math.log(2))
    assert 0.0 <= total_variation(p, q) <= 1.0
    assert total_variation(q, p) == total_variation(p, q)
    assert kl_reverse(p, q) == kl(q, p)
    # Pinsker's inequality ties the three together
    assert 2.0 * total_variation(p, q) ** 2 <= kl(p, q, 0.0) + 1e-12


@law
@given(pairs(), st.randoms(use_true_random=False))
def test_the_order_of_the_groups_does_not_matter(pair: tuple[FloatArray, FloatArray], random: Random) -> None:
    p, q = pair
    order = list(range(p.size))
    random.shuffle(order)
    for divergence in DIVERGENCES.values():
        assert divergence(p[order], q[order], 1e-6) == pytest.approx(divergence(p, q, 1e-6), abs=1e-14)


@law
@given(pairs())
def test_what_is_a_distribution_but_for_rounding_is_normalized(pair: tuple[FloatArray, FloatArray]) -> None:
    p, q = pair
    for divergence in DIVERGENCES.values():
        assert divergence(p * (1 + 9e-7), q, 0.0) == pytest.approx(divergence(p, q, 0.0), rel=1e-9, abs=1e-12)


GENDER = np.array([0.495, 0.495, 0.01])


def test_a_target_keeps_a_zero_only_where_the_background_has_one() -> None:
    target = blend(np.array([0.0, 1.0, 0.0, 0.0]), np.array([0.5, 0.5, 0.0]))
    assert target.tolist() == [0.0, 0.75, 0.25, 0.0]


def test_a_background_that_is_off_by_rounding_is_normalized() -> None:
    target = blend(np.array([1.0, 1.0, 2.0, 0.0]), GENDER * (1 + 9e-7))
    assert target == pytest.approx(blend(np.array([1.0, 1.0, 2.0, 0.0]), GENDER), abs=1e-12)


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
    assert blend(alignment * scale, background) == pytest.approx(target)


@pytest.mark.parametrize(("difference", "expected"), [(1e-13, [0.0, 0.0]), (1e-11, [0.0, 1.0])])
def test_a_difference_may_be_called_rounding(difference: float, expected: list[float]) -> None:
    scores = np.array([0.5, 0.5 + difference])
    assert min_max(scores, flat=0.0, within=1e-12).tolist() == expected
    assert min_max(scores).tolist() == [0.0, 1.0]


@given(st.lists(st.floats(-1e100, 1e100), min_size=1, max_size=10))
def test_the_order_stays_and_the_ends_are_0_and_1(scores: list[float]) -> None:
    found = min_max(np.array(scores))
    assert ((found >= 0) & (found <= 1)).all()
    assert (np.diff(found[np.argsort(scores)]) >= 0).all()
    assert found.max() == 1
    if len(set(scores)) > 1:
        assert found.min() == 0
