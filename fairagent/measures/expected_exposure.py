"""Expected exposure of the items that a stochastic ranker chooses from (Diaz et al. 2020; Fair RAG, ICTIR 2025).

A query has n items, of which m are useful; rankings of them are drawn and cut at k. A machine user reads the first
k' = min(k, n) and nothing else, so that an item's exposure e_d in [0, 1] is how often it is among them, and the sum of
all is k'. The target e*: useful items share the exposure first, and the others what is left over, alike among each.
Curves are of measures over sampled rankings at several alphas.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairagent.errors import DataError
from fairagent.measures.base import Discount, as_rankings, as_shares, as_shown, as_vector, check_shares
from fairagent.types import FloatArray
from fairagent.types.common import Compat

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
        place = (self.raw - self.least) / (self.most - self.least)
        # Rounding may end just outside.
        return min(max(place, 0.0), 1.0) if -1e-9 < place < 1 + 1e-9 else place


@dataclass(frozen=True, slots=True)
class ExpectedExposure:
    """EE-D, EE-R and EE-L: disparity ||e||^2, relevance <e, e*> and difference ||e - e*||^2."""

    disparity: Bounded
    relevance: Bounded
    difference: Bounded


def item_exposure(rankings: ArrayLike, n: int, browsing: Discount | None = None) -> FloatArray:
    """The expected exposure of each of `n` items in sampled rankings (N, k') of item indices, shape (n,).

    Without `browsing`, another discount of ranks, it is the share of the rankings that hold the item. Raises DataError
    for no ranking, an index that is no item's, and an item that a ranking names twice.

    >>> item_exposure([[0, 1], [0, 2]], n=4).tolist()
    [1.0, 0.5, 0.5, 0.0]
    """
    items = as_rankings(rankings, n)
    if not len(items):
        raise DataError("there is no ranking to measure")
    weights = np.tile(browsing(items.shape[1]), len(items)) if browsing else None
    return np.bincount(items.ravel(), weights, minlength=n) / len(items)


def class_exposure(counts: NDArray[np.int64], discount: Discount) -> FloatArray:
    """The exposure that each item of a class should get, (t, c): the mean attention of the ranks that its class shares.

    `counts` (t, c) are a topic's items in each class, the class that comes first in the ideal ranking first; an empty
    class has 0. Source: Diaz et al. 2020; TREC Fair Ranking 2022, Task 2, where the classes are how much work a page
    needs.

    >>> from fairagent.measures.base import LOG2_MAX2
    >>> class_exposure(np.array([[2, 0, 1, 0, 0, 1]]), LOG2_MAX2).round(5).tolist()
    [[1.0, 0.0, 0.63093, 0.0, 0.0, 0.5]]
    """
    ends = counts.cumsum(axis=1)
    attention = np.concatenate(([0.0], discount(int(ends.max(initial=0))).cumsum()))
    sums = attention[ends] - attention[ends - counts]
    mean: FloatArray = np.divide(sums, counts, out=np.zeros(counts.shape), where=counts > 0)
    return mean


def exposure_terms(exposure: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The terms (n,) of EE-L, EE-D and EE-R, (e - e*)^2, e^2 and e e*: their sums are the three measures."""
    return np.square(exposure - target), np.square(exposure), exposure * target


def target_exposure(useful: ArrayLike, k: int) -> FloatArray:
    """The target e* (n,) of items that are `useful` (n,) or not, for rankings cut at `k` (the paper's, section 1.5).

    >>> target_exposure([True, False, False], k=2).tolist()
    [1.0, 0.5, 0.5]
    """
    mask, shown = _as_useful(useful), as_shown(k, np.size(useful))
    counts = np.array([[mask.sum(), (~mask).sum()]])
    of_useful, of_others = class_exposure(counts, Discount("step", (shown,)))[0]
    target: FloatArray = np.where(mask, of_useful, of_others)
    return target


def expected_exposure(exposure: ArrayLike, useful: ArrayLike, k: int, compat: Compat = None) -> ExpectedExposure:
    """EE-D, EE-R and EE-L of the machine user's `exposure` (n,) where `useful` (n,) items are to be shown.

    Any e in [0, 1]^n with the sum k' can be had by drawing sets of k' items, so the bounds are those of this set: EE-D
    from k'^2/n (all items alike) to k' (one fixed set); EE-R with the k' items of the lowest and of the highest target;
    EE-L from 0 to k' + |e*|^2 - 2 min EE-R (a fixed set). Where bounds meet (n <= k, or all useful), they count as 0, 1
    and 0.

    `compat="authors"`: EE-D from 0 to k; EE-R counts useful items alone, though its upper bound counts all, from 0;
    EE-L likewise, from 0 to |e*|^2 + k; k stays k where n < k. For what their code cannot count (no useful item, or all
    n = m <= k) the paper's values stand. Raises DataError for shapes that do not fit, values outside [0, 1], a sum
    above k' (rankings that were not cut at k) and k < 1.

    >>> measured = expected_exposure([1.0, 0.5, 0.5, 0.0], [True, False, False, False], k=2)
    >>> round(measured.disparity.raw, 4), round(measured.disparity.normalized, 4), measured.relevance.normalized
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
        best = m + (k - m) ** 2 / (n - m) if m <= k else k**2 / m
        bounds = (0.0, float(k)), (0.0, best), (0.0, best + k)
        target = np.where(mask, 1.0 if m <= k else k / m, 0.0)
    else:
        ordered = np.sort(target)
        worst, best = float(ordered[:shown].sum()), float(ordered[n - shown :].sum())
        bounds = (shown**2 / n, float(shown)), (worst, best), (0.0, shown + float(target @ target) - 2 * worst)
    difference, disparity, relevance = (float(terms.sum()) for terms in exposure_terms(values, target))
    raw = zip((disparity, relevance, difference), bounds, (0.0, 1.0, 0.0), strict=True)
    return ExpectedExposure(*(Bounded(value, *ends, otherwise) for value, ends, otherwise in raw))


def _as_useful(useful: ArrayLike) -> NDArray[np.bool_]:
    mask = np.asarray(useful)
    if mask.ndim != 1 or not mask.size or mask.dtype != np.bool_:
        raise DataError(f"useful is {mask.dtype} of shape {mask.shape}, expected bool of shape (n,), n >= 1")
    return mask.astype(np.bool_)


def normalized_expected_utility(expected: float, highest: float, worst: float | None = None) -> float:
    """EU divided by the `highest` utility that any ranking of the query had; 1 where that is 0.

    `worst`: where less is better, the largest value there can be (4 for LaMP-3), and `highest` the smallest one seen;
    both sides are then what is missing to the worst. Raises DataError for what is not finite, negative, or above the
    highest.

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


EDGES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Of the five intervals of normalized EE-D, each without its upper end: [0, .2), ..., [.8, 1)."""


@dataclass(frozen=True, slots=True)
class DisparityInterval:
    """The normalized EU of what lies in one interval of EE-D: `count` values and their `mean`.

    `difference` is from the mean of the deterministic ranking, `p` of an unpaired t-test; None: too few values.
    """

    low: float
    high: float
    count: int
    mean: float | None
    difference: float | None
    p: float | None

    @property
    def name(self) -> str:
        """What tables call it."""
        return f"[{self.low:g}, {self.high:g})"


def disparity_intervals(
    disparity: ArrayLike, utility: ArrayLike, deterministic: ArrayLike
) -> tuple[DisparityInterval, ...]:
    """The five intervals of `disparity` (v,), with the `utility` (v,) there, beside that of `deterministic` (q,).

    As in the paper's Table 2 the last is [.8, 1): a disparity of 1 belongs to no interval. Raises DataError for shapes
    that do not fit, what is not finite and a disparity outside [0, 1].

    >>> [row.count for row in disparity_intervals([0.1, 0.9, 1.0], [0.5, 0.7, 0.9], [0.8, 0.8])]
    [1, 0, 0, 0, 1]
    """
    where, values = _pair(disparity, utility)
    own = as_vector(deterministic, "deterministic", finite=True)
    check_shares(where, "disparity")
    # What lies below the twelfth decimal is rounding.
    number = np.searchsorted(EDGES, np.round(where, 12), side="right") - 1
    rows = []
    for place, (low, high) in enumerate(pairwise(EDGES)):
        inside = values[number == place]
        mean = float(inside.mean()) if len(inside) else None
        difference = None if mean is None else mean - float(own.mean())
        rows.append(DisparityInterval(low, high, len(inside), mean, difference, _unpaired_t(inside, own)))
    return tuple(rows)


def area_under_curve(disparity: ArrayLike, relevance: ArrayLike) -> float:
    """The area under EE-R over EE-D in [0, 1], by trapezoids between the points in the order of EE-D.

    Left of the first and right of the last point the curve goes on level; of equal disparities the mean counts.
    Raises DataError for shapes that do not fit, what is not finite and a disparity outside [0, 1].

    >>> area_under_curve([0.5, 0.0, 1.0], [0.5, 0.0, 1.0])
    0.5
    """
    x, y = _pair(disparity, relevance)
    check_shares(x, "disparity")
    at, which = np.unique(x, return_inverse=True)
    height = np.bincount(which, y) / np.bincount(which)
    return float(np.trapezoid([height[0], *height, height[-1]], [0.0, *at, 1.0]))


def _unpaired_t(first: FloatArray, second: FloatArray) -> float | None:
    """The two-sided p-value of Student's t-test with pooled variance; 1 or 0 where nothing varies, None for n < 2."""
    # Not by scipy's own test, which warns where the values hardly vary.
    from scipy.stats import t

    n, m = len(first), len(second)
    if min(n, m) < 2:
        return None
    difference = float(first.mean() - second.mean())
    pooled = float(np.square(first - first.mean()).sum() + np.square(second - second.mean()).sum()) / (n + m - 2)
    if pooled <= 1e-24:
        return 1.0 if abs(difference) <= 1e-12 else 0.0
    return float(2 * t.sf(abs(difference) / np.sqrt(pooled * (1 / n + 1 / m)), n + m - 2))


def _pair(first: ArrayLike, second: ArrayLike) -> tuple[FloatArray, FloatArray]:
    x, y = (as_vector(values, f"the {nth} values", True) for nth, values in (("first", first), ("second", second)))
    if x.shape != y.shape:
        raise DataError(f"{len(x)} and {len(y)} values do not go together")
    return x, y


@dataclass(frozen=True, slots=True)
class Line:
    """The line y = slope * x + intercept."""

    slope: float
    intercept: float

    def at(self, x: float) -> float:
        """Its y at `x`."""
        return self.slope * x + self.intercept


def fitted_line(x: ArrayLike, y: ArrayLike) -> Line | None:
    """That of least squares of `y` (n,) on `x` (n,); None where all x are the same.

    >>> fitted_line([0.0, 1.0, 2.0], [1.0, 2.0, 6.0])
    Line(slope=2.5, intercept=0.5)
    """
    across, up = _pair(x, y)
    # Not by the spread: the mean of equal numbers may be off by rounding.
    if across.min() == across.max():
        return None
    spread = across - across.mean()
    slope = float(spread @ (up - up.mean()) / (spread @ spread))
    return Line(slope, float(up.mean() - slope * across.mean()))
