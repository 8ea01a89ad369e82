"""StereoSet's and CrowS-Pairs' numbers: by hand, ties, and what is not defined."""

from __future__ import annotations

import numpy as np
import pytest

from fairagent.errors import DataError
from fairagent.papers.debias_rag.benchmarks.measures import (
    crows_pairs_score,
    icat,
    preferences,
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
