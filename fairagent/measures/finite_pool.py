"""The finite-pool test: would chance show a group so late, if the ranked documents stood in any order?

FA*IR (Zehlike et al., CIKM 2017, arXiv 1706.06368) tests each prefix against tosses of a coin, as if there were endless
candidates. A pool has K documents of the group among N: without replacement, a prefix of i ranks holds hypergeometric
many of them. The test of all prefixes together is exact, by dynamic programming over the ranks.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairagent.errors import DataError
from fairagent.measures.base import JudgedRanking, Measure, as_memberships, check_cutoff
from fairagent.types import FloatArray


def pool_test(of_group: ArrayLike, n: int) -> float:
    """The probability, in (0, 1], that a random order of the pool shows the group as late as this one, or later.

    `of_group` (N,) says of each ranked document, rank 1 first, whether it is of the group; all N are the pool, and the
    first `n` ranks are looked at. How late a group is shown is the smallest P(X_i <= shown in the first i) of all
    prefixes i <= n, where X_i is hypergeometric; the value is the share of all orders whose smallest is no larger. So
    it is no smaller at many prefixes than at one, and small values are unfair. 1 for a pool of one kind.
    Raises DataError for an empty pool, what is not bool, and n < 1.

    Two of four documents, both last: one of six orders.

    >>> round(pool_test([False, False, True, True], 4), 4)
    0.1667
    """
    check_cutoff(n)
    shown = np.asarray(of_group)
    if shown.ndim != 1 or not shown.size or shown.dtype != np.bool_:
        raise DataError(f"of_group is {shown.dtype} of shape {shown.shape}, expected bool of shape (N,), N >= 1")
    size, group, ranks = len(shown), int(shown.sum()), min(n, len(shown))
    counts = np.cumsum(shown)[:ranks]
    tails = _tails(size, group, ranks)
    smallest = tails[np.arange(ranks), counts].min()
    # The first count of each prefix that is not as unlikely as the smallest; what rounding leaves apart is one.
    table = (tails <= smallest * (1 + 1e-9)).sum(axis=1)
    return min(1.0, _fail(table, size, group))


def _tails(size: int, group: int, ranks: int) -> FloatArray:
    """P(X_i <= m) for i = 1..ranks in rows and m = 0..group in columns; infinite where m documents cannot be shown."""
    # Here and not above: who measures something else does not wait for scipy.
    from scipy.stats import hypergeom

    i, m = np.arange(1, ranks + 1)[:, None], np.arange(group + 1)[None, :]
    tails = hypergeom.cdf(m, size, group, i)
    return np.where((m <= i) & (group - m <= size - i), tails, np.where(m > i, np.inf, -np.inf))


def _fail(table: NDArray[np.intp], size: int, group: int) -> float:
    """The share of all orders in which some prefix i has fewer than table[i - 1] of the group.

    `mass[m]` is the share of those that have not failed by rank i and have shown m.
    """
    mass = np.zeros(group + 1)
    mass[0], failed = 1.0, 0.0
    shown = np.arange(group + 1)
    for i, least in enumerate(table.tolist()):
        chance = np.clip((group - shown) / (size - i), 0, 1)
        # Those that have shown all of the group but too few others cannot be; they have no mass.
        mass = mass * (1 - chance) + np.concatenate(([0.0], (mass * chance)[:-1]))
        failed += float(mass[:least].sum())
        mass[:least] = 0.0
    return failed


@dataclass(frozen=True)
class PoolTest(Measure):
    """`pool_test` at cut-off `n` (>= 1) of the known group that is shown latest, times how many groups there are.

    The first `n` documents are the pool, so it says whether their order is one that chance would give; for a
    deeper pool call `pool_test`. A document with shares in several groups is of the one that has more than half of it.

    >>> print(PoolTest(20))
    PoolTest@20
    """

    name: ClassVar[str] = "PoolTest"
    of_groups: ClassVar[bool] = True
    about: ClassVar[str] = "the probability that chance shows some group so late (Bonferroni); small is unfair"
    n: int

    def __post_init__(self) -> None:
        check_cutoff(self.n)

    def __call__(self, judged: JudgedRanking) -> float:
        """The value, 0 to 1; raises DataError without memberships and where no group has a ranked document."""
        rows = as_memberships(judged.groups_for(self)[0])[:, 1:] > 0.5
        groups = [column for column in rows.T if column.any()]
        if not groups:
            raise DataError("not defined: no group has a ranked document; leave the topic out")
        return min(1.0, len(groups) * min(pool_test(column, self.n) for column in groups))
