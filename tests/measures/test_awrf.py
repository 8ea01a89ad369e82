from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fairagent.measures import (
    AWRF,
    Discount,
    JudgedRanking,
    Log2Plus1,
    awrf,
    group_exposure,
    joint_memberships,
    known_part,
)
from fairagent.types import FloatArray

from .laws import DISCOUNTS, distributions, law, rankings

TARGET = np.array([0.25, 0.310625, 0.435625, 0.00375])  # unknown, female, male, NB
RANKING = np.array([[0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])


def test_the_track_s_worked_example() -> None:
    assert awrf(RANKING, TARGET, 500) == pytest.approx(0.988707, abs=5e-7)
    assert awrf(RANKING, TARGET, 500, base=2) == pytest.approx(0.983708, abs=5e-7)


def test_a_document_without_a_record_is_dropped_and_the_others_keep_their_ranks() -> None:
    known = np.array([True, False, True])
    assert awrf(RANKING, TARGET, 500, known=known) == pytest.approx(0.902422, abs=5e-7)
    nonsense = RANKING.copy()
    nonsense[1] = np.nan  # the row of such a document is not looked at
    assert awrf(nonsense, TARGET, 500, known=known) == awrf(RANKING, TARGET, 500, known=known)


def test_without_the_unknown_both_sides_are_renormalized() -> None:
    exposure = np.array([0.63093, 1.0]) / 1.63093
    target = np.array([0.25, 0.75])
    mean = (exposure + target) / 2
    divergence = (exposure * np.log(exposure / mean)).sum() / 2 + (target * np.log(target / mean)).sum() / 2
    ranking, whole = RANKING[:, :3], np.array([0.2, 0.2, 0.6])
    assert awrf(ranking, whole, 20, unknown="ignore") == pytest.approx(1 - divergence, abs=1e-6)


def test_a_ranking_is_cut_and_a_short_one_is_measured_as_it_is() -> None:
    assert awrf(RANKING, TARGET, 2) == awrf(RANKING[:2], TARGET, 20)
    assert awrf(RANKING, TARGET, 2) != awrf(RANKING, TARGET, 3)
    known = np.array([True, False, True])
    assert awrf(RANKING, TARGET, 2, known=known) == awrf(RANKING[:1], TARGET, 20)


def test_a_group_that_only_the_target_has_costs_and_is_no_error() -> None:
    only_female = np.array([[0.0, 1.0, 0.0]])
    half = awrf(only_female, np.array([0.0, 0.5, 0.5]), 20)
    assert half == pytest.approx(1 - (0.5 * math.log(4 / 3) + 0.25 * math.log(2 / 3) + 0.25 * math.log(2)))
    assert awrf(only_female, np.array([0.0, 0.0, 1.0]), 20) == 1.0 - math.log(2)


def test_the_measure_is_the_function() -> None:
    judged = JudgedRanking(np.zeros(3, dtype=bool), 4, RANKING, TARGET, np.array([True, False, True]))
    expected = awrf(RANKING, TARGET, 3, Log2Plus1(), "ignore", 2.0, judged.known)
    assert AWRF(3, Log2Plus1(), "2", "ignore")(judged) == expected


@law
@given(rankings(), DISCOUNTS)
def test_a_ranking_whose_exposure_is_the_target_scores_1(
    ranking: tuple[FloatArray, FloatArray], discount: Discount
) -> None:
    rows, _ = ranking
    assert awrf(rows, group_exposure(rows, discount(len(rows))), 20, discount) == pytest.approx(1.0, abs=1e-15)


@law
@given(rankings(), arrays(np.float64, 12, elements=st.floats(0.0, 5.0)))
def test_what_is_unknown_does_not_matter_where_it_is_ignored(
    ranking: tuple[FloatArray, FloatArray], unknown: FloatArray
) -> None:
    rows, target = ranking
    rows, target = rows + 0.0, target + 0.1
    rows[:, 1:] += 0.1
    target /= target.sum()
    other = rows.copy()
    other[:, 0] = unknown[: len(rows)]
    expected = awrf(rows, target, 20, unknown="ignore")
    assert awrf(other, target, 20, unknown="ignore") == pytest.approx(expected)
    without = np.concatenate(([0.0], known_part(target)))
    assert awrf(other, without, 20, unknown="ignore") == pytest.approx(expected)


def test_the_joint_of_two_dimensions() -> None:
    region = np.array([[0.0, 0.25, 0.75], [1.0, 0.0, 0.0]])
    gender = np.array([[0.5, 0.5], [0.0, 1.0]])
    assert joint_memberships([region, gender]).tolist() == [
        [0.0, 0.0, 0.125, 0.125, 0.375, 0.375],
        [0.0, 1.0, 0.0, 0.0, 0.0, 0.0],
    ]


@law
@given(st.data(), st.integers(0, 5))
def test_marginals_of_the_joint_are_its_dimensions(data: st.DataObject, n: int) -> None:
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    dimensions = [
        np.array(data.draw(st.lists(distributions(size), min_size=n, max_size=n))).reshape(n, size) for size in sizes
    ]
    joint = joint_memberships(dimensions)
    assert joint.shape == (n, math.prod(sizes))
    assert np.array_equal(joint_memberships(dimensions[:1]), dimensions[0])
    cube = joint.reshape(n, *sizes)
    for axis, dimension in enumerate(dimensions, start=1):
        others = tuple(other for other in range(1, len(sizes) + 1) if other != axis)
        assert cube.sum(axis=others) == pytest.approx(dimension)
