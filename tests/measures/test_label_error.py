"""Labels drawn from chances, and what they make of AWRF."""

import math

import numpy as np
import pytest

from fairagent.errors import DataError
from fairagent.measures import (
    awrf_under_error,
    calibration_error,
    drawn_labels,
    jensen_shannon,
    odds_spread,
    reliability,
)
from fairagent.measures.unawareness import mean_under_error, shared_part

HALF = np.array([0.5, 0.5])
NONE = np.zeros(2)


def test_draws_follow_the_chances_where_no_topic_differs() -> None:
    labels = drawn_labels(np.array([[0.2, 0.8], [0.5, 0.5]]), NONE, np.random.default_rng(1), draws=4000)
    assert labels.mean(axis=0) == pytest.approx([0.8, 0.5], abs=0.03)
    # Each document by itself: no correlation.
    assert abs(np.corrcoef(labels.T)[0, 1]) < 0.05


def test_documents_of_a_topic_err_together() -> None:
    labels = drawn_labels(np.tile(HALF, (2, 1)), np.array([2.0, 2.0]), np.random.default_rng(1), draws=4000)
    assert np.corrcoef(labels.T)[0, 1] > 0.4


def test_awrf_of_two_documents_by_hand() -> None:
    """One of the two is certainly of group 0, the other of either: AWRF is 1, or that of all exposure for group 0."""
    rows = np.array([[1.0, 0.0], [0.5, 0.5]])
    found = awrf_under_error(rows, np.ones(2), NONE, HALF, 0.0, NONE, np.random.default_rng(0), draws=2000)
    # JS((1, 0), (1/2, 1/2)) with m = (3/4, 1/4): ln(4/3) / 2 + (ln(2/3) / 2 + ln 2 / 2) / 2.
    apart = math.log(4 / 3) / 2 + (math.log(2 / 3) / 2 + math.log(2) / 2) / 2
    assert (found.low, found.high) == pytest.approx((1 - apart, 1.0))
    assert found.value == pytest.approx(1 - apart / 2, abs=0.01)


def test_the_target_is_counted_from_the_same_draws() -> None:
    """What is shown is what is relevant: whatever its labels are, exposure and target are equal."""
    rows = np.tile(np.array([0.3, 0.7]), (4, 1))
    same = awrf_under_error(rows, np.ones(4), np.ones(4), HALF, 1.0, np.ones(2), np.random.default_rng(0))
    assert (same.value, same.low, same.high) == pytest.approx((1.0, 1.0, 1.0))


def test_the_interval_of_a_mean_is_that_of_the_mean() -> None:
    """40 topics of 12 documents, labels drawn anew: where 95 % of the means lie, and not the mean of the ends."""
    rng, draws = np.random.default_rng(4), 2000
    values, ends = [], []
    for _ in range(40):
        labels = drawn_labels(rng.dirichlet([2.0, 1.0], size=12), np.full(2, 0.75), rng, draws)
        shares = labels.mean(axis=1)
        values.append([1 - jensen_shannon(np.array([1 - one, one]), HALF) for one in shares.tolist()])
        ends.append([np.mean(values[-1]), *np.quantile(values[-1], [0.025, 0.975])])
    found = mean_under_error(np.column_stack([ends, np.zeros(40)]))
    low, high = np.quantile(np.mean(values, axis=0), [0.025, 0.975])
    assert found.value == pytest.approx(np.mean(values))
    assert found.high - found.low == pytest.approx(high - low, rel=0.15)
    # Each topic's own interval is sqrt(40) times as wide.
    assert np.ptp(np.mean(ends, axis=0)[1:]) > 5 * (found.high - found.low)


def test_what_topics_share_does_not_become_less_over_topics() -> None:
    """Of 1.96 standard errors of .1 a quarter of the variance, a half of the width, stays however many there are."""
    own = np.array([[0.5, 0.304, 0.696, 0.25]])
    assert mean_under_error(np.tile(own, (10**5, 1))).high == pytest.approx(0.5 + 0.098, abs=1e-3)
    assert mean_under_error(own).low == pytest.approx(0.304)
    assert 0.25 < shared_part(np.array([50.0, 50.0])) < shared_part(np.array([5.0, 50.0])) < 1


def test_base_2_is_nats_divided_by_ln_2() -> None:
    rows = np.array([[0.4, 0.6]] * 3)
    nats, bits = (
        awrf_under_error(rows, np.ones(3), np.zeros(3), HALF, 0.0, NONE, np.random.default_rng(0), base)
        for base in (math.e, 2.0)
    )
    assert 1 - bits.value == pytest.approx((1 - nats.value) / math.log(2))


def test_more_examples_make_less_spread() -> None:
    assert odds_spread(np.array([25.0, 0.0]), of_topic=0.0) == pytest.approx([0.2, 1.0])
    assert odds_spread(np.array([1e9]), of_topic=0.6) == pytest.approx([0.6])


def test_reliability_by_hand() -> None:
    """Four documents at .95, three of them right; two at .55, one right."""
    chances = np.array([[0.95, 0.05]] * 4 + [[0.45, 0.55]] * 2)
    groups = [0, 0, 0, 1, 1, 0]
    assert reliability(chances, groups) == [(2, pytest.approx(0.55), 0.5), (4, pytest.approx(0.95), 0.75)]
    assert calibration_error(chances, groups) == pytest.approx((2 * 0.05 + 4 * 0.2) / 6)
    with pytest.raises(DataError):
        reliability(np.zeros((0, 2)), [])
