"""Every input at the edge, and beyond it: a defined value or a DataError that says what is wrong, never a nan."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fairagent.errors import DataError, UsageError
from fairagent.measures import (
    AWRF,
    LOG2_MAX2,
    LOG2_PLUS1,
    NDCG,
    NDKL,
    UNIFORM,
    Discount,
    JudgedRanking,
    Product,
    Unlabeled,
    awrf,
    awrf_bounds,
    blend,
    exposure_bounds,
    group_exposure,
    jensen_shannon,
    joint_memberships,
    known_part,
    min_max,
    most_underexposed,
    ndcg,
    ndkl,
    parse_discount,
    parse_measure,
)
from fairagent.measures.base import given_by
from fairagent.measures.exposure import LARGEST
from fairagent.measures.objective import GapColumns, GapTarget, gap_rows
from fairagent.types import FloatArray

from .laws import AMOUNTS, BROWSING, DISCOUNTS, distributions, law


@pytest.mark.parametrize(
    ("discount", "text", "weights"),
    [
        (LOG2_MAX2, "log2-max2", [1.0, 1.0, 0.630930, 0.5, 0.430677]),
        (LOG2_PLUS1, "log2-plus1", [1.0, 0.630930, 0.5, 0.430677, 0.386853]),
        (UNIFORM, "uniform", [1.0, 1.0, 1.0, 1.0, 1.0]),
        (Discount("geometric", (0.5,)), "geometric(0.5)", [1.0, 0.5, 0.25, 0.125, 0.0625]),
        (Discount("geometric", (1,)), "geometric(1.0)", [1.0, 1.0, 1.0, 1.0, 1.0]),
        (Discount("step", (2,)), "step(2)", [1.0, 1.0, 0.0, 0.0, 0.0]),
        (Discount("given", (1.0, 0.5, 0.75)), "given(1.0, 0.5, 0.75)", [1.0, 0.5, 0.75, 0.0, 0.0]),
    ],
)
def test_the_weights_and_the_text(discount: Discount, text: str, weights: list[float]) -> None:
    assert discount(5) == pytest.approx(weights, abs=5e-7)
    assert str(discount) == text
    assert parse_discount(text) == discount


def test_the_weights_are_made_once_and_cannot_be_spoiled() -> None:
    assert LOG2_MAX2(20) is LOG2_MAX2(20)
    with pytest.raises(ValueError, match="read-only"):
        LOG2_MAX2(20)[0] = 2.0


@law
@given(DISCOUNTS, st.integers(1, 200))
def test_attention_starts_at_1_never_grows_and_does_not_depend_on_the_depth(discount: Discount, n: int) -> None:
    weights = discount(n)
    assert weights.shape == (n,)
    assert weights[0] == 1.0
    assert (np.diff(weights) <= 0.0).all()
    assert (weights >= 0.0).all()
    assert np.array_equal(weights, discount(n + 10)[:n])


@law
@given(BROWSING)
def test_text_and_value_say_the_same(discount: Discount) -> None:
    assert parse_discount(str(discount)) == discount
    assert parse_discount(f"  {discount} ") == discount


@pytest.mark.parametrize("text", ["", "Log2-max2", "geometric()", "step(2.5)"])
def test_a_text_that_is_no_discount_names_the_forms(text: str) -> None:
    with pytest.raises(UsageError, match=rf"{re.escape(repr(text))}.*log2-max2, log2-plus1, uniform, geometric.*step"):
        parse_discount(text)


def test_measured_attention_is_a_discount() -> None:
    assert given_by([0.4, 0.1, 0.2]) == Discount("given", (1.0, 0.25, 0.5))
    assert given_by([0.4, 0.1, 0.2]).rises
    assert not given_by([0.4, 0.2, 0.1]).rises
    with pytest.raises(UsageError, match="rise again"):
        NDCG(5, given_by([0.4, 0.1, 0.2]))
    assert NDCG(5, given_by([0.4, 0.2, 0.1])).discount(3).tolist() == [1.0, 0.5, 0.25]
    for none in ([], [0.0, 1.0]):
        with pytest.raises(DataError, match="rank 1"):
            given_by(none)


@pytest.mark.parametrize(
    "text",
    ["geometric(0)", "geometric(1.1)", "geometric(nan)", "step(0)", "given(0.5, 1)", "given(1, -1)", "given(1, nan)"],
)
def test_numbers_of_a_discount_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match=f"^{text.partition('(')[0]} discount: "):
        parse_discount(text)


NAN, INF = math.nan, math.inf
NONE = np.empty((0, 3))


def a(*values: object) -> FloatArray:
    return np.array(values, dtype=np.float64)


HALF = a(0.5, 0.5)
ROW = a([0.0, 1.0, 0.0])
TARGET = a(0.2, 0.4, 0.4)

VALUES: list[tuple[str, Callable[[], object], object]] = [
    ("exposure of an empty ranking", lambda: group_exposure(NONE, a()), [0, 0, 0]),
    ("exposure of rows without mass", lambda: group_exposure(a([0, 0], [0, 0]), a(1, 1)), [0, 0]),
    ("known part of all unknown", lambda: known_part(a(1, 0, 0)), [0, 0]),
    ("known part of one known group", lambda: known_part(a(0.5, 0.5)), [1]),
    ("nothing labeled", lambda: most_underexposed([a(0, 0)], [HALF]), (0, 0)),
    ("one group", lambda: most_underexposed([a(1)], [a(1)]), None),
    ("a group only in the target", lambda: most_underexposed([a(1, 0)], [HALF]), (0, 1)),
    ("a group not in the target", lambda: most_underexposed([HALF], [a(0, 1)]), (0, 1)),
    ("ndcg of an empty ranking", lambda: ndcg(np.array([], dtype=bool), 3, 20), 0),
    ("ndcg, n larger than the ranking", lambda: ndcg(np.array([True]), 1, 1000), 1),
    ("scores on one scale, of none", lambda: min_max(a()), []),
    ("target without background", lambda: blend(a(1, 1, 2)), [0.25, 0.25, 0.5]),
    ("all unknown can be of one group", lambda: awrf_bounds(a(1, 0, 0), a(0.25, 0.75))[1], 1),
    ("awrf, target with a zero", lambda: awrf(ROW, a(0, 0, 1), 20), 1 - math.log(2)),
    ("awrf, all unknown counted as a group", lambda: awrf(a([1, 0]), a(1, 0), 20), 1),
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
    ("a logarithm to base 1", lambda: jensen_shannon(HALF, HALF, base=1), "base is 1"),
    ("ndcg, n = 0", lambda: ndcg(np.array([True]), 1, 0), "cut-off is 0"),
    ("ndcg, nothing relevant", lambda: ndcg(np.array([False]), 0, 20), "not defined with 0 relevant"),
    ("ndcg, a table", lambda: ndcg(np.array([[True]]), 1, 20), r"bool of shape \(1, 1\)"),
    ("another measure at 0", lambda: AWRF(0), "cut-off is 0"),
    ("awrf of an empty ranking", lambda: awrf(NONE, TARGET, 20), "the ranking has no mass on any group"),
    ("awrf, no record", lambda: awrf(ROW, TARGET, 20, known=np.array([False])), "ranking has no mass on any group"),
    ("awrf, none known", lambda: awrf(a([1, 0, 0]), TARGET, 20, unknown="ignore"), "ranking has .* any known group"),
    ("awrf, none due", lambda: awrf(ROW, a(1, 0, 0), 20, unknown="ignore"), "target has no mass on any known group"),
    ("awrf, target with other groups", lambda: awrf(ROW, HALF, 20), "3 groups and target 2"),
    ("awrf, target just outside", lambda: awrf(ROW, a(0, 0, 1 + 2e-6), 20), "adds up to 1.000002"),
    ("awrf, target of nan", lambda: awrf(ROW, a(0, NAN, 1), 20), r"target\[1\] is nan"),
    ("awrf, row of nan", lambda: awrf(a([0, NAN, 1]), TARGET, 20), r"memberships\[0, 1\] is nan"),
    ("awrf, short mask", lambda: awrf(ROW, TARGET, 20, known=np.array([], bool)), r"\(0,\), expected bool .* \(1,\)"),
    ("awrf, mask of numbers", lambda: awrf(ROW, TARGET, 20, known=a(1)), "known is float64"),  # type: ignore[arg-type]
    ("joint of no dimension", lambda: joint_memberships([]), r"\[\] documents cannot be joined"),
    ("joint with nan", lambda: joint_memberships([ROW, a([NAN])]), r"of dimension 1\[0, 0\] is nan"),
    ("target of no mass", lambda: blend(a(0, 0, 0), HALF), "no relevant document has a group record"),
    ("background of .9", lambda: blend(a(0, 1, 0), a(0.5, 0.4)), "background adds up to 0.9"),
    ("background with the unknown", lambda: blend(a(0, 1, 0), TARGET), "3 background shares for 2 known groups"),
    ("rows", lambda: JudgedRanking(np.ones(2, bool), 1, ROW, TARGET), "2 documents .* 1 in memberships"),
    ("a mask", lambda: JudgedRanking(np.ones(1, bool), 1, ROW, TARGET, np.ones(2, bool)), "1 documents .* 2 in known"),
]

BAD_SHARES: list[tuple[FloatArray, str]] = [
    (a(0.5, 0.4), "[pq] adds up to 0.9, expected 1"),
    (a(1.5, -0.5), r"[pq]\[1\] is -0.5"),
    (a(NAN, 1), r"[pq]\[0\] is nan"),
    (TARGET, "p and q have shapes"),
    (a(), r"[pq] has shape \(0,\)"),
    (a(0, 0), "[pq] adds up to 0, expected 1"),
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


@pytest.mark.parametrize(("shares", "message"), BAD_SHARES)
def test_no_divergence_of_what_is_no_distribution(shares: FloatArray, message: str) -> None:
    for pair in ((shares, HALF), (HALF, shares)):
        with pytest.raises(DataError, match=message):
            jensen_shannon(*pair)


SLACK = 1e-9


@st.composite
def partial(draw: st.DrawFn) -> tuple[FloatArray, FloatArray]:
    """Rows (n, 1 + g) that add up to at most 1, the rest in column 0 or nowhere, and a target of some known group."""
    n, groups = draw(st.integers(1, 8)), draw(st.integers(2, 5))
    rows = np.zeros((n, 1 + groups))
    rows[:, 1:] = draw(arrays(np.float64, (n, groups), elements=AMOUNTS))
    rows /= np.maximum(rows.sum(axis=1, keepdims=True), 1.0)
    rows *= draw(arrays(np.float64, (n, 1), elements=st.sampled_from([1.0, 0.5, 0.2])))
    if draw(st.booleans()):
        rows[:, 0] = np.maximum(0.0, 1.0 - rows[:, 1:].sum(axis=1))
    return rows, np.concatenate(([0.0], draw(distributions(groups))))


BOUNDS = {
    "AWRF@5": (1 - math.log(2), 1.0),
    "AWRF(unknown=ignore)@5": (1 - math.log(2), 1.0),
    "AWRF(log=2)@5": (0.0, 1.0),
    "AWRF(log=2, unknown=ignore)@5": (0.0, 1.0),
    "unlabeled@5": (0.0, 1.0),
    "unlabeled(of=type)@5": (0.0, 1.0),
    "nDCG@5*AWRF(unknown=ignore)@5": (0.0, 1.0),
}


@law
@given(partial(), st.sampled_from([None, 0.2]), st.integers(0, 2**8 - 1))
def test_no_measure_leaves_its_bounds(drawn: tuple[FloatArray, FloatArray], unknown: float | None, of: int) -> None:
    rows, target = drawn
    some = np.array([bool(of >> place & 1) for place in range(len(rows))])
    if unknown:
        target = np.concatenate(([unknown], (1 - unknown) * target[1:]))
    judged = JudgedRanking(some | (np.arange(len(rows)) == 0), len(rows), rows, target, some, some)
    for text, (low, high) in BOUNDS.items():
        assert low - SLACK <= parse_measure(text)(judged) <= high + SLACK, text
    if rows[:5, 1:].any():
        assert 0 <= ndkl(rows, target, 5) <= -math.log(1e-6 / 2)


@law
@given(partial())
def test_shares_are_shares(drawn: tuple[FloatArray, FloatArray]) -> None:
    rows, target = drawn
    exposure = group_exposure(rows, LOG2_MAX2(len(rows)))
    joint = group_exposure(joint_memberships([rows, rows]), LOG2_MAX2(len(rows)))
    for shares in (exposure, known_part(exposure), joint):
        assert shares.min() >= 0
        assert shares.sum() == pytest.approx(1) or not shares.any()
    if exposure.any():
        low, high = exposure_bounds(exposure)
        assert (low >= 0).all()
        assert (low <= high).all()
        assert (high <= 1 + SLACK).all()
        least, most = awrf_bounds(exposure, target[1:])
        assert 1 - math.log(2) - SLACK <= least <= most <= 1 + SLACK
    for name, largest in LARGEST.items():
        columns = GapColumns([GapTarget(target[1:], np.array([0.1]))], name)
        gap = columns.gaps(LOG2_MAX2(len(rows)) @ gap_rows((rows[:, 1:], rows[:, :1])))
        assert 0 <= gap <= 2 * largest + SLACK


def test_a_fifth_of_a_label_is_all_that_is_known() -> None:
    """One document, .2 of it labelled: the known part is that group's alone, whatever is written of the rest."""
    due = np.array([0.0, 0.5, 0.5])
    for row in ([0.8, 0.2, 0.0], [0.0, 0.2, 0.0]):
        shown = JudgedRanking(np.ones(1, np.bool_), 1, np.array([row]), due)
        assert NDKL(1)(shown) == pytest.approx(math.log(2))
        assert AWRF(1, unknown="ignore")(shown) == pytest.approx(0.784238, abs=1e-6)
        assert Unlabeled(1)(shown) == pytest.approx(row[0])
        assert Product(AWRF(1, unknown="ignore"), AWRF(1, unknown="ignore"))(shown) <= 1
