from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fairagent.measures.trec_fair.pages import find

from ..laws import law


@law
@given(st.sets(st.integers(0, 2**40)) | st.sets(st.integers(0, 300)), st.lists(st.integers(0, 2**41)))
def test_every_number_is_found_and_no_other(numbers: set[int], others: list[int]) -> None:
    ordered = sorted(numbers)
    wanted = [*ordered, *others, *(number + 1 for number in ordered)]
    expected = [ordered.index(number) if number in numbers else -1 for number in wanted]
    assert find(np.array(ordered, np.int64), np.array(wanted, np.int64)).tolist() == expected
