"""Contexts: orders are permutations, windows lie where they should."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairagent.evaluate.kinds.utility.contexts import arranged, orders, starts, windows

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
