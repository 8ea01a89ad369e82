"""Every input at the edge, and beyond it: a defined value or a DataError that says what is wrong, never a nan."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from fairagent.errors import DataError
from fairagent.measures import (
    AWRF,
    DIVERGENCES,
    LOG2_MAX2,
    JudgedRanking,
    StepDiscount,
    Uniform,
    awrf,
    blend,
    group_exposure,
    jensen_shannon,
    joint_memberships,
    kl,
    known_part,
    most_underexposed,
    ndcg,
)
from fairagent.types import FloatArray

NAN, INF = math.nan, math.inf
NONE = np.empty((0, 3))


def a(*values: object) -> FloatArray:
    return np.array(values, dtype=np.float64)


HALF = a(0.5, 0.5)
ROW = a([0.0, 1.0, 0.0])
TARGET = a(0.2, 0.4, 0.4)

VALUES: list[tuple[str, Callable[[], object], object]] = [
    ("exposure of an empty ranking", lambda: group_exposure(NONE, a()), [0, 0, 0]),
    ("exposure without weight", lambda: group_exposure(ROW, a(0)), [0, 0, 0]),
    ("exposure of rows without mass", lambda: group_exposure(a([0, 0], [0, 0]), a(1, 1)), [0, 0]),
    ("known part of all unknown", lambda: known_part(a(1, 0, 0)), [0, 0]),
    ("known part of one known group", lambda: known_part(a(0.5, 0.5)), [1]),
    ("nothing labeled", lambda: most_underexposed([a(0, 0)], [HALF]), (0, 0)),
    ("one group", lambda: most_underexposed([a(1)], [a(1)]), None),
    ("a group only in the target", lambda: most_underexposed([a(1, 0)], [HALF]), (0, 1)),
    ("a group not in the target", lambda: most_underexposed([HALF], [a(0, 1)]), (0, 1)),
    ("kl of one group", lambda: kl(a(1), a(1)), 0),
    ("kl, target with a zero, unsmoothed", lambda: kl(HALF, a(0, 1), 0), INF),
    ("js, target with a zero, unsmoothed", lambda: jensen_shannon(a(1, 0), a(0, 1)), math.log(2)),
    ("ndcg of an empty ranking", lambda: ndcg(np.array([], dtype=bool), 3, 20), 0),
    ("ndcg, n larger than the ranking", lambda: ndcg(np.array([True]), 1, 1000), 1),
    ("awrf, target with a zero", lambda: awrf(ROW, a(0, 0, 1), 20), 1 - math.log(2)),
    ("awrf, all unknown counted as a group", lambda: awrf(a([1, 0]), a(1, 0), 20), 1),
    ("awrf, weight on the first rank only", lambda: awrf(a([0, 1], [1, 0]), a(0, 1), 20, StepDiscount(1)), 1),
    ("joint of no documents", lambda: joint_memberships([NONE, NONE]).shape, (0, 9)),
    ("target of one group without background", lambda: blend(a(3)), [1]),
]

ERRORS: list[tuple[str, Callable[[], object], str]] = [
    ("a negative depth", lambda: LOG2_MAX2(-1), "-1 ranks"),
    ("weights too few", lambda: group_exposure(a([1], [1]), a(1)), r"2 documents .* weights of shape \(1,\)"),
    ("memberships as a vector", lambda: group_exposure(a(1, 2), a(1, 1)), r"shape \(2,\), expected \(n, g\)"),
    ("a weight that is nan", lambda: group_exposure(a([1], [1]), a(1, NAN)), r"weights\[1\] is nan"),
    ("a negative row", lambda: group_exposure(a([1, 0], [2, -1]), a(1, 1)), r"memberships\[1, 1\] is -1"),
    ("nan that has no weight", lambda: group_exposure(a([1, 0], [NAN, 0]), a(1, 0)), r"memberships\[1, 0\]"),
    ("both infinities", lambda: group_exposure(a([INF, -INF]), a(1)), r"memberships\[0, 0\] is inf"),
    ("more than a float holds", lambda: group_exposure(a([1e308, 1e308]), a(10)), "too large"),
    ("known part of nothing at all", lambda: known_part(a()), r"shares has shape \(0,\)"),
    ("known part, nan", lambda: known_part(a(0.5, 0.5, NAN)), r"shares\[2\] is nan"),
    ("groups that do not fit", lambda: most_underexposed([HALF], [TARGET]), r"shapes \(2,\) and \(3,\)"),
    ("a negative smoothing", lambda: kl(HALF, HALF, -1e-6), "smoothing is -1e-06"),
    ("a logarithm to base 1", lambda: jensen_shannon(HALF, HALF, base=1), "base is 1"),
    ("ndcg, n = 0", lambda: ndcg(np.array([True]), 1, 0), "cut-off is 0"),
    ("ndcg, nothing relevant", lambda: ndcg(np.array([False]), 0, 20), "not defined with 0 relevant"),
    ("ndcg, a table", lambda: ndcg(np.array([[True]]), 1, 20), r"bool of shape \(1, 1\)"),
    ("another measure at 0", lambda: AWRF(0), "cut-off is 0"),
    ("awrf of an empty ranking", lambda: awrf(NONE, TARGET, 20), "the ranking has no mass on any group"),
    (
        "awrf, no record at all",
        lambda: awrf(ROW, TARGET, 20, known=np.array([False])),
        "the ranking has no mass on any group",
    ),
    (
        "awrf, unknown ignored, ranking all unknown",
        lambda: awrf(a([1, 0, 0]), TARGET, 20, unknown="ignore"),
        "the ranking has no mass on any known group",
    ),
    (
        "awrf, unknown ignored, target all unknown",
        lambda: awrf(ROW, a(1, 0, 0), 20, unknown="ignore"),
        "the target has no mass on any known group",
    ),
    ("awrf, target with other groups", lambda: awrf(ROW, HALF, 20), "3 groups and target 2"),
    ("awrf, target just outside", lambda: awrf(ROW, a(0, 0, 1 + 2e-6), 20), "adds up to 1.000002"),
    ("awrf, target of nan", lambda: awrf(ROW, a(0, NAN, 1), 20), r"target\[1\] is nan"),
    ("awrf, row of nan", lambda: awrf(a([0, NAN, 1]), TARGET, 20), r"memberships\[0, 1\] is nan"),
    (
        "awrf, mask too short",
        lambda: awrf(ROW, TARGET, 20, known=np.array([], dtype=bool)),
        r"shape \(0,\), expected bool of shape \(1,\)",
    ),
    ("awrf, mask of numbers", lambda: awrf(ROW, TARGET, 20, known=a(1)), "known is float64"),  # type: ignore[arg-type]
    ("joint of no dimension", lambda: joint_memberships([]), r"\[\] documents cannot be joined"),
    ("joint with nan", lambda: joint_memberships([ROW, a([NAN])]), r"of dimension 1\[0, 0\] is nan"),
    ("target of no mass", lambda: blend(a(0, 0, 0), HALF), "no relevant document has a group record"),
    ("background of .9", lambda: blend(a(0, 1, 0), a(0.5, 0.4)), "background adds up to 0.9"),
    ("background with the unknown", lambda: blend(a(0, 1, 0), TARGET), "3 background shares for 2 known groups"),
    (
        "a judged ranking that does not fit",
        lambda: JudgedRanking(np.array([True, False]), 1, ROW, TARGET),
        "2 documents in relevant but 1 in memberships",
    ),
    (
        "a mask that does not fit",
        lambda: JudgedRanking(np.array([True]), 1, ROW, TARGET, np.array([True, True])),
        "1 documents in relevant but 2 in known",
    ),
]

BAD_SHARES: list[tuple[str, FloatArray, str]] = [
    ("of .9", a(0.5, 0.4), "{} adds up to 0.9, expected 1"),
    ("negative", a(1.5, -0.5), r"{}\[1\] is -0.5"),
    ("of nan", a(NAN, 1), r"{}\[0\] is nan"),
    ("of three", TARGET, "p and q have shapes"),
    ("empty", a(), r"{} has shape \(0,\)"),
]


@pytest.mark.parametrize(("call", "value"), [pytest.param(*case[1:], id=case[0]) for case in VALUES])
def test_a_defined_value(call: Callable[[], object], value: object) -> None:
    found = call()
    if value is None or isinstance(value, tuple):
        assert found == value
    else:
        assert found == pytest.approx(value, abs=1e-15)


@pytest.mark.parametrize(("call", "message"), [pytest.param(*case[1:], id=case[0]) for case in ERRORS])
def test_a_data_error(call: Callable[[], object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        call()


@pytest.mark.parametrize("smoothing", [0.0, 1e-6])
@pytest.mark.parametrize("name", DIVERGENCES)
@pytest.mark.parametrize(("shares", "message"), [pytest.param(*case[1:], id=case[0]) for case in BAD_SHARES])
def test_no_divergence_of_what_is_no_distribution(
    shares: FloatArray, message: str, name: str, smoothing: float
) -> None:
    for good in (HALF, Uniform()(2) * 0.0) if smoothing else (HALF,):
        with pytest.raises(DataError, match=message.format("[pq]")):
            DIVERGENCES[name](shares, good, smoothing)
        with pytest.raises(DataError, match=message.format("[pq]")):
            DIVERGENCES[name](good, shares, smoothing)


@pytest.mark.parametrize("name", DIVERGENCES)
def test_without_smoothing_nothing_labeled_has_no_divergence(name: str) -> None:
    with pytest.raises(DataError, match="adds up to 0, expected 1"):
        DIVERGENCES[name](a(0, 0), HALF, 0.0)
