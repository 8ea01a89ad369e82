"""First-token chances, as servers tell them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from fairagent.llm.openai import chances_of

TOLD = {"A": 0.5, "B": 0.25, "The": 0.2}


def place(token: str, **told: float) -> dict[str, Any]:
    return {"token": token, "logprob": -1.0, "top_logprobs": [one(text, chance) for text, chance in told.items()]}


def one(token: str, chance: float) -> dict[str, Any]:
    return {"token": token, "logprob": math.log(chance)}


def chances(*places: dict[str, Any], letters: str = "AB") -> dict[str, float]:
    return {letter: round(chance, 6) for letter, chance in chances_of({"content": list(places)}, letters)}


@pytest.mark.parametrize(
    "before", [[], [" "], ["{", '"order', '":', ' "'], ["<think>", "A", " or B?", "</think>", "\n"]]
)
def test_the_answer_begins_with_its_first_letter(before: list[str]) -> None:
    places = [place(token, A=0.01, B=0.99) for token in before]
    assert chances(*places, place("A", **TOLD), place("B", A=0.9, B=0.1)) == {"A": 0.5, "B": 0.25}


def test_a_token_counts_for_the_letter_that_it_begins_with() -> None:
    told = {"A": 0.2, " A": 0.1, "AB": 0.2, '"B': 0.25, "BAC": 0.05, "Bear": 0.1}
    assert chances(place("AB", **told), letters="AB") == {"A": 0.5, "B": 0.25}
    assert chances(place("AB", **told, C=0.1), letters="ABC") == {"A": 0.5, "B": 0.3, "C": 0.1}


def test_none_are_told_where_a_letter_is_missing_or_the_answer_is_prose() -> None:
    assert chances(place("A", A=0.9)) == {}
    assert chances(place("The", **TOLD), place("A", **TOLD)) == {}
    assert chances(place("{", **TOLD), place("A", **TOLD)) == {}


@pytest.mark.parametrize("logprobs", [None, {}, {"content": None}, {"content": [{"token": 3}]}, "none", []])
def test_what_a_server_sends_in_their_place_is_nothing(logprobs: object) -> None:
    assert chances_of(logprobs, "AB") == ()
