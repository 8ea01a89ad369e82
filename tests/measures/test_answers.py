"""String utilities: ranges, degenerate answers, and names."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.errors import DataError, UsageError
from fairagent.measures.answers import EMPTY, absolute_error, accuracy, exact_match, parse_utility, rouge_l, token_f1

ALL = ("exact-match", "f1", "rouge-l", "absolute-error")


@pytest.mark.parametrize("name", ALL)
@given(prediction=st.text(max_size=30))
def test_every_answer_has_a_value_within_the_range(name: str, prediction: str) -> None:
    if name == "rouge-l":
        pytest.importorskip("rouge")
    utility = parse_utility(name)
    assert 0.0 <= utility(prediction, ["3"]) <= utility.upper


@given(st.lists(st.sampled_from(["judge", "the", "court", "Law."]), min_size=1, max_size=6).map(" ".join))
def test_the_expected_answer_itself_is_best(text: str) -> None:
    pytest.importorskip("rouge")
    assert exact_match(text, text) == 1.0
    assert rouge_l(text, text) == pytest.approx(1.0, abs=1e-7)


@pytest.mark.parametrize("prediction", ["", "..."])
def test_an_answer_without_words_is_worth_nothing(prediction: str) -> None:
    pytest.importorskip("rouge")
    assert rouge_l(prediction, "a court") == rouge_l(EMPTY, "a court") == 0.0
    assert rouge_l(prediction, "an <empty> court") > 0.0
    assert (exact_match(prediction, "x"), token_f1(prediction, "x"), accuracy(prediction, "x", ["x"])) == (0, 0, 0)
    assert absolute_error(prediction, "2") == 3.0


@pytest.mark.parametrize("prediction", ["nan", "0", "7", "5 stars"])
def test_what_is_no_number_of_the_scale_is_as_far_off_as_can_be(prediction: str) -> None:
    assert [absolute_error(prediction, gold) for gold in ("1", "2", "3", "5")] == [4.0, 3.0, 2.0, 4.0]


@pytest.mark.parametrize("gold", ["nan", "0"])
def test_an_expected_rating_that_is_none_is_the_data_s_fault(gold: str) -> None:
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
