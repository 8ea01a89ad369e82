from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.errors import UsageError
from fairagent.measures import AWRF, NDCG, Discount, JudgedRanking, Measure, Product, parse_measure

from .laws import DISCOUNTS, law

FACTORS = st.one_of(
    st.builds(NDCG, st.integers(1, 10_000), DISCOUNTS),
    st.builds(
        AWRF, st.integers(1, 10_000), DISCOUNTS, st.sampled_from(["e", "2"]), st.sampled_from(["group", "ignore"])
    ),
)


def test_a_measure_prints_as_its_definition() -> None:
    measure = Product(NDCG(20), AWRF(500, Discount("geometric", (0.8,)), "2", "ignore"))
    assert str(measure) == "nDCG(discount=log2-max2)@20*AWRF(discount=geometric(0.8), log=2, unknown=ignore)@500"


@law
@given(st.one_of(FACTORS, st.builds(Product, FACTORS, FACTORS)))
def test_text_and_measure_say_the_same(measure: Measure) -> None:
    assert parse_measure(str(measure)) == measure


@pytest.mark.parametrize(
    ("text", "measure"),
    [
        ("nDCG@20", NDCG(20)),
        ("AWRF(unknown = ignore,log=2)@5", AWRF(5, log="2", unknown="ignore")),
        (" nDCG@20 * AWRF@10 ", Product(NDCG(20), AWRF(10))),
    ],
)
def test_options_may_be_left_out_and_come_in_any_order(text: str, measure: Measure) -> None:
    assert parse_measure(text) == measure


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *((text, rf"'{re.escape(text)}'.*forms are: nDCG\(.*AWRF\(.*product") for text in ("", "ndcg@20", "nDCG@0")),
        ("nDCG@1*AWRF@2*nDCG@3", r"forms are: nDCG\("),
        ("AWRF(base=2)@20", "no further option 'base=2'.*discount, log, unknown"),
        ("AWRF(log=2, log=e)@20", "no further option 'log=e'"),
        ("nDCG(discount=steep)@20", "'steep' is no rank discount; .*log2-plus1"),
        ("AWRF(log=10)@20", "log is '10', expected one of: e, 2"),
    ],
)
def test_a_text_that_is_no_measure_says_what_is_wrong_and_what_there_is(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_measure(text)


def test_a_product_multiplies_one_ranking_s_values() -> None:
    rows, target = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), np.array([0.0, 0.5, 0.5])
    judged = JudgedRanking(np.array([True, False]), 2, rows, target)
    assert Product(NDCG(20), AWRF(20))(judged) == pytest.approx(0.5)
    assert Product(NDCG(20), AWRF(1))(judged) == NDCG(20)(judged) * AWRF(1)(judged)
