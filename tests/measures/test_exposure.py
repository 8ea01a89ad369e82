from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.measures import LOG2_MAX2, Discount, Uniform, group_exposure, most_underexposed
from fairagent.types import FloatArray

from .laws import DISCOUNTS, law, pairs, rankings


def test_the_track_s_worked_example() -> None:
    unknown_female_male_nb = np.array([[0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    exposure = group_exposure(unknown_female_male_nb, LOG2_MAX2(3))
    assert exposure == pytest.approx([0.380094, 0.239812, 0.380094, 0.0], abs=5e-7)


def test_rows_count_by_their_mass() -> None:
    two_labels_and_one_and_none = np.array([[0.0, 1.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    assert group_exposure(two_labels_and_one_and_none, Uniform()(3)) == pytest.approx([0.0, 1 / 3, 2 / 3])


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
    weights = Uniform()(len(rows))
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
