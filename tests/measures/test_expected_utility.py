from __future__ import annotations

import math

import pytest

from fairagent.errors import DataError
from fairagent.measures import expected_utility, normalized_expected_utility


def test_by_hand() -> None:
    assert expected_utility([0.0, 0.5, 1.0, 0.5]) == 0.5
    assert normalized_expected_utility(0.2, 0.8) == 0.25
    # Of absolute errors: 1.5 on average, .5 at best, 4 at worst.
    assert normalized_expected_utility(1.5, 0.5, worst=4.0) == pytest.approx(2.5 / 3.5)


@pytest.mark.parametrize(
    ("utilities", "message"), [([], "shape"), ([[1.0]], "shape"), ([1.0, math.nan], r"utilities\[1\] is nan")]
)
def test_utilities_that_have_no_mean(utilities: list[float], message: str) -> None:
    with pytest.raises(DataError, match=message):
        expected_utility(utilities)


def test_where_nothing_was_ever_worth_anything() -> None:
    assert normalized_expected_utility(0.0, 0.0) == 1.0
    assert normalized_expected_utility(4.0, 4.0, worst=4.0) == 1.0


@pytest.mark.parametrize(("expected", "highest", "worst"), [(0.5, 0.4, None), (math.nan, 1.0, None), (5.0, 1.0, 4.0)])
def test_bad_input(expected: float, highest: float, worst: float | None) -> None:
    with pytest.raises(DataError):
        normalized_expected_utility(expected, highest, worst)
