"""Contexts: orders are permutations."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairagent.papers.utility.section import arranged

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
