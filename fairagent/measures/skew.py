"""NDKL: how far the groups' shares of each prefix are from their targets, all ranks of a prefix alike.

Source: Geyik, Ambler, Kenthapadi: Fairness-Aware Ranking in Search & Recommendation Systems with Application to
LinkedIn Talent Search, KDD 2019 (arXiv 1905.01989), Definitions 4.1 to 4.4. There every candidate has one value of the
attribute, every value a share above 0, and what a logarithm of 0 means is not said: see below.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import DataError
from fairagent.measures.base import (
    JudgedRanking,
    Measure,
    as_distribution,
    as_memberships,
    check_cutoff,
    check_nonnegative,
)
from fairagent.measures.discounts import Log2Plus1
from fairagent.measures.divergence import SMOOTHING
from fairagent.types import FloatArray


def ndkl(memberships: FloatArray, target: FloatArray, n: int) -> float:
    """NDKL: the mean of KL(shares of ranks 1..i, target) over the prefixes i <= n, weighted by 1 / log2(i + 1).

    In nats; 0 is the target in every prefix. `memberships` (m, 1 + g) holds a row a document in rank order, `target`
    (1 + g,) the shares that add up to 1 (within 1e-6), both with column 0 `UNKNOWN`, which is left out of both sides;
    so are prefixes before the first label of the mean. A target of 0 counts as 1e-6, so that a document of such a
    group costs much, and not infinitely much.

    Raises DataError where no prefix has a label or the target no mass, for shapes that do not fit, negative, nan or
    infinite numbers, and n < 1.

    Shares of (1, 0) and (1/2, 1/2) where half each is due: (ln 2 + 0 / log2 3) / (1 + 1 / log2 3).

    >>> import numpy as np
    >>> rows, due = np.array([[0, 1.0, 0], [0, 0, 1.0]]), np.array([0, 0.5, 0.5])
    >>> round(ndkl(rows, due, n=2), 6)
    0.425001
    """
    check_cutoff(n)
    rows, due = as_memberships(memberships)[:n], as_distribution(target, "target")
    check_nonnegative(rows, "memberships")
    if due.size != rows.shape[1]:
        raise DataError(f"memberships have {rows.shape[1]} groups and target {due.size}, expected the same")
    rows, due = rows[:, 1:], due[1:]
    if not due.sum() > 0:
        raise DataError("the target has no mass on any known group; leave the topic out or use another target")
    mass, due = np.cumsum(rows, axis=0), due / due.sum()
    weights = Log2Plus1()(len(mass))
    some = mass.sum(axis=1) > 0
    if not some.any():
        raise DataError("NDKL is not defined: nothing that is ranked has a group that counts; leave the topic out")
    shown = mass[some] / mass[some].sum(axis=1, keepdims=True)
    due = np.maximum(due, SMOOTHING)
    divergences = (shown * np.log(np.where(shown > 0, shown, 1) / (due / due.sum()))).sum(axis=1)
    return max(0.0, float(weights[some] @ divergences / weights[some].sum()))


@dataclass(frozen=True)
class NDKL(Measure):
    """`ndkl` at cut-off `n` (>= 1) as a measure, in nats; lower is fairer.

    >>> print(NDKL(20))
    NDKL@20
    """

    name: ClassVar[str] = "NDKL"
    of_groups: ClassVar[bool] = True
    lower_is_better: ClassVar[bool] = True
    about: ClassVar[str] = "the divergence of the groups' shares of each prefix from the target; lower is fairer"
    n: int

    def __post_init__(self) -> None:
        check_cutoff(self.n)

    def __call__(self, judged: JudgedRanking) -> float:
        """The value; raises DataError as `ndkl` does, and without memberships and target."""
        memberships, target = judged.groups_for(self)
        rows = as_memberships(memberships)
        if judged.known is not None:  # a document without a group record is one without a label
            known: NDArray[np.bool_] = np.asarray(judged.known, dtype=np.bool_)
            rows = np.where(known[:, None], rows, np.eye(1, rows.shape[1]))
        return ndkl(rows, target, self.n)
