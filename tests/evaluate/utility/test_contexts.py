"""Contexts: orders are permutations, windows lie where they should, draws are drawn evenly."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fairagent.evaluate.utility.contexts import arranged, by_grade, drawn, orders, starts, windows

LISTS = st.lists(st.integers(), unique=True, max_size=8)


@given(LISTS, st.sampled_from(["rank", "reversed", "ends", "middle"]))
def test_an_order_is_a_permutation(items: list[int], order: str) -> None:
    assert sorted(arranged(items, order)) == sorted(items)  # type: ignore[arg-type]


@given(LISTS)
def test_where_the_best_stands(items: list[int]) -> None:
    if items:
        ends, middle = arranged(items, "ends"), arranged(items, "middle")
        assert items[0] in (ends[0], ends[-1])
        assert middle[len(items) // 2] == items[0]
        assert arranged(items, "reversed") == items[::-1]


@given(LISTS)
def test_no_order_comes_twice(items: list[int]) -> None:
    found = orders(items)
    assert len(set(map(tuple, found))) == len(found)
    assert found[0] == items


@given(st.integers(0, 12), st.integers(1, 6), st.integers(1, 4), st.integers(0, 4), st.integers(0, 4))
def test_windows_fit(n: int, k: int, step: int, first: int, last: int) -> None:
    found = starts(n, k, step, first, last)
    assert all(start % step == 0 and start + k <= n for start in found)
    assert len(found) == len(set(found)) <= first + last
    assert found == sorted(found)
    assert (found == []) == (n < k or first + last == 0)
    assert all(len(window) == k for window in windows(range(n), k, step, first, last))


def test_fewer_than_k_give_no_window() -> None:
    assert windows("abc", 4) == []


def test_draws_are_even() -> None:
    rng = np.random.default_rng(1)
    found = Counter(tuple(drawn(["a", "b", "c", "d"], rng)[:2]) for _ in range(6000))
    assert len(found) == 12
    # 500 each, +- 4.5 standard deviations.
    assert all(400 < count < 600 for count in found.values())


def test_fewer_than_k_are_all() -> None:
    assert sorted(drawn(["a", "b"], np.random.default_rng(0))[:5]) == ["a", "b"]
    assert drawn([], np.random.default_rng(0)) == []


def test_by_grade_keeps_the_order_of_the_judgments_within_a_grade() -> None:
    grades = {"a": 1, "b": 3, "c": 1, "d": 0, "e": 2, "f": 0}
    assert by_grade(grades) == ["b", "e", "a", "c", "d", "f"]
    assert by_grade(grades, worst_first=True) == ["d", "f", "a", "c", "e", "b"]
