"""Seeded random choices that are the same on every platform and Python version.

Of `random.Random` only `random()` promises the same numbers for a seed in every version; `choice`, `sample`
and `shuffle` do not, so the few choices needed here are made from it.
"""

import math
import random
from collections.abc import Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")


class SeededChoices:
    """Choices in a fixed order from one seed.

    >>> draw = SeededChoices(20221)
    >>> draw.number(1900, 1999), draw.one(["a", "b", "c"])
    (1960, 'c')
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def chance(self, share: float) -> bool:
        """True in `share` of all cases."""
        return self._random() < share

    def between(self, low: float, high: float) -> float:
        """A number in [low, high)."""
        return low + (high - low) * self._random()

    def number(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + int(self._random() * (high - low + 1))

    def one(self, choices: Sequence[T]) -> T:
        """One of `choices`, each as likely."""
        return choices[int(self._random() * len(choices))]

    def weighted(self, weights: Mapping[T, float]) -> T:
        """One key of `weights`, as likely as its weight (>= 0, not all 0)."""
        # Not sum(): Python 3.12 made it round floats otherwise than 3.11 does.
        point = self._random() * math.fsum(weights.values())
        for choice, weight in weights.items():
            point -= weight
            if point < 0:
                return choice
        return choice

    def some(self, choices: Sequence[T], n: int) -> list[T]:
        """`n` different ones of `choices`, in random order."""
        left = list(choices)
        return [left.pop(int(self._random() * len(left))) for _ in range(n)]
