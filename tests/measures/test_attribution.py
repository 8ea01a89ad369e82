"""Attribution measures: worked by hand, then their laws, then what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.errors import DataError
from fairagent.measures.answers import (
    Normalization,
    attributed_disparity,
    attributed_exposure,
    disparity_bounds,
    expected_attribution_rate,
    normalized_attributed_disparity,
)
from fairagent.types import FloatArray

# Two answers to contexts of two of three items: the first rests on item 0, the second on both of its items.
RANKINGS, ENTAILED = [[0, 1], [0, 2]], [[1, 0], [1, 1]]


@st.composite
def samples(draw: st.DrawFn) -> tuple[FloatArray, FloatArray, int]:
    """Rankings (N, k), what is attributed (N, k), and the number of items."""
    n = draw(st.integers(1, 8))
    k, count = draw(st.integers(1, n)), draw(st.integers(1, 6))
    rankings = [draw(st.permutations(range(n)))[:k] for _ in range(count)]
    entailed = [[draw(st.sampled_from([0.0, 1.0])) for _ in range(k)] for _ in range(count)]
    return np.array(rankings), np.array(entailed), n


def test_by_hand():
    exposure = attributed_exposure(RANKINGS, ENTAILED, 3)
    assert exposure.tolist() == [1.0, 0.0, 0.5]
    assert expected_attribution_rate(ENTAILED) == 0.75
    assert attributed_disparity(exposure) == 1.25
    # A = 1.5: evenly .5 each, 3 * .25; at worst one whole item and half of another, 1 + .25.
    assert disparity_bounds(exposure, 2) == (0.75, 1.25)
    assert normalized_attributed_disparity(exposure, 2) == 1.0
    assert disparity_bounds(exposure, 2, "unconditional") == (0.0, 2.0)
    assert normalized_attributed_disparity(exposure, 2, "unconditional") == 0.625
    # Scaled to the sum 2: 4/3, 0, 2/3, whose squares add up to 20/9; EE-D goes from 4/3 to 2.
    assert disparity_bounds(exposure, 2, "rescaled") == (pytest.approx(4 / 3), 2.0)
    assert normalized_attributed_disparity(exposure, 2, "rescaled") == pytest.approx((20 / 9 - 4 / 3) / (2 - 4 / 3))


@given(samples())
def test_the_rate_is_the_mean_exposure_of_a_place(sample: tuple[FloatArray, FloatArray, int]):
    rankings, entailed, n = sample
    exposure = attributed_exposure(rankings, entailed, n)
    assert exposure.sum() == pytest.approx(rankings.shape[1] * expected_attribution_rate(entailed))
    assert exposure.min() >= 0.0
    assert exposure.max() <= 1.0


@given(samples())
def test_conditional_and_unconditional_values_stay_between_0_and_1(sample: tuple[FloatArray, FloatArray, int]):
    rankings, entailed, n = sample
    exposure = attributed_exposure(rankings, entailed, n)
    for normalization in ("conditional", "unconditional"):
        value = normalized_attributed_disparity(exposure, rankings.shape[1], normalization)
        assert -1e-9 <= value <= 1 + 1e-9


@given(samples())
def test_with_everything_attributed_rescaling_changes_nothing(sample: tuple[FloatArray, FloatArray, int]):
    rankings, entailed, n = sample
    exposure, k = attributed_exposure(rankings, np.ones_like(entailed), n), rankings.shape[1]
    # The sum is k, so that the conditional bounds are those of expected exposure as well.
    rescaled = normalized_attributed_disparity(exposure, k, "rescaled")
    assert rescaled == pytest.approx(normalized_attributed_disparity(exposure, k), abs=1e-7)


@pytest.mark.parametrize("given", ["conditional", "unconditional", "rescaled"])
def test_nothing_attributed_is_0(given: Normalization):
    assert normalized_attributed_disparity(np.zeros(4), 2, given) == 0.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: expected_attribution_rate([1, 0]), r"shape \(2,\), expected \(N, k\)"),
        (lambda: expected_attribution_rate([[1, 2]]), r"entailed\[0, 1\] is 2, expected a share"),
        (lambda: attributed_exposure([[0, 3]], [[1, 0]], 3), "indices 0 to 3, expected those of 3 items"),
        (lambda: attributed_exposure([[1, 1]], [[1, 0]], 3), "names an item twice"),
        (lambda: attributed_disparity([0.5, 1.5]), "is 1.5, expected a share"),
    ],
)
def test_what_is_refused(call, words: str):
    with pytest.raises(DataError, match=words):
        call()
