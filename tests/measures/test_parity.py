"""The exposure ratio by hand, and as parity and equity by what its target is."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fairagent.errors import DataError
from fairagent.measures import ExposureRatio, JudgedRanking, exposure_ratio, parse_measure

ROWS = np.array([[0, 1.0, 0], [0, 0, 1.0], [0, 0, 1.0], [1.0, 0, 0]])
"""Unknown, female, male: f m m and one without a label. Attention 1, 1, 1 / log2 3, 1 / 2."""


def judged(target: list[float]) -> JudgedRanking:
    return JudgedRanking(np.ones(4, dtype=bool), 4, ROWS, np.array(target))


def test_parity_where_the_target_is_the_groups_share_of_documents() -> None:
    """One document of three is f: per document it gets 1, the two m (1 + 1 / log2 3) / 2 each."""
    each = (1 + 1 / math.log2(3)) / 2
    assert ExposureRatio(20)(judged([0, 1 / 3, 2 / 3])) == pytest.approx(each, abs=1e-12)
    # Cut at 2, where both have 1: the two m share it.
    assert ExposureRatio(2)(judged([0, 1 / 3, 2 / 3])) == pytest.approx(0.5, abs=1e-12)


def test_equity_where_the_target_is_the_groups_share_of_relevance() -> None:
    """Half of what is relevant is f, whatever the number of documents: 1 against 1 + 1 / log2 3."""
    assert ExposureRatio(20)(judged([0, 0.5, 0.5])) == pytest.approx(1 / (1 + 1 / math.log2(3)), abs=1e-12)
    # What the target gives the unknown does not count, and neither does a group without a target.
    assert ExposureRatio(20)(judged([0.4, 0.3, 0.3])) == ExposureRatio(20)(judged([0, 0.5, 0.5]))


def test_a_group_that_is_not_shown_and_a_list_without_labels_are_0() -> None:
    assert ExposureRatio(1)(judged([0, 0.5, 0.5])) == 0.0
    none = JudgedRanking(np.ones(1, dtype=bool), 1, np.array([[1.0, 0, 0]]), np.array([0, 0.5, 0.5]))
    assert ExposureRatio(1)(none) == 0.0


def test_three_groups_and_one_without_a_target() -> None:
    shares, target = np.array([0.5, 0.3, 0.1, 0.1]), np.array([0.5, 0.25, 0.25, 0.0])
    assert exposure_ratio(shares, target) == pytest.approx(0.4 / 1.2)


@pytest.mark.parametrize(
    ("shares", "target"),
    [
        ([1.0], [1.0]),
        ([0.5, 0.5], [1.0, 0.0]),
        ([0.0, 0.0], [0.5, 0.5]),
        ([1.0, -1.0], [0.5, 0.5]),
        ([1.0], [0.5, 0.5]),
    ],
    ids=["one group", "one target", "no exposure", "negative", "shapes"],
)
def test_what_is_not_defined(shares: list[float], target: list[float]) -> None:
    with pytest.raises(DataError):
        exposure_ratio(np.array(shares), np.array(target))


def test_its_text() -> None:
    assert parse_measure("ExposureRatio@20") == ExposureRatio(20)
    assert str(parse_measure("ExposureRatio(discount=uniform)@5")) == "ExposureRatio(discount=uniform)@5"
