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
    NDCG,
    JudgedRanking,
    StepDiscount,
    Uniform,
    awrf,
    blend,
    gaps,
    group_exposure,
    jensen_shannon,
    joint_memberships,
    kl,
    known_part,
    most_underexposed,
    ndcg,
    total_variation,
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
    ("no ranks", lambda: LOG2_MAX2(0), []),
    ("exposure of an empty ranking", lambda: group_exposure(NONE, a()), [0, 0, 0]),
    ("exposure without weight", lambda: group_exposure(ROW, a(0)), [0, 0, 0]),
    ("exposure of rows without mass", lambda: group_exposure(a([0, 0], [0, 0]), a(1, 1)), [0, 0]),
    ("exposure of one group", lambda: group_exposure(a([0.5], [0.2]), a(1, 1)), [1]),
    ("known part of all unknown", lambda: known_part(a(1, 0, 0)), [0, 0]),
    ("known part of nothing", lambda: known_part(a(0, 0, 0)), [0, 0]),
    ("known part of one known group", lambda: known_part(a(0.5, 0.5)), [1]),
    ("known part of the unknown alone", lambda: known_part(a(1)), []),
    ("gaps of nothing labeled", lambda: gaps(a(0, 0), HALF), [0.5, 0.5]),
    ("nothing labeled", lambda: most_underexposed([a(0, 0)], [HALF]), (0, 0)),
    ("one group", lambda: most_underexposed([a(1)], [a(1)]), None),
    ("no dimension", lambda: most_underexposed([], []), None),
    ("a group only in the target", lambda: most_underexposed([a(1, 0)], [HALF]), (0, 1)),
    ("a group not in the target", lambda: most_underexposed([HALF], [a(0, 1)]), (0, 1)),
    ("kl of one group", lambda: kl(a(1), a(1)), 0),
    ("js of one group", lambda: jensen_shannon(a(1), a(1)), 0),
    ("kl, target with a zero, unsmoothed", lambda: kl(HALF, a(0, 1), 0), INF),
    ("js, target with a zero, unsmoothed", lambda: jensen_shannon(a(1, 0), a(0, 1)), math.log(2)),
    ("tv, target with a zero", lambda: total_variation(HALF, a(0, 1)), 0.5),
    ("a sum within the tolerance", lambda: kl(a(0.5, 0.5 + 9e-7), a(0.5, 0.5 + 9e-7)), 0),
    ("ndcg of an empty ranking", lambda: ndcg(np.array([], dtype=bool), 3, 20), 0),
    ("ndcg, n larger than the ranking", lambda: ndcg(np.array([True]), 1, 1000), 1),
    ("ndcg, fewer relevant than n", lambda: ndcg(np.array([True, False]), 1, 2), 1),
    ("ndcg, nothing relevant found", lambda: ndcg(np.array([False, False]), 9, 2), 0),
    ("awrf, n larger than the ranking", lambda: awrf(ROW, a(0, 1, 0), 1000), 1),
    ("awrf of one group", lambda: awrf(a([1.0]), a(1), 20), 1),
    ("awrf, target with a zero", lambda: awrf(ROW, a(0, 0, 1), 20), 1 - math.log(2)),
    ("awrf, all unknown counted as a group", lambda: awrf(a([1, 0]), a(1, 0), 20), 1),
    ("awrf, weight on the first rank only", lambda: awrf(a([0, 1], [1, 0]), a(0, 1), 20, StepDiscount(1)), 1),
    ("joint of no documents", lambda: joint_memberships([NONE, NONE]).shape, (0, 9)),
    ("target of all unknown", lambda: blend(a(2, 0, 0), HALF), [1, 0, 0]),
    ("target, background with a zero", lambda: blend(a(0, 1, 1), a(1, 0)), [0, 0.75, 0.25]),
    ("target of one group without background", lambda: blend(a(3)), [1]),
]

ERRORS: list[tuple[str, Callable[[], object], str]] = [
    ("a negative depth", lambda: LOG2_MAX2(-1), "-1 ranks"),
    ("weights too few", lambda: group_exposure(a([1], [1]), a(1)), r"2 documents .* weights of shape \(1,\)"),
    ("weights as a table", lambda: group_exposure(a([1]), a([1])), r"weights of shape \(1, 1\)"),
    ("memberships as a vector", lambda: group_exposure(a(1, 2), a(1, 1)), r"shape \(2,\), expected \(n, g\)"),
    ("memberships without groups", lambda: group_exposure(np.empty((2, 0)), a(1, 1)), r"shape \(2, 0\)"),
    ("a negative weight", lambda: group_exposure(a([1], [1]), a(2, -1)), r"weights\[1\] is -1"),
    ("a weight that is nan", lambda: group_exposure(a([1], [1]), a(1, NAN)), r"weights\[1\] is nan"),
    ("an infinite weight", lambda: group_exposure(a([1], [0]), a(1, INF)), r"weights\[1\] is inf"),
    ("a negative row", lambda: group_exposure(a([1, 0], [2, -1]), a(1, 1)), r"memberships\[1, 1\] is -1"),
    ("a row of nan", lambda: group_exposure(a([1, NAN]), a(1)), r"memberships\[0, 1\] is nan"),
    ("nan that has no weight", lambda: group_exposure(a([1, 0], [NAN, 0]), a(1, 0)), r"memberships\[1, 0\]"),
    ("infinity that has no weight", lambda: group_exposure(a([1, 0], [INF, 0]), a(1, 0)), r"memberships\[1, 0\]"),
    ("both infinities", lambda: group_exposure(a([INF, -INF]), a(1)), r"memberships\[0, 0\] is inf"),
    ("more than a float holds", lambda: group_exposure(a([1e308, 1e308]), a(10)), "too large"),
    ("known part of a table", lambda: known_part(ROW), r"shares has shape \(1, 3\)"),
    ("known part of nothing at all", lambda: known_part(a()), r"shares has shape \(0,\)"),
    ("known part, negative", lambda: known_part(a(0.5, -0.5, 1)), r"shares\[1\] is -0.5"),
    ("known part, nan", lambda: known_part(a(0.5, 0.5, NAN)), r"shares\[2\] is nan"),
    ("known part, infinite", lambda: known_part(a(0, 1, INF)), r"shares\[2\] is inf"),
    ("gaps that do not fit", lambda: gaps(HALF, TARGET), r"shapes \(2,\) and \(3,\)"),
    ("gaps of nan", lambda: gaps(a(NAN, 1), HALF), r"shares\[0\] is nan"),
    ("gaps of an infinite target", lambda: gaps(HALF, a(0, INF)), r"target\[1\] is inf"),
    ("groups that do not fit", lambda: most_underexposed([HALF], [TARGET]), r"shapes \(2,\) and \(3,\)"),
    ("a target of nan", lambda: most_underexposed([HALF], [a(NAN, 1)]), r"target\[0\] is nan"),
    ("a negative smoothing", lambda: kl(HALF, HALF, -1e-6), "smoothing is -1e-06"),
    ("a smoothing of nan", lambda: kl(HALF, HALF, NAN), "smoothing is nan"),
    ("a logarithm to base 1", lambda: jensen_shannon(HALF, HALF, base=1), "base is 1"),
    ("ndcg, n = 0", lambda: ndcg(np.array([True]), 1, 0), "cut-off is 0"),
    ("ndcg, nothing relevant", lambda: ndcg(np.array([False]), 0, 20), "not defined with 0 relevant"),
    ("ndcg, grades", lambda: ndcg(np.array([2, 0]), 1, 20), "int64 of shape"),  # type: ignore[arg-type]
    ("ndcg, a table", lambda: ndcg(np.array([[True]]), 1, 20), r"bool of shape \(1, 1\)"),
    ("a measure at 0", lambda: NDCG(0), "cut-off is 0"),
    ("another measure at 0", lambda: AWRF(0), "cut-off is 0"),
    ("awrf, n = 0", lambda: awrf(ROW, TARGET, 0), "cut-off is 0"),
    ("awrf of an empty ranking", lambda: awrf(NONE, TARGET, 20), "the ranking has no mass on any group"),
    ("awrf of rows without mass", lambda: awrf(ROW * 0, TARGET, 20), "the ranking has no mass on any group"),
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
    ("awrf, target of .9", lambda: awrf(ROW, a(0.3, 0.3, 0.3), 20), "target adds up to 0.9, expected 1"),
    ("awrf, target of nothing", lambda: awrf(ROW, a(0, 0, 0), 20), "target adds up to 0, expected 1"),
    ("awrf, target just outside", lambda: awrf(ROW, a(0, 0, 1 + 2e-6), 20), "adds up to 1.000002"),
    ("awrf, negative target", lambda: awrf(ROW, a(-0.5, 1, 0.5), 20), r"target\[0\] is -0.5"),
    ("awrf, target of nan", lambda: awrf(ROW, a(0, NAN, 1), 20), r"target\[1\] is nan"),
    ("awrf, infinite target", lambda: awrf(ROW, a(0, INF, 1), 20), r"target\[1\] is inf"),
    ("awrf, row of nan", lambda: awrf(a([0, NAN, 1]), TARGET, 20), r"memberships\[0, 1\] is nan"),
    ("awrf, infinite row", lambda: awrf(a([0, INF, 1]), TARGET, 20), r"memberships\[0, 1\] is inf"),
    ("awrf, negative row", lambda: awrf(a([0, -1, 2]), TARGET, 20), r"memberships\[0, 1\] is -1"),
    ("awrf, a vector", lambda: awrf(a(0, 1, 0), TARGET, 20), r"shape \(3,\), expected \(n, g\)"),
    (
        "awrf, mask too short",
        lambda: awrf(ROW, TARGET, 20, known=np.array([], dtype=bool)),
        r"shape \(0,\), expected bool of shape \(1,\)",
    ),
    ("awrf, mask of numbers", lambda: awrf(ROW, TARGET, 20, known=a(1)), "known is float64"),  # type: ignore[arg-type]
    ("joint of no dimension", lambda: joint_memberships([]), r"\[\] documents cannot be joined"),
    ("joint that does not fit", lambda: joint_memberships([ROW, NONE]), r"\[1, 0\] documents cannot"),
    ("joint with nan", lambda: joint_memberships([ROW, a([NAN])]), r"of dimension 1\[0, 0\] is nan"),
    ("target of no mass", lambda: blend(a(0, 0, 0), HALF), "none of them has a group record"),
    ("target of an infinite alignment", lambda: blend(a(0, INF, 0), HALF), r"alignment\[1\] is inf"),
    ("target of a negative alignment", lambda: blend(a(0, -1, 2), HALF), r"alignment\[1\] is -1"),
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
    ("of 1.1", a(0.5, 0.6), "{} adds up to 1.1, expected 1"),
    ("negative", a(1.5, -0.5), r"{}\[1\] is -0.5"),
    ("of nan", a(NAN, 1), r"{}\[0\] is nan"),
    ("infinite", a(0, INF), r"{}\[1\] is inf"),
    ("infinite both ways", a(-INF, INF), r"{}\[0\] is -inf"),
    ("of three", TARGET, "p and q have shapes"),
    ("a table", a([0.5, 0.5]), r"{} has shape \(1, 2\)"),
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
