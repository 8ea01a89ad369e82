"""Which lists go to the re-ranker, and how several become one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import ranking

from fairagent.search.loop.fair_qr import select, union
from fairagent.types import Query, Ranking, Step


def step(ids: str, gap: float, accepted: bool = True) -> Step:
    return Step("test", Query("q"), ranking(ids.split()), (), gap, accepted=accepted)


STEPS = [step("a b", 0.5), step("b c", 0.3), step("d e", 0.4, accepted=False)]


@pytest.mark.parametrize(("policy", "expected"), [("best", "bc"), ("last", "de"), ("union", "abc")])
def test_the_lists_of_a_policy(policy: Any, expected: str) -> None:
    assert set(select(policy, STEPS).ids) == set(expected)
    assert select(policy, [step("", 1.0)]).ids == ()


def test_union_by_hand() -> None:
    # min-max: a 1, b 1/2, c 0 and c 1, d 0; over two lists a 1/2, c 1/2, b 1/4, d 0; a tie goes by id.
    found = union([ranking(["a", "b", "c"], [9, 7, 5]), ranking(["c", "d"], [2, 1])])
    assert found.ids == ("a", "c", "b", "d")
    assert found.scores.tolist() == [0.5, 0.5, 0.25, 0.0]


def test_union_of_lists_without_differences() -> None:
    assert union([ranking(["b", "a"], [3, 3])]).scores.tolist() == [1.0, 1.0]
    assert union([ranking(["a"], [3]), Ranking((), np.zeros(0))]).scores.tolist() == [0.5]
    assert union([Ranking((), np.zeros(0))]).ids == ()


ids = st.lists(st.sampled_from("abcdefghij"), unique=True, max_size=8)


@given(st.lists(ids, min_size=1, max_size=4))
def test_a_union_holds_every_document_once_in_order(lists: list[list[str]]) -> None:
    found = union([ranking(of_one) for of_one in lists])
    assert sorted(found.ids) == sorted({id for of_one in lists for id in of_one})
    assert all(0 <= score <= 1 + 1e-12 for score in found.scores.tolist())
    assert (np.diff(found.scores) <= 0).all()
    assert found.ids == union([ranking(of_one) for of_one in lists]).ids


@given(ids)
def test_the_union_of_one_list_is_that_list(of_one: list[str]) -> None:
    assert union([ranking(of_one)]).ids == tuple(of_one)
