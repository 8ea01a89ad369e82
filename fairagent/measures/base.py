"""`Measure`: a function of a judged ranking whose `str` is its full definition; products; and checks of arguments.

Checks raise a DataError that names the place, so that no result is ever nan. What the loop calls at every step
(`group_exposure`, `known_part`, the divergences) looks at minima and sums, a microsecond each, and comes here for the
place only when one of them is off; all else is checked number by number at once.
"""

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import Field, dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairagent.errors import DataError, UsageError
from fairagent.types import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class JudgedRanking:
    """One topic's ranking with its judgments and one target: all that a measure looks at, as arrays.

    Rows are documents in rank order, rank 1 first. `relevant` (n,) says which are relevant, and `n_relevant` how many
    relevant documents the topic has in all. `memberships` (n, g) and `target` (g,) are over the same groups, column 0
    `UNKNOWN`; None where only relevance is measured. `known` (n,) is False for documents without a group record (None:
    all have one). `of_type` (n,) says which are of the dimension's type (people, for gender); None: not known. `grades`
    (n,) are the judgments, nan for an unjudged document, and `judgments` (j,) the grades of all documents that are
    judged for the topic; None where no measure needs them.
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

    A measure is a frozen dataclass: its cut-off `n`, and options, each of which takes its value as a text. Those of
    fairagent are named in `parse.OWN`, those of other packages by the entry points `fairagent.measures`.
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
    """left * right of one judged ranking, such as nDCG * AWRF, the score of TREC Fair Ranking's Task 1.

    A run's score is the mean of the topics' products, not the product of the means. The factors are no products.

    >>> from fairagent.measures import AWRF, NDCG
    >>> print(Product(NDCG(20), AWRF(20)))
    nDCG(discount=log2-max2)@20*AWRF(discount=log2-max2, log=e, unknown=group)@20
    """

    left: Measure
    right: Measure

    def __post_init__(self) -> None:
        if isinstance(self.left, Product) or isinstance(self.right, Product):
            raise UsageError("a product has two factors, and neither can be a product itself")

    @property
    def n(self) -> int | None:  # type: ignore[override]
        """The larger of both cut-offs."""
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
    def label(self) -> str:
        """The labels of both."""
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


def check_same_length(values: FloatArray, others: FloatArray, names: str) -> None:
    """Two vectors have to have one number a group each."""
    if values.shape != others.shape:
        raise DataError(f"{names} have shapes {values.shape} and {others.shape}, expected the same groups in both")


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
    """Random numbers that depend on `seed` and `names` alone: not on what else is drawn, or in which order."""
    digest = hashlib.sha256("\n".join(names).encode("utf-8", "surrogatepass")).digest()
    return np.random.default_rng([seed, int.from_bytes(digest[:16])])
