"""Attention over many rankings: what documents and groups are owed, and the ranking that pays within a tolerance.

One ranking cannot give two documents of equal worth the same attention; many can (Biega, Gummadi, Weikum: Equity of
Attention, SIGIR 2018). In each ranking the attention a adds up to 1, and so does the relevance r of the candidates; a
debt is the sum of r - a over the rankings so far. `pay_documents` lowers the debts of documents as the paper's online
program does (its section 4: the least sum of |debts| with a bound on DCG), `pay_groups` those of groups, whose due is
in proportion to the relevance of their documents (Singh and Joachims: Fairness of Exposure in Rankings, KDD 2018, the
constraint of disparate treatment), here over the rankings, where theirs is in expectation.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import DataError, UsageError
from fairagent.measures.base import as_memberships, as_vector, check_nonnegative
from fairagent.types import FloatArray

STEPS = 40
"""Halvings of a price, at most."""
CLOSE = 1e-4
"""Prices that differ by so little of themselves are one."""
PRICES = 48
"""How many prices `pay_groups` tries."""
GREEDY = 12
PAID = 0.02
"""Debts of all groups together, in attention of one request, that need no further search."""
ROUNDING = 1e-9


def attention(weights: FloatArray) -> FloatArray:
    """The share of the readers' attention that each rank gets, (n,), of the weights of ranks 1..n; they add up to 1.

    >>> attention(np.array([1.0, 0.5, 0.5])).tolist()
    [0.5, 0.25, 0.25]
    """
    return as_shares_of_one(weights, "weights")


def deserved(relevance: FloatArray) -> FloatArray:
    """The share of the attention that each candidate deserves, (m,): its share of the relevance (0 or more).

    Where nothing is relevant all are alike.

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


def inequity(debts: FloatArray) -> float:
    """The unfairness of the rankings so far, sum |A - R| over documents or groups, from their debts R - A (n,)."""
    return float(np.abs(debts).sum())


def quality(order: NDArray[np.intp] | list[int], relevance: FloatArray, weights: FloatArray) -> float:
    """DCG of the order over that of the best one, in [0, 1] (Biega et al. 2018, DCG-quality; the gain is linear).

    `order` (n,) are places in `relevance` (m,), `weights` (n,) those of the ranks. 1 where nothing is relevant.

    >>> round(quality([1, 0], np.array([1.0, 0.5]), np.array([1.0, 0.5])), 6)
    0.8
    """
    best = _best(relevance, weights)
    return float(weights @ relevance[order]) / best if best > 0 else 1.0


def pay_documents(debts: FloatArray, relevance: FloatArray, weights: FloatArray, tolerance: float) -> list[int]:
    """The ranking of n of m candidates after which the documents' debts are least, by their places, best first.

    `debts` (m,) are those before this request, in shares of one ranking's attention; `relevance` (m,) is 0 or more,
    `weights` (n,), n <= m, are those of the ranks. It minimizes sum_i |debts_i + r_i - a_i| among the rankings whose
    `quality` is 1 - `tolerance` or more: a linear assignment, with a price on relevance that is found by halving
    (Lagrange). EXACT where the bound does not bind; otherwise the bound holds, and the sum may exceed the least one,
    which an integer program (the paper's) would find, by the gap of the duality: tests hold how much that is.
    Ties go to the earlier candidate. Raises UsageError for a tolerance outside of 0 to 1.

    The second document was shown too little before:

    >>> pay_documents(np.array([-0.5, 0.5]), np.array([1.0, 0.9]), np.array([1.0, 0.5]), tolerance=0.1)
    [1, 0]
    >>> pay_documents(np.array([-0.5, 0.5]), np.array([1.0, 0.9]), np.array([1.0, 0.5]), tolerance=0.01)
    [0, 1]
    """
    # Imported here, since it takes longer than all of a search that pays nothing.
    from scipy.optimize import linear_sum_assignment

    _check(debts, relevance, weights, tolerance)
    best, least = _by_relevance(relevance, weights), (1 - tolerance) * _best(relevance, weights)
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


def pay_groups(
    debts: FloatArray, rows: FloatArray, due: FloatArray, relevance: FloatArray, weights: FloatArray, tolerance: float
) -> list[int]:
    """The ranking of n of m candidates that pays what groups are owed, by the candidates' places, best first.

    `rows` (m, g) says how a candidate's attention is spread over the groups of all dimensions, `debts` (g,) is what
    these were owed before this request, `due` (g,) what this request owes them. The candidates are ordered by
    relevance + price * sum_g rows_ig (debts_g + due_g - what they get in the best order), and of some 50 prices that
    one is taken after which sum_g |debts_g| is least, among the orders whose `quality` is 1 - `tolerance` or more;
    of equal ones the most relevant. Where that leaves more than PAID, orders that are made rank by rank are tried, too:
    one price moves documents of equal score together. (An order by relevance and a price on a group's error is
    FairCo's: Morik, Singh, Hong, Joachims, SIGIR 2020.) It is a HEURISTIC: the best order of these families, and not of
    all; tests hold by how much the sum exceeds the least one. Ties go to the earlier candidate. Raises UsageError for a
    tolerance outside 0 to 1, DataError for shapes that do not fit.

    >>> rows = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> pay_groups(np.array([-0.3, 0.3]), rows, np.array([0.5, 0.5]), np.array([1.0, 0.9]), np.array([1.0, 0.5]), 0.1)
    [1, 0]
    """
    _check(relevance, relevance, weights, tolerance)
    rows, best = as_memberships(rows), _by_relevance(relevance, weights)
    if rows.shape != (len(relevance), len(debts)) or debts.shape != due.shape:
        raise DataError(f"rows {rows.shape}, debts {debts.shape} and due {due.shape} of {len(relevance)} candidates")
    if not len(weights) or tolerance == 0:
        return best
    owed, shares = debts + due, attention(weights)
    least = (1 - tolerance) * _best(relevance, weights)
    found, left = best, inequity(owed - shares @ rows[best])
    # What the groups lack after the best order, and, since that may point past what pays the debts, what they are owed.
    for order in _priced(relevance, (rows @ (owed - shares @ rows[best]), rows @ debts), len(weights)):
        if float(weights @ relevance[order]) >= least:
            remains = inequity(owed - shares @ rows[order])
            if remains < left - ROUNDING:
                found, left = order, remains
    if left <= PAID:
        return found
    for price in np.geomspace(1e-1, 1e3, GREEDY):
        order = _greedy(relevance, rows, owed, shares, float(price))
        if float(weights @ relevance[order]) >= least:
            remains = inequity(owed - shares @ rows[order])
            if remains < left - ROUNDING:
                found, left = order, remains
    return found


def _greedy(relevance: FloatArray, rows: FloatArray, owed: FloatArray, shares: FloatArray, price: float) -> list[int]:
    """Rank by rank the best by relevance and a price on what its groups are owed after the ranks above."""
    left, values, order = owed.copy(), relevance.copy(), list[int]()
    for share in shares:
        best = int((values + price * (rows @ left)).argmax())
        order.append(best)
        values[best] = -np.inf
        left -= share * rows[best]
    return order


def _priced(relevance: FloatArray, worths: tuple[FloatArray, ...], n: int) -> Iterator[list[int]]:
    """The first `n` by relevance and a price on each of the `worths` (m,), for rising prices."""
    for worth in worths:
        spread = float(np.ptp(worth)) if len(worth) else 0.0
        if spread > ROUNDING:
            scale = max(float(np.ptp(relevance)), ROUNDING) / spread
            for price in np.geomspace(1e-3, 1e2, PRICES // 2):
                yield np.argsort(-(relevance + price * scale * worth), kind="stable")[:n].tolist()


def _by_relevance(relevance: FloatArray, weights: FloatArray) -> list[int]:
    """The best ranking, the heaviest rank for the most relevant."""
    order = np.argsort(-relevance, kind="stable")[: len(weights)]
    placed = np.empty(len(weights), dtype=np.intp)
    placed[np.argsort(-weights, kind="stable")] = order
    best: list[int] = placed.tolist()
    return best


def _best(relevance: FloatArray, weights: FloatArray) -> float:
    """The most that a ranking can gain."""
    return float(np.sort(weights)[::-1] @ np.sort(relevance)[::-1][: len(weights)])


def _check(debts: FloatArray, relevance: FloatArray, weights: FloatArray, tolerance: float) -> None:
    if not 0 <= tolerance <= 1:
        raise UsageError(f"the tolerance of relevance is from 0 to 1, not {tolerance}")
    if len(debts) != len(relevance) or len(weights) > len(relevance):
        raise DataError(f"{len(debts)} debts, {len(relevance)} candidates and {len(weights)} ranks do not fit")
