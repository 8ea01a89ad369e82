from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.errors import DataError, UsageError
from fairagent.measures import (
    LOG2_MAX2,
    NDCG,
    Discount,
    Geometric,
    Given,
    Log2Max2,
    Log2Plus1,
    StepDiscount,
    Uniform,
    parse_discount,
)
from fairagent.measures.base import given_by

from .laws import BROWSING, DISCOUNTS, law


@pytest.mark.parametrize(
    ("discount", "text", "weights"),
    [
        (Log2Max2(), "log2-max2", [1.0, 1.0, 0.630930, 0.5, 0.430677]),
        (Log2Plus1(), "log2-plus1", [1.0, 0.630930, 0.5, 0.430677, 0.386853]),
        (Uniform(), "uniform", [1.0, 1.0, 1.0, 1.0, 1.0]),
        (Geometric(0.5), "geometric(0.5)", [1.0, 0.5, 0.25, 0.125, 0.0625]),
        (Geometric(1), "geometric(1.0)", [1.0, 1.0, 1.0, 1.0, 1.0]),
        (StepDiscount(2), "step(2)", [1.0, 1.0, 0.0, 0.0, 0.0]),
        (Given((1.0, 0.5, 0.75)), "given(1.0, 0.5, 0.75)", [1.0, 0.5, 0.75, 0.0, 0.0]),
    ],
)
def test_the_weights_and_the_text(discount: Discount, text: str, weights: list[float]) -> None:
    assert discount(5) == pytest.approx(weights, abs=5e-7)
    assert str(discount) == text
    assert parse_discount(text) == discount


@pytest.mark.parametrize(
    ("n", "total"),
    [(5, 3.561606), (10, 5.254495), (20, 7.812598), (50, 13.721441), (500, 71.445300), (1000, 123.991204)],
)
def test_the_sums_that_the_track_prints(n: int, total: float) -> None:
    assert LOG2_MAX2(n).sum() == pytest.approx(total, abs=5e-7)


def test_the_weights_are_made_once_and_cannot_be_spoiled() -> None:
    assert LOG2_MAX2(20) is Log2Max2()(20)
    with pytest.raises(ValueError, match="read-only"):
        LOG2_MAX2(20)[0] = 2.0


@law
@given(DISCOUNTS, st.integers(1, 200))
def test_attention_starts_at_1_never_grows_and_does_not_depend_on_the_depth(discount: Discount, n: int) -> None:
    weights = discount(n)
    assert weights.shape == (n,)
    assert weights[0] == 1.0
    assert (np.diff(weights) <= 0.0).all()
    assert (weights >= 0.0).all()
    assert np.array_equal(weights, discount(n + 10)[:n])


@law
@given(BROWSING)
def test_text_and_value_say_the_same(discount: Discount) -> None:
    assert parse_discount(str(discount)) == discount
    assert parse_discount(f"  {discount} ") == discount


@pytest.mark.parametrize("text", ["", "Log2-max2", "geometric()", "step(2.5)"])
def test_a_text_that_is_no_discount_names_the_forms(text: str) -> None:
    with pytest.raises(UsageError, match=r"log2-max2, log2-plus1, uniform, geometric.*step") as caught:
        parse_discount(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("text", ["geometric(0)", "geometric(nan)", "step(0)"])
def test_a_parameter_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"patience .* is not in \(0, 1\]|k 0 is below 1"):
        parse_discount(text)


def test_measured_attention_is_a_discount() -> None:
    assert given_by([0.4, 0.1, 0.2]) == Given((1.0, 0.25, 0.5))
    assert given_by([0.4, 0.1, 0.2]).rises
    assert not given_by([0.4, 0.2, 0.1]).rises
    with pytest.raises(UsageError, match="rise again"):
        NDCG(5, given_by([0.4, 0.1, 0.2]))
    assert NDCG(5, given_by([0.4, 0.2, 0.1])).discount(3).tolist() == [1.0, 0.5, 0.25]


@pytest.mark.parametrize("attention", [[], [0.0, 1.0]])
def test_no_attention_at_the_first_rank_measures_nothing(attention: list[float]) -> None:
    with pytest.raises(DataError, match="rank 1"):
        given_by(attention)


@pytest.mark.parametrize("text", ["given(0.5, 1)", "given(1, -1)", "given(1, nan)"])
def test_weights_that_are_none(text: str) -> None:
    with pytest.raises(UsageError):
        parse_discount(text)
