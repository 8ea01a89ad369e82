"""What measures are made of: judged rankings, `Measure`, products, rank discounts, and checks of arguments.

Checks raise a DataError that names the place, so that no result is ever nan.
"""

import hashlib
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import Field, dataclass, fields
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairagent.errors import DataError, UsageError
from fairagent.types import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class JudgedRanking:
    """One topic's ranking with its judgments and one target, as arrays; a row is a document, rank 1 first.

    `relevant` (n,) says which are relevant, `n_relevant` how many relevant documents the topic has. `memberships` (n,
    g) and `target` (g,) have column 0 `UNKNOWN`; `known` (n,) is False for documents without a group record, `of_type`
    (n,) True for those of the dimension's type. `grades` (n,) are the judgments, nan for an unjudged document,
    `judgments` (j,) all grades of the topic. None: not needed, of `known` that all have a record.
    """

    relevant: NDArray[np.bool_]
    n_relevant: int
    memberships: FloatArray | None = None
    target: FloatArray | None = None
    known: NDArray[np.bool_] | None = None
    of_type: NDArray[np.bool_] | None = None
    grades: FloatArray | None = None
    judgments: FloatArray | None = None

    def __post_init__(self) -> None:
        for name in ("memberships", "known", "of_type", "grades"):
            rows = getattr(self, name)
            if rows is not None and len(rows) != len(self.relevant):
                raise DataError(f"{len(self.relevant)} documents in relevant but {len(rows)} in {name}")

    def groups_for(self, measure: object) -> tuple[FloatArray, FloatArray]:
        """Memberships and target; DataError, naming the measure, where one of them is missing."""
        if self.memberships is None or self.target is None:
            raise DataError(f"{measure} needs memberships and a target, and the judged ranking has none")
        return self.memberships, self.target


class Measure(ABC):
    """A number for a judged ranking; `str(measure)` defines it, and `parse_measure` reads that back.

    A measure is a frozen dataclass: its cut-off `n`, and options, each of which takes its value as a text.
    """

    name: ClassVar[str]
    """What definitions begin with."""
    of_groups: ClassVar[bool] = False
    """Whether it looks at groups, so that it has a value per dimension; else it is of relevance alone."""
    needs_labels: ClassVar[bool] = True
    """Of one that looks at groups: whether it leaves out what has no label, so that a target needs labels."""
    needs_types: ClassVar[bool] = False
    """Of one that looks at groups: whether it needs to know which documents are of the dimension's type."""
    lower_is_better: ClassVar[bool] = False
    neutral: ClassVar[bool] = False
    """Whether it only describes a ranking, so that neither a higher nor a lower value is better."""
    about: ClassVar[str] = ""
    """What it is, in a few words, where its name does not tell."""
    n: int | None
    """How many ranks it looks at; None: all."""

    def __str__(self) -> str:
        # An option that is implied is never written where it has its default.
        return self._defined(lambda option: "implied" not in option.metadata or self._is_set(option))

    @property
    def label(self) -> str:
        """Its definition without the options that have their default: what headers of tables show."""
        return self._defined(self._is_set)

    def _is_set(self, option: Field[Any]) -> bool:
        return bool(getattr(self, option.name) != option.default)

    def _defined(self, shown: Callable[[Field[Any]], bool]) -> str:
        options = [one for one in fields(self) if one.name != "n" and shown(one)]  # type: ignore[arg-type]
        written = ", ".join(f"{one.name}={getattr(self, one.name)}" for one in options)
        return f"{self.name}{written and f'({written})'}@{self.n}"

    @property
    def of_relevance(self) -> bool:
        """Whether it looks at relevance, so that it needs judgments."""
        return not self.of_groups

    @abstractmethod
    def __call__(self, judged: JudgedRanking) -> float:
        """The value; raises DataError where it is not defined."""
        ...


@dataclass(frozen=True)
class Product(Measure):
    """left * right of one judged ranking, such as nDCG * AWRF; the factors are no products.

    A run's score is the mean of the topics' products, not the product of the means.
    """

    left: Measure
    right: Measure

    def __post_init__(self) -> None:
        if isinstance(self.left, Product) or isinstance(self.right, Product):
            raise UsageError("a product has two factors, and neither can be a product itself")

    @property
    def n(self) -> int | None:  # type: ignore[override] # noqa: D102
        return None if self.left.n is None or self.right.n is None else max(self.left.n, self.right.n)

    @property
    def of_groups(self) -> bool:  # type: ignore[override]
        """Whether one of both looks at groups."""
        return self.left.of_groups or self.right.of_groups

    @property
    def of_relevance(self) -> bool:
        """Whether one of both looks at relevance."""
        return self.left.of_relevance or self.right.of_relevance

    @property
    def needs_labels(self) -> bool:  # type: ignore[override]
        """Whether one that looks at groups needs labels."""
        return any(one.of_groups and one.needs_labels for one in (self.left, self.right))

    @property
    def needs_types(self) -> bool:  # type: ignore[override]
        """Whether one of both needs to know which documents are of the type."""
        return self.left.needs_types or self.right.needs_types

    def __call__(self, judged: JudgedRanking) -> float:
        """The product of both values; raises DataError where one of them is not defined."""
        return self.left(judged) * self.right(judged)

    def __str__(self) -> str:
        return f"{self.left}*{self.right}"

    @property
    def label(self) -> str:  # noqa: D102
        return f"{self.left.label}*{self.right.label}"


TOLERANCE = 1e-6
"""How far from 1 the shares of a distribution may add up."""


def as_memberships(values: ArrayLike) -> FloatArray:
    """`values` as floats of shape (n, g), g >= 1 (n may be 0)."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or not array.shape[1]:
        raise DataError(f"memberships have shape {array.shape}, expected (n, g): a row a document, a column a group")
    return array


def as_vector(values: ArrayLike, name: str, finite: bool = False) -> FloatArray:
    """`values` as floats of shape (g,), g >= 1."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not array.size:
        raise DataError(f"{name} has shape {array.shape}, expected (g,): one number a group")
    if finite:
        _check(np.isfinite(array), array, name, "a finite number")
    return array


def as_distribution(values: ArrayLike, name: str) -> FloatArray:
    """`values` (g,) divided by their sum, which has to be 1 within TOLERANCE."""
    shares = as_vector(values, name)
    check_nonnegative(shares, name)
    total = float(shares.sum())
    if abs(total - 1.0) > TOLERANCE:
        raise DataError(f"{name} adds up to {total:.9g}, expected 1; divide it by its sum if that is what is meant")
    return shares / total


def check_nonnegative(values: FloatArray, name: str) -> None:
    """No value may be negative, nan or infinite."""
    _check((values >= 0.0) & (values < math.inf), values, name, "a finite number of 0 or more")


def _check(fit: NDArray[np.bool_], values: FloatArray, name: str, expected: str) -> None:
    """Raise DataError, naming the first place, where a value does not fit."""
    if not fit.all():
        place = tuple(np.argwhere(~fit)[0].tolist())
        raise DataError(f"{name}{list(place)} is {values[place]:g}, expected {expected}")


def check_cutoff(n: int) -> None:
    """The cut-off has to be a rank."""
    if n < 1:
        raise DataError(f"the cut-off is {n}, expected a rank: 1 or more")


def check_choice(what: str, value: str, choices: Sequence[str]) -> None:
    """Raise UsageError where an option has none of its values."""
    if value not in choices:
        raise UsageError(f"{what} is {value!r}, expected one of: {', '.join(choices)}")


def as_rankings(values: ArrayLike, n: int) -> NDArray[np.int64]:
    """`values` as sampled rankings (N, k) of distinct item indices 0 .. n - 1."""
    array = np.asarray(values)
    if array.ndim != 2 or array.dtype.kind not in "iu":
        raise DataError(f"rankings have shape {array.shape} and type {array.dtype}, expected (N, k) item indices")
    if array.size and not (array.min() >= 0 and array.max() < n):
        raise DataError(f"rankings hold indices {array.min()} to {array.max()}, expected those of {n} items, 0 first")
    ordered = np.sort(array, axis=1)
    if (ordered[:, 1:] == ordered[:, :-1]).any():
        raise DataError("a ranking names an item twice")
    return array.astype(np.int64)


def check_shares(values: FloatArray, name: str) -> None:
    """Every value has to be a share in [0, 1], up to rounding."""
    _check((values >= 0.0) & (values <= 1.0 + 1e-9), values, name, "a share in [0, 1]")


def as_shares(values: ArrayLike, name: str) -> FloatArray:
    """`values` as floats of shape (n,), n >= 1, each in [0, 1]."""
    shares = as_vector(values, name)
    check_shares(shares, name)
    return shares


def as_shown(k: int, n: int) -> int:
    """How many of `n` items a ranking cut at `k` >= 1 shows, min(k, n)."""
    if k < 1:
        raise DataError(f"k = {k} items are shown, expected 1 or more")
    return min(k, n)


def seeded(seed: int, *names: str) -> np.random.Generator:
    """Random numbers that depend on `seed` and `names` alone."""
    digest = hashlib.sha256("\n".join(names).encode("utf-8", "surrogatepass")).digest()
    return np.random.default_rng([seed, int.from_bytes(digest[:16])])


FORMS = (
    "log2-max2, log2-plus1, uniform, geometric(patience) with 0 < patience <= 1, step(k) with k >= 1, "
    "given(1, w, ...) with a weight of 0 or more for each rank"
)
_AT: dict[str, Callable[[FloatArray, tuple[float, ...]], FloatArray]] = {
    # The TREC Fair Ranking track's, 2021 and 2022: ranks 1 and 2 weigh the same.
    "log2-max2": lambda ranks, _: 1.0 / np.log2(np.maximum(ranks, 2.0)),
    # The usual discount of nDCG (trec_eval).
    "log2-plus1": lambda ranks, _: 1.0 / np.log2(ranks + 1.0),
    # The order within the cut-off does not matter.
    "uniform": lambda ranks, _: np.ones_like(ranks),
    # A reader goes on with this probability after each rank (RBP).
    "geometric": lambda ranks, numbers: np.power(numbers[0], ranks - 1.0),
    # A machine user, who reads the first k and nothing else.
    "step": lambda ranks, numbers: (ranks <= numbers[0]).astype(np.float64),
    # Attention that was measured; ranks behind it have none.
    "given": lambda ranks, numbers: np.append(numbers, 0.0)[np.minimum(ranks.astype(np.intp) - 1, len(numbers))],
}


@dataclass(frozen=True)
class Discount:
    """The share of a reader's attention that each rank gets; `str(discount)` is its definition.

    Ranks start at 1; the weight of rank 1 is 1 and none is negative. `numbers` are those of the definition: the
    patience, k, or the weights. Equal definitions are equal values. Raises UsageError for other numbers (`FORMS`).
    """

    form: str
    numbers: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.form == "geometric" and not 0.0 < self.numbers[0] <= 1.0:
            raise UsageError(f"geometric discount: patience {self.numbers[0]!r} is not in (0, 1]")
        if self.form == "step" and self.numbers[0] < 1:
            raise UsageError(f"step discount: k {self.numbers[0]!r} is below 1")
        if self.form == "given" and not (
            self.numbers[:1] == (1.0,) and all(0 <= one < math.inf for one in self.numbers)
        ):
            raise UsageError(f"given discount: the weights {self.numbers!r} do not begin with 1, or are not 0 or more")

    @property
    def rises(self) -> bool:
        """Whether a rank weighs more than one before it."""
        return any(one < after for one, after in pairwise(self.numbers))

    def __call__(self, n: int) -> FloatArray:
        """The weights of ranks 1..n, shape (n,), read-only; DataError where `n` is negative.

        >>> LOG2_PLUS1(3).round(6).tolist()
        [1.0, 0.63093, 0.5]
        """
        return _weights(self, n)

    def __str__(self) -> str:
        numbers = ", ".join(str(one) if self.form == "step" else repr(float(one)) for one in self.numbers)
        return f"{self.form}{numbers and f'({numbers})'}"


LOG2_MAX2 = Discount("log2-max2")
"""1 / log2(max(rank, 2)), the discount that measures use by default."""
LOG2_PLUS1 = Discount("log2-plus1")
UNIFORM = Discount("uniform")


def given_by(attention: Sequence[float]) -> Discount:
    """The discount of the attention (k,) measured at each rank, over that of the first, which is not 0; three digits.

    >>> str(given_by([0.4, 0.2, 0.1]))
    'given(1.0, 0.5, 0.25)'
    """
    if not len(attention) or not attention[0] > 0:
        raise DataError("there is no attention at rank 1, by which the others are measured")
    return Discount("given", tuple(round(float(one / attention[0]), 3) for one in attention))


def parse_discount(text: str) -> Discount:
    """The discount that `text` defines; UsageError, with the accepted forms, where it defines none.

    >>> parse_discount("geometric(0.8)")
    Discount(form='geometric', numbers=(0.8,))
    """
    definition = text.strip()
    if definition in ("log2-max2", "log2-plus1", "uniform"):
        return Discount(definition)
    if match := re.fullmatch(r"(geometric|step|given)\(([^()]+)\)", definition):
        with suppress(ValueError):  # not a number: the same advice as for an unknown name
            numbers = tuple(map(int if match[1] == "step" else float, match[2].split(",")))
            if match[1] == "given" or len(numbers) == 1:
                return Discount(match[1], numbers)
    raise UsageError(f"{text!r} is no rank discount; the accepted forms are: {FORMS}")


@lru_cache(maxsize=64)
def _weights(discount: Discount, n: int) -> FloatArray:
    if n < 0:
        raise DataError(f"a discount of {n} ranks, expected 0 or more")
    weights = _AT[discount.form](np.arange(1, n + 1, dtype=np.float64), discount.numbers)
    weights.flags.writeable = False
    return weights
