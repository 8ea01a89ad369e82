"""What AWRF and exposure can be where labels are missing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from fairagent.errors import DataError
from fairagent.measures import (
    LOG2_MAX2,
    awrf_bounds,
    awrf_under_error,
    calibration_error,
    drawn_labels,
    exposure_bounds,
    group_exposure,
    jensen_shannon,
    known_part,
    reliability,
)
from fairagent.measures.unawareness import mean_under_error, shared_part
from fairagent.types import FloatArray

from .laws import AMOUNTS, law, rankings


def divergence(p: list[float], q: list[float]) -> float:
    """JSD written out."""
    return sum(
        (a * math.log(2 * a / (a + b)) if a else 0.0) / 2 + (b * math.log(2 * b / (a + b)) if b else 0.0) / 2
        for a, b in zip(p, q, strict=True)
    )


def test_the_bounds_of_awrf_by_hand() -> None:
    # Known .3, .1, 0 and .6 unknown, target .2, .3, .5.
    #
    # Filled up to r = (.6 + .1 + 0) / (.3 + .5) = 7/8 of the target: .3, 21/80, 7/16 (the first has 3/2 already).
    # Farthest is all in the first group, .9, .1, 0.
    low, high = awrf_bounds(np.array([0.6, 0.3, 0.1, 0.0]), np.array([0.2, 0.3, 0.5]))
    assert high == pytest.approx(1 - divergence([0.3, 21 / 80, 7 / 16], [0.2, 0.3, 0.5]), abs=1e-12)
    assert low == pytest.approx(1 - divergence([0.9, 0.1, 0.0], [0.2, 0.3, 0.5]), abs=1e-12)
    in_bits = awrf_bounds(np.array([0.6, 0.3, 0.1, 0.0]), np.array([0.2, 0.3, 0.5]), base=2)
    assert 1 - in_bits[0] == pytest.approx((1 - low) / math.log(2))
    # Shown 1/2, 0 and 1/2 unknown; of the target 0, 1/2 and 1/2 missing: both can be (1/2, 1/2), or apart for good.
    # With .9 shown to the first and .6 owed to the second no distribution is above both: .1 goes to the second, .4
    # to the first.
    low, high = awrf_bounds(np.array([0.5, 0.5, 0.0]), np.array([0.0, 1.0]), target_known=np.array([0.0, 0.5]))
    assert high == 1.0
    assert low == pytest.approx(1 - math.log(2))
    low, high = awrf_bounds(np.array([0.1, 0.9, 0.0]), np.array([0.0, 1.0]), target_known=np.array([0.0, 0.6]))
    assert high == pytest.approx(1 - divergence([0.9, 0.1], [0.4, 0.6]), abs=1e-12)
    assert low == pytest.approx(1 - math.log(2))


@pytest.mark.parametrize(
    ("exposure", "target", "known", "match"),
    [
        ([0.5, 0.5], [0.5, 0.5], None, "exposure has 1 known groups and target 2"),
        ([0.5, math.nan, 0.5], [0.5, 0.5], None, r"exposure\[1\] is nan"),
        ([0.5, 0.25, 0.25], [0.5, 0.5], [0.4, 0.6], "expected a part of the target"),
        ([0.5, 0.25, 0.25], [0.5, 0.5], [0.5, -0.1], r"target_known\[1\] is -0.1"),
    ],
)
def test_bad_shares(exposure: list[float], target: list[float], known: list[float] | None, match: str) -> None:
    with pytest.raises(DataError, match=match):
        awrf_bounds(np.array(exposure), np.array(target), target_known=None if known is None else np.array(known))


@st.composite
def partly_known(draw: st.DrawFn) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Documents shown and documents counted for the target, (n, 1 + g) each, the world's shares (g,) and their part."""
    rows, world = draw(rankings())
    counted = draw(arrays(np.float64, (draw(st.integers(1, 6)), rows.shape[1]), elements=AMOUNTS))
    counted[~counted.any(axis=1), 0] = 1.0
    world = known_part(world)
    if not world.any():
        world = np.full(world.size, 1.0 / world.size)
    return rows, counted / counted.sum(axis=1, keepdims=True), world, draw(st.sampled_from([0.0, 0.5]))


def completed(rows: FloatArray, spread: FloatArray) -> FloatArray:
    return rows[:, 1:] + rows[:, :1] * spread


@law
@given(partly_known(), st.integers(0, 2**32 - 1))
def test_no_labels_of_what_the_target_was_counted_from_lead_outside(
    drawn: tuple[FloatArray, FloatArray, FloatArray, float], seed: int
) -> None:
    """Whoever the unlabeled documents are, shown or counted; where all of each are of one group the end is reached."""
    rows, counted, world, part = drawn
    g, weights, rng = world.size, LOG2_MAX2(len(rows)), np.random.default_rng(seed)
    exposure, mean = group_exposure(rows, weights), counted.mean(axis=0)
    known = (1 - part) * mean[1:] + part * world
    low, high = awrf_bounds(exposure, known + (1 - part) * mean[0] * world, target_known=known)

    def value(shown: FloatArray, of_target: FloatArray) -> float:
        target = (1 - part) * completed(counted, of_target).mean(axis=0) + part * world
        reached = 1 - jensen_shannon(group_exposure(completed(rows, shown), weights), target)
        assert low - 1e-12 <= reached <= high + 1e-12
        return reached

    corners = np.eye(g)
    ends = [value(a, b) for a in corners for b in corners]
    assert min(ends) == pytest.approx(low, abs=1e-12)
    reached = [group_exposure(completed(rows, corner), weights) for corner in corners]
    least, most = exposure_bounds(exposure)
    assert np.max(reached, axis=0) == pytest.approx(most, abs=1e-12)
    assert (np.min(reached, axis=0) >= least - 1e-12).all()
    for _ in range(5):
        value(corners[rng.integers(g, size=len(rows))], corners[rng.integers(g, size=len(counted))])
        value(rng.dirichlet(np.full(g, 0.3), size=len(rows)), rng.dirichlet(np.full(g, 0.3), size=len(counted)))


@settings(law, max_examples=30)
@given(partly_known())
def test_the_upper_end_over_both_is_what_an_optimizer_finds(
    drawn: tuple[FloatArray, FloatArray, FloatArray, float],
) -> None:
    rows, counted, world, part = drawn
    g, exposure, mean = world.size, group_exposure(rows, LOG2_MAX2(len(rows))), counted.mean(axis=0)
    known, missing = (1 - part) * mean[1:] + part * world, (1 - part) * mean[0]

    def divergence_of(spread: FloatArray) -> float:
        shown, owed = np.split(np.abs(spread), 2)
        return jensen_shannon(
            known_part(np.append(0.0, exposure[1:] + exposure[0] * shown)),
            known_part(np.append(0.0, known + missing * owed)),
        )

    sums = [{"type": "eq", "fun": lambda spread, of=of: np.split(spread, 2)[of].sum() - 1.0} for of in (0, 1)]
    best = minimize(
        divergence_of,
        np.full(2 * g, 1.0 / g),
        bounds=[(0.0, 1.0)] * (2 * g),
        constraints=sums,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    high = awrf_bounds(exposure, known + missing * world, target_known=known)[1]
    assert high >= 1.0 - best.fun - 1e-9
    assert high == pytest.approx(1.0 - best.fun, abs=2e-4)


HALF = np.array([0.5, 0.5])
NONE = np.zeros(2)


def test_documents_of_a_topic_err_together_where_topics_differ() -> None:
    labels = drawn_labels(np.array([[0.2, 0.8], [0.5, 0.5]]), NONE, np.random.default_rng(1), draws=4000)
    assert labels.mean(axis=0) == pytest.approx([0.8, 0.5], abs=0.03)
    # Each document by itself: no correlation.
    assert abs(np.corrcoef(labels.T)[0, 1]) < 0.05
    labels = drawn_labels(np.tile(HALF, (2, 1)), np.array([2.0, 2.0]), np.random.default_rng(1), draws=4000)
    assert np.corrcoef(labels.T)[0, 1] > 0.4


def test_awrf_under_error_by_hand() -> None:
    # One of the two is certainly of group 0, the other of either: AWRF is 1, or that of all exposure for group 0.
    rows = np.array([[1.0, 0.0], [0.5, 0.5]])
    found = awrf_under_error(rows, np.ones(2), NONE, HALF, 0.0, NONE, np.random.default_rng(0), draws=2000)
    # JS((1, 0), (1/2, 1/2)) with m = (3/4, 1/4): ln(4/3) / 2 + (ln(2/3) / 2 + ln 2 / 2) / 2.
    apart = math.log(4 / 3) / 2 + (math.log(2 / 3) / 2 + math.log(2) / 2) / 2
    assert (found.low, found.high) == pytest.approx((1 - apart, 1.0))
    assert found.value == pytest.approx(1 - apart / 2, abs=0.01)
    # What is shown is what is relevant: whatever its labels are, exposure and target are equal.
    rows = np.tile(np.array([0.3, 0.7]), (4, 1))
    same = awrf_under_error(rows, np.ones(4), np.ones(4), HALF, 1.0, np.ones(2), np.random.default_rng(0))
    assert (same.value, same.low, same.high) == pytest.approx((1.0, 1.0, 1.0))
    rows = np.array([[0.4, 0.6]] * 3)
    nats, bits = (
        awrf_under_error(rows, np.ones(3), np.zeros(3), HALF, 0.0, NONE, np.random.default_rng(0), base)
        for base in (math.e, 2.0)
    )
    assert 1 - bits.value == pytest.approx((1 - nats.value) / math.log(2))


def test_what_topics_share_does_not_become_less_over_topics() -> None:
    """Of 1.96 standard errors of .1 a quarter of the variance, a half of the width, stays however many there are."""
    own = np.array([[0.5, 0.304, 0.696, 0.25]])
    assert mean_under_error(np.tile(own, (10**5, 1))).high == pytest.approx(0.5 + 0.098, abs=1e-3)
    assert mean_under_error(own).low == pytest.approx(0.304)
    assert 0.25 < shared_part(np.array([50.0, 50.0])) < shared_part(np.array([5.0, 50.0])) < 1


def test_reliability_by_hand() -> None:
    """Four documents at .95, three of them right; two at .55, one right."""
    chances = np.array([[0.95, 0.05]] * 4 + [[0.45, 0.55]] * 2)
    groups = [0, 0, 0, 1, 1, 0]
    assert reliability(chances, groups) == [(2, pytest.approx(0.55), 0.5), (4, pytest.approx(0.95), 0.75)]
    assert calibration_error(chances, groups) == pytest.approx((2 * 0.05 + 4 * 0.2) / 6)
    with pytest.raises(DataError):
        reliability(np.zeros((0, 2)), [])
