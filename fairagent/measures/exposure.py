"""Group exposure and what it lacks of the target; scores on one scale; divergences between distributions of groups.

A membership row says how a document's weight is spread over the groups; column 0 is `UNKNOWN`. Divergences take shares
p (what is shown) and q (the target), (g,), that add up to 1 within 1e-6. Results are in nats unless a base is given.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from fairagent.errors import DataError
from fairagent.measures.base import as_distribution, as_memberships, as_vector, check_nonnegative
from fairagent.types import FloatArray

DECIMALS = 12
"""What lies below this decimal of a gap is rounding."""


def group_exposure(memberships: FloatArray, weights: FloatArray) -> FloatArray:
    """The share of exposure that each group gets, shape (g,); they add up to 1, or are 0 where there is no mass.

    `memberships` (n, g) has a row a document in rank order, `weights` (n,) the weight of each rank; both are 0 or more.
    Share g is sum_k w_k a_kg divided by its sum over g. Raises DataError for arguments out of form. Source: TREC Fair
    Ranking 2022, Task 1.

    >>> from fairagent.measures import LOG2_MAX2
    >>> unknown_female_male = np.array([[0, 0, 1], [1, 0, 0], [0, 0.5, 0.5]])
    >>> group_exposure(unknown_female_male, LOG2_MAX2(3)).round(4).tolist()
    [0.3801, 0.1199, 0.5]
    """
    memberships = as_memberships(memberships)
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != memberships.shape[:1]:
        raise DataError(f"{len(memberships)} documents but weights of shape {weights.shape}, expected one each")
    if not weights.size:
        return np.zeros(memberships.shape[1])
    with np.errstate(invalid="ignore", over="ignore"):  # judged by the total below
        mass: FloatArray = weights.dot(memberships)
        total = float(mass.sum())
    if not (memberships.min() >= 0.0 and weights.min() >= 0.0 and total < math.inf):
        check_nonnegative(memberships, "memberships")
        check_nonnegative(weights, "weights")
        raise DataError("memberships times weights are too large for a sum; scale the weights down")
    return mass / total if total > 0.0 else mass


def known_part(shares: FloatArray) -> FloatArray:
    """The shares without column 0 (`UNKNOWN`), divided by their sum, (g - 1,); no known mass gives zeros.

    >>> known_part(np.array([0.6, 0.1, 0.3])).round(6).tolist()
    [0.25, 0.75]
    """
    shares = as_vector(shares, "shares")
    known = shares[1:]
    total = float(known.sum())
    if not (shares.min() >= 0.0 and total < math.inf):
        check_nonnegative(shares, "shares")
    return known / total if total > 0.0 else np.zeros_like(known)


def most_underexposed(shares: Sequence[FloatArray], targets: Sequence[FloatArray]) -> tuple[int, int] | None:
    """The places (dimension, group) of the known group that lacks most exposure, of all dimensions; None if none.

    `shares` and `targets` hold an array (g,) a dimension. It is the group with the largest target - share, rounded to
    the 12th decimal; ties go to the larger target, then to the first dimension and group. Where nothing in a dimension
    is labeled, its groups lack their whole target.

    >>> gender, region = np.array([0.6, 0.4]), np.array([0.7, 0.1, 0.2])
    >>> most_underexposed([gender, region], [np.array([0.5, 0.5]), np.array([0.4, 0.3, 0.3])])
    (1, 1)
    """
    lacking = []
    for dimension, (of_groups, target) in enumerate(zip(shares, targets, strict=True)):
        if of_groups.shape != target.shape:
            raise DataError(f"shares and target have shapes {of_groups.shape} and {target.shape}, expected the same")
        gaps = zip((target - of_groups).round(DECIMALS).tolist(), target.tolist(), strict=True)
        lacking += [(gap, due, -dimension, -group) for group, (gap, due) in enumerate(gaps)]
    most, _, dimension, group = max(lacking, default=(0.0, 0.0, 0, 0))
    return (-dimension, -group) if most > 0 else None


def blend(alignment: FloatArray, background: FloatArray | None = None) -> FloatArray:
    """The target shares (g,) of a topic, its relevant documents' averaged with the world's; they add up to 1.

    `alignment` (g,) is the sum of the relevant documents' membership rows, column 0 `UNKNOWN`, `background` (g - 1,)
    the world's shares of the known groups. With K the known mass, t_g = r_g / 2 + K b_g / 2 for known g, and t_0 = r_0;
    without a background, t = r. Raises DataError for an `alignment` without mass, and for arguments out of form.
    Source: TREC Fair Ranking 2022 (Task 1 targets of one dimension).

    >>> relevant = np.array([[0, 0, 1, 0], [0, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 0]])  # unknown first
    >>> blend(relevant.sum(axis=0), np.array([0.495, 0.495, 0.01])).round(6).tolist()
    [0.25, 0.310625, 0.435625, 0.00375]
    """
    alignment = as_vector(alignment, "alignment")
    check_nonnegative(alignment, "alignment")
    total = float(alignment.sum())
    if not 0.0 < total < math.inf:
        raise DataError("no relevant document has a group record: leave the topic out or use another target")
    target = alignment / total
    if background is None:
        return target
    background = as_distribution(background, "background")
    if background.size != target.size - 1:
        raise DataError(f"{background.size} background shares for {target.size - 1} known groups")
    known = target[1:]
    return np.concatenate((target[:1], 0.5 * known + 0.5 * known.sum() * background))


def min_max(scores: FloatArray, flat: float = 1.0, within: float = 0.0) -> FloatArray:
    """Scores (n,) on [0, 1]; all `flat` where they differ by no more than `within`, so that they say nothing.

    >>> min_max(np.array([5.0, 3.0, 1.0])).tolist(), min_max(np.array([2.0, 2.0])).tolist()
    ([1.0, 0.5, 0.0], [1.0, 1.0])
    """
    if not len(scores):
        return scores
    low, high = scores.min(), scores.max()
    if low == high or high - low <= within:
        return np.full_like(scores, flat)
    return np.asarray((scores - low) / (high - low))


def gini(values: FloatArray, weights: FloatArray) -> float:
    """The Gini coefficient of `values` (n,), each of so many documents as `weights` (n,) says; both are 0 or more.

    0 where all have the same or none has any, near 1 where one has all: 1 less twice the area below the Lorenz curve.

    >>> gini(np.array([3.0, 1.0, 0.0]), np.array([1.0, 1.0, 2.0]))
    0.625
    """
    check_nonnegative(values, "values")
    check_nonnegative(weights, "weights")
    order = values.argsort()
    documents, held = weights[order], (weights * values)[order]
    if not held.any():
        return 0.0
    below = held.cumsum() - held / 2
    return max(0.0, float(1 - 2 * documents @ below / documents.sum() / held.sum()))


SMOOTHING = 1e-6
"""Added to every share before the divergence of a gap is taken (FAIR-QR leaves its smoothing unsaid)."""


def jensen_shannon(p: FloatArray, q: FloatArray, base: float = math.e) -> float:
    """Jensen-Shannon divergence KL(p || m) / 2 + KL(q || m) / 2 with m = (p + q) / 2, in [0, ln 2 / ln base].

    >>> jensen_shannon(np.array([1.0, 0.0]), np.array([0.0, 1.0]), base=2)
    1.0
    """
    if not 1.0 < base < math.inf:
        raise DataError(f"the logarithm's base is {base}, expected more than 1")
    p, q = as_distribution(p, "p"), as_distribution(q, "q")
    if p.shape != q.shape:
        raise DataError(f"p and q have shapes {p.shape} and {q.shape}, expected the same groups in both")
    return min(max(0.0, float(jensen_shannon_terms(p, q).sum())), math.log(2.0)) / math.log(base)


def jensen_shannon_terms(p: FloatArray, q: FloatArray) -> FloatArray:
    """Each group's term (g,) of the Jensen-Shannon divergence in nats; of many pairs with a column a pair, (g, k).

    The sides are not checked and need not add up to 1.
    """
    pair = np.array((p, q))
    # x / m as 2 x / (p + q), which lies in (0, 2]: half of the smallest float would be zero. 0 ln 0 is 0.
    ratio = np.divide(2.0 * pair, pair[0] + pair[1], out=np.ones_like(pair), where=pair > 0.0)
    terms: FloatArray = 0.5 * (pair * np.log(ratio)).sum(axis=0)
    return terms


TERMS: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "kl": lambda p, q: p * np.log(p / q),
    "kl-reverse": lambda p, q: q * np.log(q / p),
    "js": lambda p, q: 0.5 * (p * np.log(p) + q * np.log(q)) - 0.5 * (p + q) * np.log(0.5 * (p + q)),
    "tv": lambda p, q: 0.5 * np.abs(p - q),
}
"""The terms that add up to the divergence of each name that settings use, of smoothed shares p (shown) and q (due)."""
LARGEST = {"kl": -math.log(SMOOTHING), "kl-reverse": -math.log(SMOOTHING), "js": math.log(2.0), "tv": 1.0}
"""What a list counts as that shows no labeled document: as far from any target as can be."""
