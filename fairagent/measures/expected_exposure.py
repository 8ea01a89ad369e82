"""Expected exposure of the items that a stochastic ranker chooses from (Diaz et al. 2020; Fair RAG, ICTIR 2025).

A query has n items, of which m are useful; rankings of them are drawn and cut at k. A machine user reads the first
k' = min(k, n) and nothing else, so that an item's exposure e_d in [0, 1] is how often it is among them, and the sum of
all is k'. The target e*: useful items share the exposure first, and the others what is left over, alike among each.

Expected utility of answers to sampled rankings (Fair RAG, ICTIR 2025).
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairagent.errors import DataError
from fairagent.measures.base import as_rankings, as_shares, as_shown, as_vector, check_finite
from fairagent.measures.discounts import Discount
from fairagent.measures.exposure import group_exposure
from fairagent.types import FloatArray

Compat = Literal["authors"] | None
"""None: the paper's theoretical bounds; "authors": those of the released code."""
MEETING = 1e-12
"""Bounds that are no further apart, relative to the higher, are one: there is nothing to choose."""


@dataclass(frozen=True, slots=True)
class Bounded:
    """A value between its theoretical bounds; `otherwise` is its normalized value where these meet."""

    raw: float
    least: float
    most: float
    otherwise: float

    @property
    def normalized(self) -> float:
        """Where the value lies between its bounds, 0 at the least and 1 at the most."""
        if self.most - self.least <= MEETING * max(abs(self.most), 1.0):
            return self.otherwise
        # Rounding may end just outside.
        found = (self.raw - self.least) / (self.most - self.least)
        return min(max(found, 0.0), 1.0) if -1e-9 < found < 1 + 1e-9 else found


@dataclass(frozen=True, slots=True)
class ExpectedExposure:
    """EE-D, EE-R and EE-L: disparity ||e||^2, relevance <e, e*> and difference ||e - e*||^2."""

    disparity: Bounded
    relevance: Bounded
    difference: Bounded


def item_exposure(rankings: ArrayLike, n: int, browsing: Discount | None = None) -> FloatArray:
    """The expected exposure of each of `n` items in sampled rankings (N, k') of item indices, shape (n,).

    The machine user's (None) is the share of the rankings that hold the item; another `browsing` model weighs ranks
    (1 first). Raises DataError for no ranking, an index that is no item's, and an item that a ranking names twice.

    >>> item_exposure([[0, 1], [0, 2]], n=4).tolist()
    [1.0, 0.5, 0.5, 0.0]
    """
    items = as_rankings(rankings, n)
    if not len(items):
        raise DataError("there is no ranking to measure")
    if browsing is None:
        return np.bincount(items.ravel(), minlength=n) / len(items)
    weights = np.tile(browsing(items.shape[1]), len(items))
    return np.bincount(items.ravel(), weights, minlength=n) / len(items)


def target_exposure(useful: ArrayLike, k: int) -> FloatArray:
    """The target e* (n,) of items that are `useful` (n,) or not, for rankings cut at `k` (the paper's, section 1.5).

    >>> target_exposure([True, False, False], k=2).tolist()
    [1.0, 0.5, 0.5]
    """
    mask, shown = _as_useful(useful), as_shown(k, np.size(useful))
    m, n = int(mask.sum()), len(mask)
    if m == 0:
        return np.full(n, shown / n)
    if m > shown:
        return np.where(mask, shown / m, 0.0)
    return np.where(mask, 1.0, (shown - m) / (n - m) if n > m else 0.0)


def expected_exposure(exposure: ArrayLike, useful: ArrayLike, k: int, compat: Compat = None) -> ExpectedExposure:
    """EE-D, EE-R and EE-L of the machine user's `exposure` (n,) where `useful` (n,) items are to be shown.

    Any e in [0, 1]^n with the sum k' can be had by drawing sets of k' items, so the bounds are those of this set:
    - EE-D is convex and symmetric: least k'^2/n where all items are alike, most k' for one fixed set.
    - EE-R is linear: most with the useful items first, min(m, k') of them; least with the others first.
    - EE-L is convex: least 0, since the target is in the set; most at a fixed set, k' + |e*|^2 - 2 min EE-R.
    Where bounds meet (n <= k, or all useful), disparity is 0, relevance 1 and difference 0.

    `compat="authors"`: EE-D from 0 to k; EE-R counts useful items alone, though its upper bound counts all, from 0;
    EE-L likewise, from 0 to |e*|^2 + k; k stays k where n < k. For what their code cannot count (no useful item, or
    all n = m <= k) the paper's values stand.
    Raises DataError for shapes that do not fit, values outside [0, 1], a sum above k' (rankings that were not cut at k)
    and k < 1. Rankings of fewer than k' items leave a sum below k', and values that may be outside the bounds.

    >>> found = expected_exposure([1.0, 0.5, 0.5, 0.0], [True, False, False, False], k=2)
    >>> round(found.disparity.raw, 4), round(found.disparity.normalized, 4), found.relevance.normalized
    (1.5, 0.5, 1.0)
    """
    mask, values = _as_useful(useful), as_shares(exposure, "exposure")
    if values.shape != mask.shape:
        raise DataError(f"exposure has shape {values.shape} and useful {mask.shape}, expected (n,) in both")
    n, m, shown = len(mask), int(mask.sum()), as_shown(k, len(mask))
    if values.sum() > shown * (1 + 1e-9):
        raise DataError(f"exposure adds up to {values.sum():g}, expected {shown} or less: cut the rankings at k = {k}")
    target = target_exposure(mask, k)
    if compat == "authors" and m and not (n == m <= k):
        return _authors(values, mask, k)
    disparity, relevance = float(values @ values), float(values @ target)
    difference = float(np.square(values - target).sum())
    others = min(shown, n - m)
    worst = (shown - others) * _of(target, mask) + others * _of(target, ~mask)
    best = float(target @ target)
    return ExpectedExposure(
        Bounded(disparity, shown**2 / n, float(shown), 0.0),
        Bounded(relevance, worst, best, 1.0),
        Bounded(difference, 0.0, shown + best - 2 * worst, 0.0),
    )


@dataclass(frozen=True, slots=True, eq=False)
class GroupExposure:
    """What the groups of a dimension may expect, and should: shares (g,) that add up to 1 on both sides.

    `disparity`, `relevance` and `difference` are those of the shares: ||E||^2, <E, E*> and ||E - E*||^2.
    """

    shares: FloatArray
    target: FloatArray

    @property
    def disparity(self) -> float:
        """EE-D of the groups, in [1/g, 1]."""
        return float(self.shares @ self.shares)

    @property
    def relevance(self) -> float:
        """EE-R of the groups, in [0, 1]."""
        return float(self.shares @ self.target)

    @property
    def difference(self) -> float:
        """EE-L of the groups, in [0, 2]: 0 where each may expect its target."""
        return float(np.square(self.shares - self.target).sum())


def group_expected_exposure(memberships: FloatArray, exposure: ArrayLike, target: ArrayLike) -> GroupExposure:
    """The groups' shares of the items' `exposure` (n,), beside their shares of the `target` (n,) of the items.

    `memberships` (n, g) holds a row an item. The target may be `target_exposure`, so that groups are due what their
    useful items are, as in Diaz et al. 2020, section 5. A side that exposes nobody has shares of 0.
    Raises DataError for shapes that do not fit, and for negative or infinite numbers.

    >>> found = group_expected_exposure(np.array([[1, 0], [0, 1], [0, 1]]), [1.0, 0.5, 0.5], [1.0, 1.0, 0.0])
    >>> found.shares.tolist(), found.difference
    ([0.5, 0.5], 0.0)
    """
    sides = [as_vector(values, name) for values, name in ((exposure, "exposure"), (target, "target"))]
    return GroupExposure(*(group_exposure(memberships, side) for side in sides))


def _authors(values: FloatArray, mask: NDArray[np.bool_], k: int) -> ExpectedExposure:
    n, m = len(mask), int(mask.sum())
    target = np.where(mask, 1.0 if m <= k else k / m, 0.0)
    most = m + (k - m) ** 2 / (n - m) if m <= k else k**2 / m
    return ExpectedExposure(
        Bounded(float(values @ values), 0.0, float(k), 0.0),
        Bounded(float(values @ target), 0.0, most, 1.0),
        Bounded(float(np.square(values - target).sum()), 0.0, most + k, 0.0),
    )


def _of(target: FloatArray, mask: NDArray[np.bool_]) -> float:
    """The target of the items in `mask`, which is the same for all of them; 0 for none."""
    return float(target[mask][0]) if mask.any() else 0.0


def _as_useful(useful: ArrayLike) -> NDArray[np.bool_]:
    mask = np.asarray(useful)
    if mask.ndim != 1 or not mask.size or mask.dtype != np.bool_:
        raise DataError(f"useful is {mask.dtype} of shape {mask.shape}, expected bool of shape (n,), n >= 1")
    return mask.astype(np.bool_)


def expected_utility(utilities: ArrayLike) -> float:
    """EU: the mean utility of the answers to N sampled rankings, `utilities` (N,), N >= 1.

    Raises DataError for another shape and for what is not finite.

    >>> expected_utility([1.0, 0.0, 1.0, 1.0])
    0.75
    """
    values = as_vector(utilities, "utilities")
    check_finite(values, "utilities")
    return float(values.mean())


def normalized_expected_utility(expected: float, highest: float, worst: float | None = None) -> float:
    """EU divided by the `highest` utility that any ranking of the query had; 1 where that is 0.

    The paper takes the highest of all runs with the same generator, an oracle's among them, the authors' code that of
    the same retriever's runs and the oracle's: the caller chooses. `worst`: where less is better, the largest value
    there can be (4 for LaMP-3), and `highest` the smallest one seen; both sides are then what is missing to the worst.
    Raises DataError for what is not finite, negative, or an EU better than `highest`.

    >>> normalized_expected_utility(0.3, 0.6), normalized_expected_utility(1.0, 0.0, worst=4.0)
    (0.5, 0.75)
    """
    if worst is not None:
        expected, highest = worst - expected, worst - highest
    if not (math.isfinite(expected) and math.isfinite(highest)) or min(expected, highest) < 0:
        raise DataError(f"an expected utility of {expected:g} and a highest one of {highest:g}: expected 0 or more")
    if expected > highest + 1e-9 * max(1.0, highest):
        raise DataError(f"the expected utility {expected:g} is above the highest one, {highest:g}")
    return float(np.divide(expected, highest)) if highest else 1.0
