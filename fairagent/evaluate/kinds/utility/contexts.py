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


def orders(items: Sequence[Item]) -> list[list[Item]]:
    """The items in every order that differs from those before, in that of `Order`.

    >>> orders([1, 2])
    [[1, 2], [2, 1]]
    """
    every: tuple[Order, ...] = ("rank", "reversed", "ends", "middle")
    found: list[list[Item]] = []
    for order in every:
        if (one := arranged(items, order)) not in found:
            found.append(one)
    return found


def starts(n: int, k: int, step: int = 1, first: int = 1, last: int = 0) -> list[int]:
    """The ranks (from 0) at which windows of `k` among `n` documents begin: 0, step, 2 step ..., those that fit.

    Of these the `first` so many and the `last`, each once. None where there are fewer than `k` documents.

    >>> starts(8, 3, step=2, first=2, last=1), starts(8, 9)
    ([0, 2, 4], [])
    """
    fitting = list(range(0, n - k + 1, step))
    kept = {*fitting[:first], *(fitting[-last:] if last else ())}
    return sorted(kept)


def windows(items: Sequence[Item], k: int, step: int = 1, first: int = 1, last: int = 0) -> list[list[Item]]:
    """The windows of `k` items that `starts` tells.

    >>> windows("abcd", 2, step=2, first=2)
    [['a', 'b'], ['c', 'd']]
    """
    return [list(items[start : start + k]) for start in starts(len(items), k, step, first, last)]


def _around(items: Sequence[Item]) -> list[Item]:
    """The first in the middle, the others one by one before and behind it."""
    return [*items[1::2][::-1], *items[:1], *items[2::2]]
