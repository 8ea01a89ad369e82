"""Attention over many rankings: what documents and groups are owed, and the ranking that pays within a tolerance.

In each ranking the attention a adds up to 1, and so does the relevance r of the candidates; a debt is the sum of r - a
over the rankings so far (Biega, Gummadi, Weikum: Equity of Attention, SIGIR 2018). A group is due the share of its
documents' relevance (Singh and Joachims, KDD 2018), here over the rankings, where theirs is in expectation.
"""

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import DataError, UsageError
from fairagent.measures.base import as_vector, check_nonnegative
from fairagent.types import FloatArray

STEPS = 40
"""Halvings of a price, at most."""
CLOSE = 1e-4
"""Prices that differ by so little of themselves are one."""


def attention(weights: FloatArray) -> FloatArray:
    """The share of the readers' attention that each rank gets, (n,), of the weights of ranks 1..n; they add up to 1.

    >>> attention(np.array([1.0, 0.5, 0.5])).tolist()
    [0.5, 0.25, 0.25]
    """
    return as_shares_of_one(weights, "weights")


def deserved(relevance: FloatArray) -> FloatArray:
    """The share of the attention that each candidate deserves, (m,): its share of the relevance; alike where that is 0.

    >>> deserved(np.array([1.0, 0.5, 0.5])).tolist(), deserved(np.zeros(2)).tolist()
    ([0.5, 0.25, 0.25], [0.5, 0.5])
    """
    return as_shares_of_one(relevance, "relevance")


def as_shares_of_one(values: FloatArray, name: str) -> FloatArray:
    """The values (n,), 0 or more, over their sum; alike where that is 0, none where there are none."""
    numbers = as_vector(values, name, finite=True)
    check_nonnegative(numbers, name)
    total = float(numbers.sum())
    return numbers / total if total > 0 else np.full(len(numbers), 1 / max(len(numbers), 1))


def quality(order: NDArray[np.intp] | list[int], relevance: FloatArray, weights: FloatArray) -> float:
    """DCG of the order over that of the best one, in [0, 1] (Biega et al. 2018); 1 where nothing is relevant.

    `order` (n,) are places in `relevance` (m,), `weights` (n,) those of the ranks.

    >>> round(quality([1, 0], np.array([1.0, 0.5]), np.array([1.0, 0.5])), 6)
    0.8
    """
    best = _best(relevance, weights)
    return float(weights @ relevance[order]) / best if best > 0 else 1.0


def pay_documents(debts: FloatArray, relevance: FloatArray, weights: FloatArray, tolerance: float) -> list[int]:
    """The ranking of n of m candidates after which the documents' debts are least, by their places, best first.

    `debts` (m,) are those before this request, in shares of one ranking's attention; `relevance` (m,) is 0 or more,
    `weights` (n,), n <= m, are those of the ranks. It minimizes sum_i |debts_i + r_i - a_i| among the rankings whose
    `quality` is 1 - `tolerance` or more: a linear assignment, with a price on relevance that is found by halving. EXACT
    where the bound does not bind; otherwise the bound holds, and the sum may exceed the least one. Ties go to the
    earlier candidate. Raises UsageError for a tolerance outside of 0 to 1.

    The second document was shown too little before:

    >>> case = np.array([-0.5, 0.5]), np.array([1.0, 0.9]), np.array([1.0, 0.5])
    >>> pay_documents(*case, tolerance=0.1), pay_documents(*case, tolerance=0.01)
    ([1, 0], [0, 1])
    """
    # Imported here, since it takes longer than all of a search that pays nothing.
    from scipy.optimize import linear_sum_assignment

    if not 0 <= tolerance <= 1:
        raise UsageError(f"the tolerance of relevance is from 0 to 1, not {tolerance}")
    if len(debts) != len(relevance) or len(weights) > len(relevance):
        raise DataError(f"{len(debts)} debts, {len(relevance)} candidates and {len(weights)} ranks do not fit")
    # The best ranking has the most relevant at the heaviest rank.
    placed = np.empty(len(weights), dtype=np.intp)
    placed[np.argsort(-weights, kind="stable")] = np.argsort(-relevance, kind="stable")[: len(weights)]
    best, least = list[int](placed.tolist()), (1 - tolerance) * _best(relevance, weights)
    if not len(weights) or tolerance == 0:
        return best
    owed = debts + deserved(relevance)
    costs = np.abs(owed[None, :] - attention(weights)[:, None]) - np.abs(owed)[None, :]
    # So little that it decides nothing but ties.
    costs = costs + 1e-12 * np.arange(len(owed))[None, :]
    gains = weights[:, None] * relevance[None, :]

    n = len(weights)

    def at(price: float) -> list[int]:
        values = costs - price * gains
        # A rank is filled from its n best candidates: the other ranks take n - 1 of these at most.
        near = np.unique(np.argpartition(values, n - 1, axis=1)[:, :n]) if n < len(owed) else np.arange(n)
        order: list[int] = near[linear_sum_assignment(values[:, near])[1]].tolist()
        return order

    def enough(order: list[int]) -> bool:
        return float(weights @ relevance[order]) >= least

    if enough(free := at(0.0)):
        return free
    found, low, high = best, 0.0, 1.0
    while high < 1e12 and not enough(order := at(high)):
        low, high = high, high * 4
    for _ in range(STEPS):
        price = (low + high) / 2
        if enough(order := at(price)):
            found, high = order, price
        else:
            low = price
        if high - low <= CLOSE * high:
            break
    return min((best, found), key=lambda one: float(costs[np.arange(len(one)), one].sum()))


def _best(relevance: FloatArray, weights: FloatArray) -> float:
    """The most that a ranking can gain."""
    return float(np.sort(weights)[::-1] @ np.sort(relevance)[::-1][: len(weights)])
