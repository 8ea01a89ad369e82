"""Which documents an answer is given, and in which order: pure functions on ranked lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeVar

Item = TypeVar("Item")

Order = Literal["rank", "reversed", "ends", "middle"]
"""The best first; the best last; the best two at the ends; the best in the middle."""


def arranged(items: Sequence[Item], order: Order) -> list[Item]:
    """The items, best first, in `order`.

    >>> arranged(["a", "b", "c", "d", "e"], "ends"), arranged(["a", "b", "c", "d", "e"], "middle")
    (['b', 'd', 'e', 'c', 'a'], ['d', 'b', 'a', 'c', 'e'])
    """
    if order == "rank":
        return list(items)
    if order == "reversed":
        return list(items)[::-1]
    return _around(items[::-1] if order == "ends" else items)


def _around(items: Sequence[Item]) -> list[Item]:
    """The first in the middle, the others one by one before and behind it."""
    return [*items[1::2][::-1], *items[:1], *items[2::2]]
