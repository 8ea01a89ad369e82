"""Expected exposure of the items that a stochastic ranker chooses from (Diaz et al. 2020; Fair RAG, ICTIR 2025).

A query has n items, of which m are useful; rankings of them are drawn and cut at k. A machine user reads the first
k' = min(k, n) and nothing else, so that an item's exposure e_d in [0, 1] is how often it is among them, and the sum of
all is k'. The target e*: useful items share the exposure first, and the others what is left over, alike among each.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairagent.errors import DataError
from fairagent.measures.base import as_rankings, as_shares, as_shown
from fairagent.measures.discounts import Discount, StepDiscount
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

    The machine user's (None) is the share of the rankings that hold the item; another `browsing` model weighs ranks
    (1 first). Raises DataError for no ranking, an index that is no item's, and an item that a ranking names twice.

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

    `counts` (t, c) are a topic's items in each class; in the ideal ranking those of the first class come first, and
    those of a class share its ranks. An empty class has 0.
    Source: Diaz et al. 2020; TREC Fair Ranking 2022, Task 2, where the classes are how much work a page needs.

    >>> from fairagent.measures.discounts import LOG2_MAX2
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

    `useful` may be grades (n,), integers: items of a grade share what those of higher grades leave over (Diaz et al.
    2020, section 4; the paper itself has useful items and others).

    >>> target_exposure([True, False, False], k=2).tolist()
    [1.0, 0.5, 0.5]
    >>> target_exposure([3, 1, 1, 0], k=2).tolist()
    [1.0, 0.5, 0.5, 0.0]
    """
    grades, shown = _as_grades(useful), as_shown(k, np.size(useful))
    _, of_item, counts = np.unique(-grades, return_inverse=True, return_counts=True)
    target: FloatArray = class_exposure(counts[None, :], StepDiscount(shown))[0][of_item]
    return target


def expected_exposure(exposure: ArrayLike, useful: ArrayLike, k: int, compat: Compat = None) -> ExpectedExposure:
    """EE-D, EE-R and EE-L of the machine user's `exposure` (n,) where `useful` (n,) items are to be shown.

    `useful` says of each item whether it is, or has its grade (see `target_exposure`). Any e in [0, 1]^n with the sum
    k' can be had by drawing sets of k' items, so the bounds are those of this set:
    - EE-D is convex and symmetric: least k'^2/n where all items are alike, most k' for one fixed set.
    - EE-R is linear: most with the k' items of the highest target, least with those of the lowest.
    - EE-L is convex: least 0, since the target is in the set; most at a fixed set, k' + |e*|^2 - 2 min EE-R.
    Where bounds meet (n <= k, or all useful), disparity is 0, relevance 1 and difference 0.

    `compat="authors"`: EE-D from 0 to k; EE-R counts useful items alone, though its upper bound counts all, from 0;
    EE-L likewise, from 0 to |e*|^2 + k; k stays k where n < k. For what their code cannot count (no useful item, or
    all n = m <= k) the paper's values stand. Their code knows no grades.
    Raises DataError for shapes that do not fit, values outside [0, 1], a sum above k' (rankings that were not cut at k)
    and k < 1. Rankings of fewer than k' items leave a sum below k', and values that may be outside the bounds.

    >>> measured = expected_exposure([1.0, 0.5, 0.5, 0.0], [True, False, False, False], k=2)
    >>> round(measured.disparity.raw, 4), round(measured.disparity.normalized, 4), measured.relevance.normalized
    (1.5, 0.5, 1.0)
    """
    grades, values = _as_grades(useful), as_shares(exposure, "exposure")
    if values.shape != grades.shape:
        raise DataError(f"exposure has shape {values.shape} and useful {grades.shape}, expected (n,) in both")
    n, shown = len(grades), as_shown(k, len(grades))
    if values.sum() > shown * (1 + 1e-9):
        raise DataError(f"exposure adds up to {values.sum():g}, expected {shown} or less: cut the rankings at k = {k}")
    target = target_exposure(grades, k)
    if compat == "authors" and grades.max() > 1:
        raise DataError("the authors' code has useful items and others: there are no grades with compat='authors'")
    m = int((grades > 0).sum())
    if compat == "authors" and m and not (n == m <= k):
        best = m + (k - m) ** 2 / (n - m) if m <= k else k**2 / m
        bounds = (0.0, float(k)), (0.0, best), (0.0, best + k)
        target = np.where(grades > 0, 1.0 if m <= k else k / m, 0.0)
    else:
        ordered = np.sort(target)
        worst, best = float(ordered[:shown].sum()), float(ordered[n - shown :].sum())
        bounds = (shown**2 / n, float(shown)), (worst, best), (0.0, shown + float(target @ target) - 2 * worst)
    difference, disparity, relevance = (float(terms.sum()) for terms in exposure_terms(values, target))
    raw = zip((disparity, relevance, difference), bounds, (0.0, 1.0, 0.0), strict=True)
    return ExpectedExposure(*(Bounded(value, *ends, otherwise) for value, ends, otherwise in raw))


@dataclass(frozen=True, slots=True)
class JudgmentBounds:
    """What a normalized measure is at least and at most, whatever the items that nobody has judged may be."""

    least: float
    most: float


def missing_judgments(
    exposure: ArrayLike, useful: ArrayLike, judged: ArrayLike, k: int
) -> tuple[JudgmentBounds, JudgmentBounds]:
    """The bounds of normalized EE-R and EE-L where some items were not `judged` (n,), each of which may be useful.

    `exposure` and `useful`, bool, are as in `expected_exposure`; what `useful` says of an item that was not judged does
    not count. EE-D needs no judgment. Exact: both measures depend on how many of the unjudged items are useful and on
    their exposure together, so for each number the most and the least exposed are tried.
    The paper counts what was not judged as useless. Raises DataError as `expected_exposure`.

    >>> relevance, difference = missing_judgments([1.0, 1.0, 0.0], [True, False, False], [True, False, True], k=2)
    >>> relevance
    JudgmentBounds(least=1.0, most=1.0)
    """
    mask, known = _as_useful(useful), _as_useful(judged)
    values = as_shares(exposure, "exposure")
    if not mask.shape == known.shape == values.shape:
        raise DataError(f"exposure, useful and judged have shapes {values.shape}, {mask.shape} and {known.shape}")
    unjudged = np.flatnonzero(~known)
    by_exposure = unjudged[np.argsort(-values[unjudged], kind="stable")]
    points = []
    for number in range(len(unjudged) + 1):
        for chosen in {tuple(by_exposure[:number]), tuple(by_exposure[len(unjudged) - number :])}:
            possible = mask & known
            possible[list(chosen)] = True
            measured = expected_exposure(values, possible, k)
            points.append((measured.relevance.normalized, measured.difference.normalized))
    relevance, difference = zip(*points, strict=True)
    return JudgmentBounds(min(relevance), max(relevance)), JudgmentBounds(min(difference), max(difference))


def _as_grades(useful: ArrayLike) -> NDArray[np.int64]:
    """Grades (n,), of which 0 is the lowest; 1 where an item is useful, where nothing more is known."""
    grades = np.asarray(useful)
    if grades.dtype == np.bool_ or grades.ndim != 1 or not np.issubdtype(grades.dtype, np.integer):
        return _as_useful(grades).astype(np.int64)
    if not grades.size or grades.min() < 0:
        raise DataError("useful is bool, or grades of 0 or more, of shape (n,), n >= 1")
    return grades.astype(np.int64)


def _as_useful(useful: ArrayLike) -> NDArray[np.bool_]:
    mask = np.asarray(useful)
    if mask.ndim != 1 or not mask.size or mask.dtype != np.bool_:
        raise DataError(f"useful is {mask.dtype} of shape {mask.shape}, expected bool of shape (n,), n >= 1")
    return mask.astype(np.bool_)


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
