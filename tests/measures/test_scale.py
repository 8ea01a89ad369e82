"""Scores on a common scale: of a list, of one without a difference, and of what differs by rounding alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.measures import min_max


def test_min_max() -> None:
    assert min_max(np.array([5.0, 3.0, 1.0])).tolist() == [1.0, 0.5, 0.0]
    assert min_max(np.array([2.0, 2.0])).tolist() == [1.0, 1.0]
    assert min_max(np.array([7.0])).tolist() == [1.0]
    assert min_max(np.array([])).tolist() == []


@pytest.mark.parametrize(("difference", "expected"), [(1e-13, [0.0, 0.0]), (1e-11, [0.0, 1.0])])
def test_a_difference_may_be_called_rounding(difference: float, expected: list[float]) -> None:
    scores = np.array([0.5, 0.5 + difference])
    assert min_max(scores, flat=0.0, within=1e-12).tolist() == expected
    assert min_max(scores).tolist() == [0.0, 1.0]


@given(st.lists(st.floats(-1e100, 1e100), min_size=1, max_size=10))
def test_the_order_stays_and_the_ends_are_0_and_1(scores: list[float]) -> None:
    found = min_max(np.array(scores))
    assert ((found >= 0) & (found <= 1)).all()
    assert (np.diff(found[np.argsort(scores)]) >= 0).all()
    assert found.max() == 1
    if len(set(scores)) > 1:
        assert found.min() == 0
