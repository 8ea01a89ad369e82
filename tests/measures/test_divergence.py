from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.special import rel_entr

from fairagent.measures import DIVERGENCES, jensen_shannon, kl, kl_reverse, total_variation
from fairagent.types import FloatArray

from .laws import law, pairs

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
