"""Parity and equity: whether the documents of each group get the same attention each, or each for what it is worth.

Source: Singh, Joachims: Fairness of Exposure in Rankings, KDD 2018 (arXiv 1802.07281), sections 4.1 (demographic
parity) and 4.2 (disparate treatment), there for two groups; here the smallest value over the largest of all groups.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fairagent.errors import DataError
from fairagent.measures.base import JudgedRanking, Measure, as_memberships, check_cutoff, check_nonnegative
from fairagent.measures.discounts import LOG2_MAX2, Discount
from fairagent.types import FloatArray


def group_attention(memberships: FloatArray, n: int, discount: Discount = LOG2_MAX2) -> FloatArray:
    """The attention of the first `n` ranks that each known group gets, (g,).

    `memberships` (m, 1 + g) holds a row a ranked document, rank 1 first, column 0 `UNKNOWN`, which is left out.

    >>> import numpy as np
    >>> group_attention(np.array([[0, 1.0, 0], [0, 0, 1.0], [0, 1.0, 0]]), 2).tolist()
    [1.0, 1.0]
    """
    check_cutoff(n)
    rows = as_memberships(memberships)
    check_nonnegative(rows, "memberships")
    weights = np.zeros(len(rows))
    weights[:n] = discount(min(n, len(rows)))
    return np.asarray(weights @ rows[:, 1:])


def parity(memberships: FloatArray, n: int, discount: Discount = LOG2_MAX2) -> float:
    """The mean attention of a document of the group that has least of it, over that of the group that has most: 0 to 1.

    Means are over all ranked documents of a group, those below rank `n` too, which get nothing: so it says nothing of
    documents that were not retrieved. Raises DataError where fewer than two groups have a ranked document.

    Ranks 1 to 3 get 1, 1 and 1 / log2 3: (1 + .6309) / 2 for the first group, 1 for the other.

    >>> import numpy as np
    >>> round(parity(np.array([[0, 1.0, 0], [0, 0, 1.0], [0, 1.0, 0]]), 3), 4)
    0.8155
    """
    sizes = as_memberships(memberships)[:, 1:].sum(axis=0)
    return _least_of_most(group_attention(memberships, n, discount), sizes, "ranked documents")


def equity(memberships: FloatArray, merit: FloatArray, n: int, discount: Discount = LOG2_MAX2) -> float:
    """The attention per merit of the group that has least of it, over that of the group that has most: 0 to 1.

    `merit` (m,) is what each ranked document is worth, 0 or more: its judgment. Raises DataError where fewer than two
    groups have a ranked document of any merit, and as `parity`.

    Both first documents are relevant, and get the same: the third, which is not, takes nothing from the ratio but what
    its rank is worth.

    >>> import numpy as np
    >>> rows = np.array([[0, 1.0, 0], [0, 0, 1.0], [0, 0, 1.0]])
    >>> round(equity(rows, np.array([1.0, 1.0, 0.0]), 3), 4)
    0.6131
    """
    rows, worth = as_memberships(memberships), np.asarray(merit, dtype=np.float64)
    if worth.shape != (len(rows),):
        raise DataError(f"merit has the shape {worth.shape}, expected ({len(rows)},): a number a ranked document")
    check_nonnegative(worth, "merit")
    return _least_of_most(group_attention(rows, n, discount), worth @ rows[:, 1:], "relevant ranked documents")


def _least_of_most(attention: FloatArray, due: FloatArray, of: str) -> float:
    some = due > 0
    if some.sum() < 2:
        raise DataError(f"not defined: fewer than two groups have {of}; leave the topic out")
    ratios = attention[some] / due[some]
    if not ratios.max() > 0:
        raise DataError("not defined: no group gets any attention; leave the topic out")
    return float(ratios.min() / ratios.max())


@dataclass(frozen=True)
class Parity(Measure):
    """`parity` at cut-off `n` (>= 1) as a measure: the documents of each group get the same attention each.

    >>> print(Parity(20))
    Parity(discount=log2-max2)@20
    """

    name: ClassVar[str] = "Parity"
    of_groups: ClassVar[bool] = True
    about: ClassVar[str] = "a document's mean attention, the group with the least over that with the most; 1 is equal"
    n: int
    discount: Discount = LOG2_MAX2

    def __post_init__(self) -> None:
        check_cutoff(self.n)

    def __call__(self, judged: JudgedRanking) -> float:
        """The value; raises DataError as `parity` does, and without memberships."""
        return parity(judged.groups_for(self)[0], self.n, self.discount)


@dataclass(frozen=True)
class Equity(Measure):
    """`equity` at cut-off `n` (>= 1) as a measure: each group's attention is in proportion to its relevance.

    >>> print(Equity(20))
    Equity(discount=log2-max2)@20
    """

    name: ClassVar[str] = "Equity"
    of_groups: ClassVar[bool] = True
    about: ClassVar[str] = "attention per relevant document, the group with the least over that with the most"
    n: int
    discount: Discount = LOG2_MAX2

    def __post_init__(self) -> None:
        check_cutoff(self.n)

    @property
    def of_relevance(self) -> bool:
        """It needs judgments."""
        return True

    def __call__(self, judged: JudgedRanking) -> float:
        """The value; raises DataError as `equity` does, and without memberships."""
        return equity(judged.groups_for(self)[0], judged.relevant.astype(np.float64), self.n, self.discount)
