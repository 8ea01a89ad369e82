"""Group exposure: each group's share of a ranking's attention, what it lacks of the target, and scores on one scale.

A membership row says how a document's weight is spread over the groups; column 0 is `UNKNOWN`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from fairagent.errors import DataError
from fairagent.measures.base import (
    JudgedRanking,
    Measure,
    as_distribution,
    as_memberships,
    as_vector,
    check_choice,
    check_cutoff,
    check_nonnegative,
    check_same_length,
)
from fairagent.measures.discounts import LOG2_MAX2, Discount
from fairagent.types import FloatArray

DECIMALS = 12
"""What lies below this decimal of a gap is rounding."""


def group_exposure(memberships: FloatArray, weights: FloatArray) -> FloatArray:
    """The share of exposure that each group gets, shape (g,); the shares add up to 1.

    `memberships` (n, g) holds a row a document in rank order, `weights` (n,) the weight of each rank, such as
    `LOG2_MAX2(n)`; both are 0 or more. Share g is sum_k w_k a_kg divided by its sum over g, so rows that do not add up
    to 1 count by their mass. No mass (an empty ranking, no weight) gives zeros. Raises DataError for shapes that do not
    fit and for negative, nan or infinite numbers.
    Source: TREC Fair Ranking 2022, Task 1, the exposure inside AWRF.

    >>> import numpy as np
    >>> from fairagent.measures import LOG2_MAX2
    >>> unknown_female_male = np.array([[0, 0, 1], [1, 0, 0], [0, 0.5, 0.5]])
    >>> group_exposure(unknown_female_male, LOG2_MAX2(3)).round(4).tolist()
    [0.3801, 0.1199, 0.5]
    """
    memberships = as_memberships(memberships)
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != memberships.shape[:1]:
        raise DataError(
            f"{memberships.shape[0]} documents (rows of memberships) but weights of shape {weights.shape}; "
            "take discount(n) with n the number of rows"
        )
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

    >>> import numpy as np
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
    """The places (dimension, group) of the known group that lacks most exposure, of all dimensions; None where none.

    `shares` and `targets` hold an array (g,) a dimension, as `known_part` gives them. It is the group with the largest
    target - share, both rounded to the 12th decimal. Ties go to the larger target, then to the first dimension and
    group; a group with target 0 is never chosen.

    Where nothing in a dimension is labeled, its shares are all zero and its groups lack their whole target: a loop has
    to look for some group then. FAIR-QR's reference values name no group there, since the exposure is not known.

    >>> import numpy as np
    >>> gender, region = np.array([0.6, 0.4]), np.array([0.7, 0.1, 0.2])
    >>> most_underexposed([gender, region], [np.array([0.5, 0.5]), np.array([0.4, 0.3, 0.3])])
    (1, 1)
    """
    lacking = []
    for dimension, (of_groups, target) in enumerate(zip(shares, targets, strict=True)):
        check_same_length(of_groups, target, "shares and target")
        gaps = zip((target - of_groups).round(DECIMALS).tolist(), target.tolist(), strict=True)
        lacking += [(gap, due, -dimension, -group) for group, (gap, due) in enumerate(gaps)]
    most, _, dimension, group = max(lacking, default=(0.0, 0.0, 0, 0))
    return (-dimension, -group) if most > 0 else None


def blend(alignment: FloatArray, background: FloatArray | None = None) -> FloatArray:
    """The target shares (g,) of a topic, its relevant documents' averaged with the world's; they add up to 1.

    `alignment` (g,) is the sum or the mean of the relevant documents' membership rows (only proportions count), column
    0 `UNKNOWN`. `background` (g - 1,) are the world's shares of the known groups, which add up to 1 (within 1e-6). With
    K the known mass, t_g = r_g / 2 + K b_g / 2 for known g, and t_0 = r_0: the unknown share stays, so a topic whose
    relevant documents are all unknown gets no background. Without one, t = r. Raises DataError for an `alignment`
    without mass, for shapes that do not fit, and for negative, nan or infinite numbers.
    Source: TREC Fair Ranking 2022 (Task 1 targets of one dimension), divided by their sum.

    >>> import numpy as np
    >>> relevant = np.array([[0, 0, 1, 0], [0, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 0]])  # unknown first
    >>> blend(relevant.sum(axis=0), np.array([0.495, 0.495, 0.01])).round(6).tolist()
    [0.25, 0.310625, 0.435625, 0.00375]
    """
    alignment = as_vector(alignment, "alignment")
    check_nonnegative(alignment, "alignment")
    total = float(alignment.sum())
    if not 0.0 < total < math.inf:
        raise DataError(
            f"the relevant documents' alignment adds up to {total:g}: none of them has a group record, so "
            "there is no target; leave the topic out or use another target"
        )
    target = alignment / total
    if background is None:
        return target
    background = as_distribution(background, "background")
    if background.size != target.size - 1:
        raise DataError(
            f"{background.size} background shares for {target.size - 1} known groups; expected one each, "
            "without UNKNOWN"
        )
    known = target[1:]
    return np.concatenate((target[:1], 0.5 * known + 0.5 * known.sum() * background))


Of = Literal["all", "type"]


@dataclass(frozen=True)
class Unlabeled(Measure):
    """The share of the first `n` ranks' exposure that goes to documents without a label of the dimension, in [0, 1].

    AWRF(unknown=ignore) leaves these documents out, so that a system which drops them can seem fair. With `of` = "type"
    only those count that are of the dimension's type: a person of unknown gender, and not a page about a river. The
    share is of all documents in both cases. It describes a ranking: neither more nor less of it is better. Nothing
    shown gives 0.

    >>> import numpy as np
    >>> rows = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])  # no label, a label, no label
    >>> nobody = np.zeros(3, dtype=bool)
    >>> shown = JudgedRanking(nobody, 0, rows, np.array([0, 1.0]), of_type=np.array([True, True, False]))
    >>> round(Unlabeled(3)(shown), 4), round(Unlabeled(3, of="type")(shown), 4)
    (0.6199, 0.3801)
    """

    name: ClassVar[str] = "unlabeled"
    of_groups: ClassVar[bool] = True
    neutral: ClassVar[bool] = True
    about: ClassVar[str] = (
        "the share of exposure that goes to documents without a label; of=type: of those of the dimension's type"
    )
    n: int
    discount: Discount = LOG2_MAX2
    of: Of = "all"

    def __post_init__(self) -> None:
        check_cutoff(self.n)
        check_choice("unlabeled: of", self.of, get_args(Of))

    @property
    def needs_types(self) -> bool:  # type: ignore[override]
        """Whether only documents of the type count."""
        return self.of == "type"

    def __call__(self, judged: JudgedRanking) -> float:
        """The share; raises DataError where the ranking has no memberships, or nobody says what is of the type."""
        if judged.memberships is None or (self.of == "type" and judged.of_type is None):
            raise DataError(f"{self} needs memberships{' and which documents are of the type' * (self.of == 'type')}")
        rows = judged.memberships[: self.n]
        counted = np.ones(len(rows), dtype=np.bool_) if self.of == "all" else judged.of_type[: self.n]  # type: ignore[index]
        # One more column for what counts, so that all documents stay in the sum.
        split = np.column_stack([rows[:, 0] * counted, rows[:, 0] * ~counted, rows[:, 1:].sum(axis=1)])
        return float(group_exposure(split, self.discount(len(rows)))[0])


def min_max(scores: FloatArray, flat: float = 1.0, within: float = 0.0) -> FloatArray:
    """Scores (n,) on [0, 1]: (score - lowest) / (highest - lowest); no scores give none.

    `flat` is what all of them get where they differ by no more than `within`, so that they say nothing about any
    document: 1 where they still stand for relevance, as the scores of a ranking; 0 where a signal that does not
    vary should count for nothing.

    >>> import numpy as np
    >>> min_max(np.array([5.0, 3.0, 1.0])).tolist(), min_max(np.array([2.0, 2.0])).tolist()
    ([1.0, 0.5, 0.0], [1.0, 1.0])
    """
    if not len(scores):
        return scores
    low, high = scores.min(), scores.max()
    if low == high or high - low <= within:
        return np.full_like(scores, flat)
    return np.asarray((scores - low) / (high - low))
