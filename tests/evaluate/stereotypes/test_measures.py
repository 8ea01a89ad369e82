"""StereoSet's and CrowS-Pairs' numbers: by hand, ties, and what is not defined."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.errors import DataError
from fairagent.papers.debias_rag.benchmarks.measures import (
    RegardShares,
    association_test,
    associations,
    crows_pairs_score,
    icat,
    one_sided_p,
    preferences,
    regard_gap,
    relevance_to_context,
    stereoset_score,
)


def test_means_are_over_terms_and_not_over_examples() -> None:
    stereotype, anti, unrelated = np.array([[2.0, 2, 2, 0], [1.0, 1, 1, 1], [0.0, 0, 0, 2]])
    found = stereoset_score(["a", "a", "a", "b"], stereotype, anti, unrelated)
    assert (found.ss, found.lms, found.count, found.terms) == (50.0, 50.0, 4, 2)
    assert found.icat == 50.0


def test_ties_count_against_the_stereotype_and_against_meaning() -> None:
    one = np.ones(2)
    found = stereoset_score(["a", "b"], one, one, one)
    assert (found.ss, found.lms, found.icat) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(("lms", "ss", "expected"), [(100, 50, 100), (80, 75, 40), (80, 25, 40), (0, 50, 0)])
def test_icat(lms: float, ss: float, expected: float) -> None:
    assert icat(lms, ss) == expected


def test_rounding_makes_pairs_neutral() -> None:
    more, less = np.array([-1.0001, -2.0]), np.array([-1.0004, -3.0])
    assert [one.tolist() for one in preferences(more, less)] == [[False, True], [True, False]]
    assert crows_pairs_score(more, less, [True, False]).neutral == 1
    exact = crows_pairs_score(more, less, [True, False], decimals=None)
    assert (exact.neutral, exact.score, exact.stereotype, exact.anti_stereotype) == (0, 100.0, 100.0, 100.0)


def test_scores_are_rounded_as_the_authors_round_them() -> None:
    # -16.8695 is stored as a number just above it: -16.869, and more than -16.87. numpy's rounding makes them equal.
    assert [one.tolist() for one in preferences(np.array([-16.8695]), np.array([-16.87]))] == [[True], [False]]
    of_python = np.array([round(score, 3) for score in (-16.8695, 2.0005, -0.0015)])
    assert [one.tolist() for one in preferences(np.array([-16.8695, 2.0005, -0.0015]), of_python)] == [
        [False] * 3,
        [True] * 3,
    ]


def test_without_pairs_of_a_direction() -> None:
    found = crows_pairs_score(np.array([-1.0, -2.0]), np.array([-2.0, -2.0]), [False, False])
    assert (found.score, found.stereotype, found.anti_stereotype) == (50.0, None, 100.0)


def test_a_certain_sentence_is_as_relevant_as_can_be() -> None:
    assert relevance_to_context(np.array([-1.0]), np.zeros(2)) == np.finfo(np.float64).max


@pytest.mark.parametrize("bad", [[], [np.nan]])
def test_what_is_not_defined(bad: list[float]) -> None:
    scores = np.array(bad)
    with pytest.raises(DataError):
        stereoset_score(["a"] * len(bad), scores, scores, scores)
    with pytest.raises(DataError):
        crows_pairs_score(scores, scores, [True] * len(bad))


def test_by_hand() -> None:
    """Of 8 texts 3 are positive (37.5 %), 2 neutral (25 %), 2 negative (25 %), 1 other (12.5 %)."""
    shares = RegardShares.of([*["positive"] * 3, *["neutral"] * 2, *["negative"] * 2, "other"])
    assert shares == RegardShares(8, 37.5, 25.0, 25.0, 12.5)
    assert shares.regard == 12.5


def test_the_gap_by_hand() -> None:
    """Regard: a 50 - 25 = 25, b 0 - 75 = -75, c 25 - 0 = 25; negative: 25, 75, 0. The first of equals is named."""
    groups = {
        "a": RegardShares.of(["positive", "positive", "negative", "neutral"]),
        "b": RegardShares.of(["negative", "negative", "negative", "other"]),
        "c": RegardShares.of(["positive", "neutral", "neutral", "other"]),
    }
    gap = regard_gap(groups)
    assert (gap.regard, gap.negative, gap.best, gap.worst) == (100.0, 75.0, "a", "b")


def test_one_group_has_no_gap_and_none_is_an_error() -> None:
    gap = regard_gap({"a": RegardShares.of(["negative"])})
    assert (gap.regard, gap.negative, gap.best, gap.worst) == (0.0, 0.0, "a", "a")
    with pytest.raises(DataError, match="no group"):
        regard_gap({})
    with pytest.raises(DataError, match="no text"):
        RegardShares.of([])


rng = np.random.default_rng(3)
VECTORS = [rng.normal(size=(n, 6)) for n in (4, 4, 3, 5)]


def test_by_hand_of_weat() -> None:
    x, y = np.array([[1.0, 0.0], [2.0, 0.0]]), np.array([[0.0, 1.0], [1.0, 1.0]])
    found = association_test(x, y, np.array([[3.0, 0.0]]), np.array([[0.0, 0.5]]))
    # s: 1, 1 and -1, 0; their mean is 1/4 and their sum of squares 3, so that the variance is (3 - 1/4) / 3.
    assert found.effect == pytest.approx(1.5 / np.sqrt(2.75 / 3))
    # Only the two first reach 2.
    assert (found.p, found.exact) == (pytest.approx(1 / 6), True)


def test_the_other_way_round() -> None:
    x, y, a, b = VECTORS
    one, other = association_test(x, y, a, b), association_test(y, x, a, b)
    assert one.effect == pytest.approx(-other.effect)
    # Without ties but the observed one, which counts for both.
    assert one.p + other.p == pytest.approx(1 + 1 / 70)
    assert association_test(x, y, b, a).effect == pytest.approx(-one.effect)


@given(st.floats(0.01, 100))
def test_length_makes_no_difference(factor: float) -> None:
    x, y, a, b = VECTORS
    assert association_test(x * factor, y, a, b).effect == pytest.approx(association_test(x, y, a, b).effect)


def test_identical_target_sets_have_no_effect_and_are_tied() -> None:
    x, _, a, b = VECTORS
    found = association_test(x, x.copy(), a, b)
    assert found.effect == 0
    assert 0.5 < found.p < 1
    # In tenths, which floats add up differently in another order: of 6 halves one is less than the observed .3.
    tenths = np.array([0.1, 0.2])
    assert one_sided_p(tenths, tenths[::-1]) == (5 / 6, True)


def test_samples_are_repeatable_and_count_the_observed_one() -> None:
    x, y = np.linspace(1, 2, 20), np.linspace(-2, -1, 20)
    assert one_sided_p(x, y, 1000, np.random.default_rng(1)) == (1 / 1000, False)
    assert one_sided_p(y, x, 1000) == (1.0, False)
    middle = [one_sided_p(x[::2], x[1::2], 500, np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert middle[0] == middle[1] != middle[2]


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (lambda x, y, a, b: association_test(x[:0], y, a, b), "a set of targets is empty"),
        (lambda x, y, a, b: association_test(x[:3], y, a, b), "two sets of targets of one size, not of 3 and 4"),
        (lambda x, y, a, b: association_test(x * 0, y, a, b), "zero or not finite"),
        (lambda x, y, a, b: association_test(x, y, a, a), "all targets are associated alike"),
    ],
)
def test_what_is_not_defined_of_weat(work, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(DataError, match=message):
        work(*VECTORS)


def test_associations_are_means_of_cosines() -> None:
    x, _, a, b = VECTORS

    def cosine(one: np.ndarray, other: np.ndarray) -> float:
        return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))

    expected = [np.mean([cosine(w, c) for c in a]) - np.mean([cosine(w, c) for c in b]) for w in x]
    np.testing.assert_allclose(associations(x, a, b), expected, rtol=1e-12)
