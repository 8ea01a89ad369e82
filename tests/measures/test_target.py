from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.measures import blend, known_part
from fairagent.types import FloatArray

from .laws import distributions, law, masses

GENDER = np.array([0.495, 0.495, 0.01])


def test_the_track_s_worked_example() -> None:
    relevant = np.array([[0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    expected = [0.25, 0.310625, 0.435625, 0.00375]
    assert blend(relevant.mean(axis=0), GENDER) == pytest.approx(expected, abs=1e-12)


def test_a_topic_with_only_unknown_documents_gets_no_background() -> None:
    assert blend(np.array([3.0, 0.0, 0.0, 0.0]), GENDER).tolist() == [1.0, 0.0, 0.0, 0.0]


def test_without_a_background_the_target_is_the_relevant_share() -> None:
    assert blend(np.array([1.0, 1.0, 2.0])).tolist() == [0.25, 0.25, 0.5]


def test_a_target_keeps_a_zero_only_where_the_background_has_one() -> None:
    target = blend(np.array([0.0, 1.0, 0.0, 0.0]), np.array([0.5, 0.5, 0.0]))
    assert target.tolist() == [0.0, 0.75, 0.25, 0.0]


def test_a_background_that_is_off_by_rounding_is_normalized() -> None:
    target = blend(np.array([1.0, 1.0, 2.0, 0.0]), GENDER * (1 + 9e-7))
    assert target == pytest.approx(blend(np.array([1.0, 1.0, 2.0, 0.0]), GENDER), abs=1e-12)


@law
@given(masses(5), distributions(4), st.floats(0.001, 1000.0))
def test_the_unknown_share_is_kept_and_the_known_part_is_half_of_each(
    alignment: FloatArray, background: FloatArray, scale: float
) -> None:
    target = blend(alignment, background)
    assert target.sum() == pytest.approx(1.0)
    assert target[0] == pytest.approx(alignment[0] / alignment.sum())
    if alignment[1:].any():
        assert known_part(target) == pytest.approx((known_part(alignment) + background) / 2)
    assert blend(alignment * scale, background) == pytest.approx(target)
