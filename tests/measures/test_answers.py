"""String utilities: ranges, degenerate answers, and names."""

from __future__ import annotations

import sys
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.errors import DataError, UsageError
from fairagent.measures.answers import (
    EMPTY,
    absolute_error,
    accuracy,
    attributed_disparity,
    attributed_exposure,
    exact_match,
    expected_attribution_rate,
    max_shapley,
    normalized_attributed_disparity,
    parse_utility,
    rouge_l,
    token_f1,
)
from fairagent.types import FloatArray

ALL = ("exact-match", "f1", "rouge-l", "absolute-error")


@pytest.mark.parametrize("name", ALL)
@given(prediction=st.text(max_size=30))
def test_every_answer_has_a_value_within_the_range(name: str, prediction: str) -> None:
    if name == "rouge-l":
        pytest.importorskip("rouge")
    utility = parse_utility(name)
    assert 0.0 <= utility(prediction, ["3"]) <= utility.upper


@pytest.mark.parametrize("prediction", ["", "..."])
def test_an_answer_without_words_is_worth_nothing(prediction: str) -> None:
    pytest.importorskip("rouge")
    assert rouge_l(prediction, "a court") == rouge_l(EMPTY, "a court") == 0.0
    assert rouge_l(prediction, "an <empty> court") > 0.0
    assert (exact_match(prediction, "x"), token_f1(prediction, "x"), accuracy(prediction, "x", ["x"])) == (0, 0, 0)
    assert absolute_error(prediction, "2") == 3.0


def test_a_rating_that_is_none_is_as_far_off_as_can_be_or_the_data_s_fault() -> None:
    for prediction in ("nan", "0", "7", "5 stars"):
        assert [absolute_error(prediction, gold) for gold in ("1", "2", "3", "5")] == [4.0, 3.0, 2.0, 4.0]
    for gold in ("nan", "0"):
        with pytest.raises(DataError, match="no number from 1 to 5"):
            absolute_error("3", gold)


def test_rouge_reads_answers_of_any_length() -> None:
    pytest.importorskip("rouge")
    limit = sys.getrecursionlimit()
    answer = " ".join(f"word{number}" for number in range(3000))
    assert rouge_l(f"{answer} court", "the court") == pytest.approx(2 / 3003, rel=1e-6)
    assert sys.getrecursionlimit() == limit


def test_the_best_of_several_expected_answers_counts() -> None:
    pytest.importorskip("rouge")
    assert parse_utility("f1")("the red court", ["judge", "court"]) == pytest.approx(2 / 3)
    assert parse_utility("absolute-error")("4", ["1", "5"]) == 1.0
    with pytest.raises(DataError, match="rouge-l: there is no expected answer"):
        parse_utility("rouge-l")("x", [])


def test_names() -> None:
    pytest.importorskip("rouge")
    assert [str(parse_utility(name)) for name in ALL] == list(ALL)
    assert [parse_utility(name).lower_is_better for name in ALL] == [False, False, False, True]
    assert [parse_utility(name).upper for name in ALL] == [1.0, 1.0, 1.0, 4.0]
    assert str(parse_utility("accuracy", labels=["a"])) == "accuracy"
    with pytest.raises(UsageError, match="needs the list of labels"):
        parse_utility("accuracy")
    with pytest.raises(UsageError, match="there are: exact-match, f1, rouge-l, absolute-error, accuracy"):
        parse_utility("bleu")


@st.composite
def samples(draw: st.DrawFn) -> tuple[FloatArray, FloatArray, int]:
    """Rankings (N, k), what is attributed (N, k), and the number of items."""
    n = draw(st.integers(1, 8))
    k, count = draw(st.integers(1, n)), draw(st.integers(1, 6))
    rankings = [draw(st.permutations(range(n)))[:k] for _ in range(count)]
    entailed = [[draw(st.sampled_from([0.0, 1.0])) for _ in range(k)] for _ in range(count)]
    return np.array(rankings), np.array(entailed), n


@given(samples())
def test_laws_of_attributed_exposure(sample: tuple[FloatArray, FloatArray, int]):
    rankings, entailed, n = sample
    exposure, k = attributed_exposure(rankings, entailed, n), rankings.shape[1]
    assert exposure.sum() == pytest.approx(k * expected_attribution_rate(entailed))
    for normalization in ("conditional", "unconditional"):
        assert -1e-9 <= normalized_attributed_disparity(exposure, k, normalization) <= 1 + 1e-9
    # Where everything is attributed the sum is k, so that the conditional bounds are those of expected exposure.
    whole = attributed_exposure(rankings, np.ones_like(entailed), n)
    rescaled = normalized_attributed_disparity(whole, k, "rescaled")
    assert rescaled == pytest.approx(normalized_attributed_disparity(whole, k), abs=1e-7)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: expected_attribution_rate([1, 0]), r"shape \(2,\), expected \(N, k\)"),
        (lambda: expected_attribution_rate([[1, 2]]), r"entailed\[0, 1\] is 2, expected a share"),
        (lambda: attributed_exposure([[0, 3]], [[1, 0]], 3), "indices 0 to 3, expected those of 3 items"),
        (lambda: attributed_exposure([[1, 1]], [[1, 0]], 3), "names an item twice"),
        (lambda: attributed_disparity([0.5, 1.5]), "is 1.5, expected a share"),
        (lambda: max_shapley([[0.5, 1.5]]), r"scores\[0, 1\]"),
        (lambda: max_shapley([0.5]), r"expected \(m, k\)"),
        (lambda: max_shapley([[]]), "expected"),
    ],
)
def test_what_is_refused(call, words: str):
    with pytest.raises(DataError, match=words):
        call()


SCORES = st.integers(1, 5).flatmap(
    lambda k: st.lists(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=k, max_size=k), min_size=1, max_size=3)
)


@given(SCORES)
def test_a_shapley_value_is_the_mean_over_all_orders_of_what_a_document_adds(scores: list[list[float]]) -> None:
    held = np.array(scores)
    added, orders = np.zeros(held.shape[1]), list(permutations(range(held.shape[1])))
    for order in orders:
        for place, document in enumerate(order):
            before = held[:, order[:place]].max(axis=1, initial=0.0)
            added[document] += np.maximum(held[:, document] - before, 0.0).mean()
    assert max_shapley(scores) == pytest.approx(added / len(orders))
