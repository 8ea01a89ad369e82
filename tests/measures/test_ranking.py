"""NDKL by hand, against its definition written out anew, and what is not defined."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import rel_entr

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
    Unlabeled,
    awrf,
    group_exposure,
    joint_memberships,
    known_part,
    ndcg,
    ndkl,
    parse_measure,
)
from fairagent.measures.ranking import graded_ndcg
from fairagent.types import FloatArray

from .laws import DISCOUNTS, distributions, law, rankings

TARGET = np.array([0.25, 0.310625, 0.435625, 0.00375])  # unknown, female, male, NB
RANKING = np.array([[0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])


def test_awrf_by_hand() -> None:
    known = np.array([True, False, True])
    assert awrf(RANKING, TARGET, 500, known=known) == pytest.approx(0.902422, abs=5e-7)
    nonsense = RANKING.copy()
    nonsense[1] = np.nan  # the row of such a document is not looked at
    assert awrf(nonsense, TARGET, 500, known=known) == awrf(RANKING, TARGET, 500, known=known)
    assert awrf(RANKING, TARGET, 2) == awrf(RANKING[:2], TARGET, 20) != awrf(RANKING, TARGET, 3)
    assert awrf(RANKING, TARGET, 2, known=known) == awrf(RANKING[:1], TARGET, 20)
    half = awrf(np.array([[0.0, 1.0, 0.0]]), np.array([0.0, 0.5, 0.5]), 20)
    assert half == pytest.approx(1 - (0.5 * math.log(4 / 3) + 0.25 * math.log(2 / 3) + 0.25 * math.log(2)))
    judged = JudgedRanking(np.zeros(3, dtype=bool), 4, RANKING, TARGET, np.array([True, False, True]))
    expected = awrf(RANKING, TARGET, 3, LOG2_PLUS1, "ignore", 2.0, judged.known)
    assert AWRF(3, LOG2_PLUS1, "2", "ignore")(judged) == expected


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


def test_ndcg_by_hand() -> None:
    relevant = np.array([True, False, True, False, False])
    assert ndcg(relevant, 10, 5, UNIFORM) == pytest.approx(2 / 5)
    assert ndcg(relevant, 4, 5, UNIFORM) == pytest.approx(2 / 4)
    assert ndcg(np.array([False, False, True]), 1, 2) == 0.0
    relevant = np.array([False, True, True, False, True])
    assert NDCG(4, LOG2_PLUS1)(JudgedRanking(relevant, 7)) == ndcg(relevant, 7, 4, LOG2_PLUS1)


@law
@given(st.integers(1, 40), st.integers(0, 20), st.integers(1, 60), DISCOUNTS)
def test_the_best_ranking_scores_1(n_relevant: int, others: int, n: int, discount: Discount) -> None:
    best = np.array([True] * n_relevant + [False] * others)
    assert ndcg(best, n_relevant, n, discount) == pytest.approx(1.0)


@law
@given(arrays(np.bool_, st.integers(2, 30)), st.data())
def test_a_relevant_document_that_moves_up_never_costs(relevant: np.ndarray, data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, len(relevant) - 1))
    better = relevant.copy()
    better[[rank - 1, rank]] = sorted(relevant[[rank - 1, rank]], reverse=True)
    n_relevant = len(relevant)
    assert ndcg(better, n_relevant, 20, LOG2_MAX2) >= ndcg(relevant, n_relevant, 20, LOG2_MAX2) - 1e-12


ROW = {"f": [0.0, 1.0, 0.0], "m": [0.0, 0.0, 1.0], "u": [1.0, 0.0, 0.0], "b": [0.0, 1.0, 1.0]}
"""Unknown, female, male; b is both."""


def rows(letters: str) -> FloatArray:
    return np.array([ROW[letter] for letter in letters]).reshape(len(letters), 3)


HALF = np.array([0.0, 0.5, 0.5])


def test_ndkl_by_hand() -> None:
    # m, m, f with 1/2 each: ln 2; ln 2; 1/3 ln 2/3 + 2/3 ln 4/3, weighted 1, 1 / log2 3, 1/2.
    second = 1 / math.log2(3)
    third = math.log(2 / 3) / 3 + 2 * math.log(4 / 3) / 3
    expected = (math.log(2) * (1 + second) + third / 2) / (1 + second + 1 / 2)
    assert ndkl(rows("mmf"), HALF, 20) == pytest.approx(expected, abs=1e-12)
    # The cut-off, and what is on target everywhere.
    assert ndkl(rows("mmf"), HALF, 1) == pytest.approx(math.log(2), abs=1e-12)
    assert ndkl(rows("bbb"), HALF, 3) == 0.0
    assert ndkl(rows("mm"), np.array([0, 0, 1.0]), 2) == pytest.approx(0, abs=2e-6)
    # u, m, f: the first prefix with a label is the second: (0, 1), then (1, 1) / 2, weighted as they stand.
    assert ndkl(rows("umf"), HALF, 3) == pytest.approx(math.log(2) * second / (second + 1 / 2), abs=1e-12)
    # Left out, the target's own unknown share does not matter.
    assert ndkl(rows("umf"), np.array([0.5, 0.25, 0.25]), 3) == ndkl(rows("umf"), HALF, 3)
    assert ndkl(rows("m"), np.array([0, 1.0, 0]), 1) == pytest.approx(math.log(1e6), abs=1e-4)


def judged(letters: str, target: FloatArray = HALF, **more: object) -> JudgedRanking:
    shown = rows(letters)
    return JudgedRanking(np.zeros(len(shown), dtype=bool), 0, shown, target, **more)  # type: ignore[arg-type]


def test_the_measure() -> None:
    assert NDKL(4)(judged("mmmf")) == ndkl(rows("mmmf"), HALF, 4)
    # A document without a record is one without a label.
    assert NDKL(3)(judged("mmf", known=np.array([True, False, True]))) == ndkl(rows("muf"), HALF, 3)
    assert (NDKL(4).lower_is_better, NDKL(4).needs_labels) == (True, True)
    assert parse_measure("NDKL@20") == NDKL(20) == parse_measure(str(NDKL(20)))
    assert (NDKL(20).of_groups, NDKL(20).of_relevance, NDKL(20).label) == (True, False, "NDKL@20")
    for text in ("NDKL(smoothing=1)@9", "NDKL"):
        with pytest.raises(UsageError):
            parse_measure(text)


@law
@given(rankings(), st.integers(1, 14))
def test_laws(ranking: tuple[FloatArray, FloatArray], n: int) -> None:
    memberships, target = ranking
    target = (target + 0.01) / (target + 0.01).sum()
    whole, due = np.hstack([np.zeros((len(memberships), 1)), memberships]), np.concatenate(([0.0], target))
    prefixes = [whole[:k, 1:].mean(axis=0) for k in range(1, min(n, len(whole)) + 1)]
    weights = np.array([1 / math.log2(k + 1) for k in range(1, len(prefixes) + 1)])
    plain = sum(w * rel_entr(p / p.sum(), target).sum() for w, p in zip(weights, prefixes, strict=True)) / weights.sum()
    assert ndkl(whole, due, n) == pytest.approx(plain, abs=1e-9)
    assert ndkl(np.tile(due, (5, 1)), due, n) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("shown", "target", "n", "match"),
    [
        (rows("m"), HALF, 0, "cut-off is 0"),
        (rows("m"), HALF[1:], 1, "memberships have 3 groups and target 2"),
        (rows("m"), HALF / 2, 1, r"adds up to 0\.5"),
        (rows("m"), np.array([1.0, 0, 0]), 1, "no mass on any known group"),
        (rows("uu"), HALF, 2, "nothing that is ranked has a group"),
        (rows(""), HALF, 2, "nothing that is ranked has a group"),
        (np.full((1, 3), np.nan), HALF, 1, r"memberships\[0, 0\] is nan"),
    ],
)
def test_bad_input(shown: FloatArray, target: FloatArray, n: int, match: str) -> None:
    with pytest.raises(DataError, match=match):
        ndkl(shown, target, n)


def test_the_exposure_of_what_has_no_label() -> None:
    """In the third place half a label."""
    memberships, total = np.array([[1.0, 0, 0], [0, 1.0, 0], [0.5, 0, 0.5], [0, 0, 1.0]]), 2 + 1 / math.log2(3) + 0.5
    plain = JudgedRanking(np.zeros(4, bool), 0, memberships, HALF)
    assert Unlabeled(4)(plain) == pytest.approx((1 + 0.5 / math.log2(3)) / total)
    assert (Unlabeled(2)(plain), Unlabeled(4)(judged(""))) == (0.5, 0)
    typed = replace(plain, of_type=np.array([False, True, True, True]))
    assert Unlabeled(4, of="type")(typed) == pytest.approx(0.5 / math.log2(3) / total)
    with pytest.raises(DataError, match="which documents are of the type"):
        Unlabeled(4, of="type")(plain)


@pytest.mark.parametrize("gain", ["linear", "exponential"])
def test_ndcg_with_grades_is_one_function(gain: str) -> None:
    grades = {"a": 3, "b": 1, "c": 0, "d": 2, "e": -1}
    ids = ["b", "x", "a", "e", "c"]
    found = np.array([grades.get(id, np.nan) for id in ids])
    judged = JudgedRanking(found > 0, 3, grades=found, judgments=np.array(list(grades.values()), dtype=float))
    for n in (1, 3, 10):
        measure = NDCG(n, LOG2_PLUS1, gain)  # type: ignore[arg-type]
        assert measure(judged) == graded_ndcg(ids, grades, n, gain)  # type: ignore[arg-type]
        assert parse_measure(str(measure)) == measure
    with pytest.raises(DataError, match="needs grades"):
        NDCG(5, LOG2_PLUS1, "linear")(JudgedRanking(found > 0, 3))
    worthless = JudgedRanking(found > 3, 1, grades=found, judgments=np.zeros(2))
    with pytest.raises(DataError, match="not defined"):
        NDCG(5, LOG2_PLUS1, "linear")(worthless)
    assert [graded_ndcg(["a", "b"], grades, 10) for grades in ({}, {"a": 0}, {"a": -1})] == [None] * 3
