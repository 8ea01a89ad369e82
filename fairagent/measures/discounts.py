"""Rank discounts: the share of a reader's attention that each rank gets.

A discount is a value, not a flag: `discount(n)` gives the weights (n,) of ranks 1..n, and `str(discount)`
is its definition, which `parse_discount` reads back. Ranks start at 1; the weight of rank 1 is 1 and none
is negative.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar

import numpy as np

from fairagent.errors import DataError, UsageError
from fairagent.types import FloatArray

FORMS = (
    "log2-max2, log2-plus1, uniform, geometric(patience) with 0 < patience <= 1, step(k) with k >= 1, "
    "ends(k, middle) with k >= 1 and 0 <= middle <= 1, given(1, w, ...) with a weight of 0 or more for each rank"
)


class Discount(ABC):
    """What all rank discounts share; equal definitions are equal values."""

    rises: ClassVar[bool] = False
    """Whether a rank may weigh more than one before it."""

    @abstractmethod
    def _at(self, ranks: FloatArray) -> FloatArray:
        """The weights of the given ranks (n,), which start at 1."""

    def __call__(self, n: int) -> FloatArray:
        """The weights of ranks 1..n, shape (n,); read-only, since all callers share one array.

        Raises DataError where `n` is negative.

        >>> Log2Plus1()(3).round(6).tolist()
        [1.0, 0.63093, 0.5]
        """
        return _weights(self, n)


@dataclass(frozen=True)
class Log2Max2(Discount):
    """1 / log2(max(rank, 2)): ranks 1 and 2 weigh the same (the TREC Fair Ranking track's, 2021 and 2022)."""

    def _at(self, ranks: FloatArray) -> FloatArray:
        return 1.0 / np.log2(np.maximum(ranks, 2.0))

    def __str__(self) -> str:
        return "log2-max2"


@dataclass(frozen=True)
class Log2Plus1(Discount):
    """1 / log2(rank + 1): the usual discount of nDCG (trec_eval)."""

    def _at(self, ranks: FloatArray) -> FloatArray:
        return 1.0 / np.log2(ranks + 1.0)

    def __str__(self) -> str:
        return "log2-plus1"


@dataclass(frozen=True)
class Uniform(Discount):
    """1 at every rank: the order within the cut-off does not matter."""

    def _at(self, ranks: FloatArray) -> FloatArray:
        return np.ones_like(ranks)

    def __str__(self) -> str:
        return "uniform"


@dataclass(frozen=True)
class Geometric(Discount):
    """patience^(rank - 1): a reader goes on with probability `patience` in (0, 1] after each (RBP)."""

    patience: float

    def __post_init__(self) -> None:
        if not 0.0 < self.patience <= 1.0:
            raise UsageError(f"geometric discount: patience {self.patience!r} is not in (0, 1]")

    def _at(self, ranks: FloatArray) -> FloatArray:
        return np.power(self.patience, ranks - 1.0)

    def __str__(self) -> str:
        return f"geometric({float(self.patience)!r})"


@dataclass(frozen=True)
class StepDiscount(Discount):
    """1 at ranks up to `k` (>= 1), 0 below: a machine user, who reads the first k and nothing else."""

    k: int

    def __post_init__(self) -> None:
        if self.k < 1:
            raise UsageError(f"step discount: k {self.k!r} is below 1")

    def _at(self, ranks: FloatArray) -> FloatArray:
        return (ranks <= self.k).astype(np.float64)

    def __str__(self) -> str:
        return f"step({self.k})"


@dataclass(frozen=True)
class Ends(Discount):
    """A model that reads a long context: 1 at its first and its last rank, `middle` (0 to 1) in between, 0 below `k`.

    The weight of a rank goes with the square of its distance from the middle, (k + 1) / 2. The shape is ours; that
    models use what stands at both ends of their context best is from Liu et al., Lost in the Middle, TACL 2024.
    It rises again, so there is no nDCG with it.
    """

    rises = True

    k: int
    middle: float = 0.5

    def __post_init__(self) -> None:
        if self.k < 1:
            raise UsageError(f"ends discount: k {self.k!r} is below 1")
        if not 0.0 <= self.middle <= 1.0:
            raise UsageError(f"ends discount: middle {self.middle!r} is not in [0, 1]")

    def _at(self, ranks: FloatArray) -> FloatArray:
        """Middle + (1 - middle) (2 rank - k - 1)^2 / (k - 1)^2 where rank <= k, else 0; for k = 1, 1."""
        outward = (2.0 * ranks - self.k - 1.0) / max(self.k - 1, 1)
        weights = self.middle + (1.0 - self.middle) * np.square(outward) if self.k > 1 else np.ones_like(ranks)
        return np.where(ranks <= self.k, weights, 0.0)

    def __str__(self) -> str:
        return f"ends({self.k}, {float(self.middle)!r})"


@dataclass(frozen=True)
class Given(Discount):
    """The `weights` of the first ranks, that of rank 1 being 1; 0 below: attention that was measured.

    `given_by` makes it of shares of attention. No nDCG where a rank weighs more than one before it.
    """

    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.weights or self.weights[0] != 1.0:
            raise UsageError(f"given discount: the weights {self.weights!r} do not begin with 1")
        if not all(0.0 <= weight < float("inf") for weight in self.weights):
            raise UsageError(f"given discount: {self.weights!r} holds a weight that is not a number of 0 or more")

    @property
    def rises(self) -> bool:  # type: ignore[override]
        """Whether a rank weighs more than one before it."""
        return any(one < after for one, after in pairwise(self.weights))

    def _at(self, ranks: FloatArray) -> FloatArray:
        places = ranks.astype(np.intp) - 1
        weights = np.array([*self.weights, 0.0])
        return weights[np.minimum(places, len(self.weights))]

    def __str__(self) -> str:
        return f"given({', '.join(repr(float(weight)) for weight in self.weights)})"


def given_by(attention: Sequence[float]) -> Given:
    """The discount of the attention (k,) that was measured at each rank; the first is not 0. Three digits.

    >>> str(given_by([0.4, 0.2, 0.1]))
    'given(1.0, 0.5, 0.25)'
    """
    if not len(attention) or not attention[0] > 0:
        raise DataError("there is no attention at rank 1, by which the others are measured")
    return Given(tuple(round(float(one / attention[0]), 3) for one in attention))


LOG2_MAX2 = Log2Max2()
"""The discount that measures use by default."""

_PLAIN: dict[str, Discount] = {str(discount): discount for discount in (LOG2_MAX2, Log2Plus1(), Uniform())}


def parse_discount(text: str) -> Discount:
    """The discount that `text` defines; the inverse of `str`.

    Raises UsageError, with the accepted forms, where it defines none.

    >>> parse_discount("geometric(0.8)")
    Geometric(patience=0.8)
    """
    definition = text.strip()
    if definition in _PLAIN:
        return _PLAIN[definition]
    match = re.fullmatch(r"(geometric|step|ends)\(([^(),]+)(?:,([^(),]+))?\)", definition)
    several = re.fullmatch(r"given\(([^()]+)\)", definition)
    with suppress(ValueError):  # not a number: the same advice as for an unknown name
        if several:
            return Given(tuple(map(float, several[1].split(","))))
        if match and match[1] == "ends":
            return Ends(int(match[2]), float(match[3])) if match[3] else Ends(int(match[2]))
        if match and not match[3]:
            return Geometric(float(match[2])) if match[1] == "geometric" else StepDiscount(int(match[2]))
    raise UsageError(f"{text!r} is no rank discount; the accepted forms are: {FORMS}")


@lru_cache(maxsize=64)
def _weights(discount: Discount, n: int) -> FloatArray:
    if n < 0:
        raise DataError(f"a discount of {n} ranks, expected 0 or more")
    weights = discount._at(np.arange(1, n + 1, dtype=np.float64))
    weights.flags.writeable = False
    return weights
