from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.measures.trec_fair.pages import Lookup, distinct

from ..laws import law


@law
@given(st.sets(st.integers(0, 2**40)) | st.sets(st.integers(0, 300)), st.lists(st.integers(0, 2**41)))
def test_every_number_is_found_and_no_other(numbers: set[int], others: list[int]) -> None:
    ordered = sorted(numbers)
    wanted = [*ordered, *others, *(number + 1 for number in ordered)]
    expected = [ordered.index(number) if number in numbers else -1 for number in wanted]
    assert Lookup(np.array(ordered, np.int64)).find(np.array(wanted, np.int64)).tolist() == expected


@pytest.mark.parametrize("crowd", [20, 2000])
def test_numbers_that_crowd_together_are_found_too(crowd: int) -> None:
    numbers = np.append(np.arange(crowd), 2**50)
    wanted = np.array([0, crowd - 1, crowd, 2**50 - 1, 2**50, 2**50 + 1])
    assert Lookup(numbers).find(wanted).tolist() == [0, crowd - 1, -1, -1, crowd, -1]


@law
@given(st.lists(st.integers(0, 20)))
def test_distinct_numbers_rise(numbers: list[int]) -> None:
    assert distinct(np.array(numbers, np.int64)).tolist() == sorted(set(numbers))
