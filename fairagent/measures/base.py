"""`Measure`: a function of a judged ranking whose `str` is its full definition; and products."""

from abc import ABC, abstractmethod
from dataclasses import Field, dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import DataError, UsageError
from fairagent.types import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class JudgedRanking:
    """One topic's ranking beside its judgments and one target: all that a measure looks at, as arrays.

    Rows are documents in rank order, rank 1 first. `relevant` (n,) says which are relevant, and
    `n_relevant` how many relevant documents the topic has in all. `memberships` (n, g) and `target` (g,)
    are over the same groups, column 0 `UNKNOWN`; None where only relevance is measured. `known` (n,) is
    False for documents without a group record; None means that all have one. `of_type` (n,) says which are of the
    dimension's type (people, for gender); None where nobody says so. `grades` (n,) are the judgments, nan for a
    document that is not judged, and `judgments` (j,) the grades of all documents that are judged for the topic; None
    where nobody needs them.
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


class Measure(ABC):
    """A number for a judged ranking; `str(measure)` defines it, and `parse_measure` reads that back.

    A measure is a frozen dataclass: its cut-off `n`, and options, each of which takes its value as a text. Those of
    fairagent are found by their files (`nDCG` in ndcg.py), those of other packages by the entry points
    `fairagent.measures`.
    """

    name: ClassVar[str]
    """What definitions begin with."""
    of_groups: ClassVar[bool] = False
    """Whether it looks at groups, so that it has a value a dimension; else it is of relevance alone."""
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
        return self._defined([one for one in self._options() if not self._implied(one)])

    @property
    def label(self) -> str:
        """Its definition without the options that have their default: what headers of tables show."""
        return self._defined([one for one in self._options() if getattr(self, one.name) != one.default])

    def _options(self) -> list[Field[Any]]:
        return [one for one in fields(self) if one.name != "n"]  # type: ignore[arg-type]

    def _implied(self, option: Field[Any]) -> bool:
        """Whether an option is never written where it has its default."""
        return "implied" in option.metadata and getattr(self, option.name) == option.default

    def _defined(self, options: list[Field[Any]]) -> str:
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

    A run's score is the mean of the topics' products, not the product of the means. The factors are no
    products.

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
