"""The exposure ratio: attention parity, or equity of attention, by what its target is.

Source: Singh, Joachims: Fairness of Exposure in Rankings, KDD 2018 (arXiv 1802.07281), there for two groups. With the
target `corpus` each document of any group should get the same attention (demographic parity, section 4.1), with
`qrels` each relevant one (disparate treatment, section 4.2), also those that no list shows.
"""

from dataclasses import dataclass
from typing import ClassVar

from fairagent.errors import DataError
from fairagent.measures.base import (
    JudgedRanking,
    Measure,
    as_vector,
    check_cutoff,
    check_nonnegative,
    check_same_length,
)
from fairagent.measures.discounts import LOG2_MAX2, Discount
from fairagent.measures.exposure import group_exposure, known_part
from fairagent.types import FloatArray


def exposure_ratio(shares: FloatArray, target: FloatArray) -> float:
    """What the worst group gets for its target, share / target, over what the best one does: 0 to 1, 1 is fair.

    `shares` and `target` (g,) are over the same groups; those whose target is 0 do not count. Raises DataError where
    fewer than two groups have a target or none of these has exposure, for shapes that do not fit, and for negative, nan
    or infinite numbers.

    >>> import numpy as np
    >>> exposure_ratio(np.array([0.2, 0.8]), np.array([0.5, 0.5]))
    0.25
    """
    shares, target = as_vector(shares, "shares"), as_vector(target, "target")
    check_same_length(shares, target, "shares and target")
    check_nonnegative(shares, "shares")
    check_nonnegative(target, "target")
    due = target > 0
    if due.sum() < 2 or not shares[due].any():
        raise DataError("the exposure ratio needs two groups with a target, and exposure for one; leave the topic out")
    ratios = shares[due] / target[due]
    return float(ratios.min() / ratios.max())


@dataclass(frozen=True)
class ExposureRatio(Measure):
    """`exposure_ratio` at cut-off `n` (>= 1) as a measure, over the known groups.

    >>> print(ExposureRatio(20))
    ExposureRatio(discount=log2-max2)@20
    """

    name: ClassVar[str] = "ExposureRatio"
    of_groups: ClassVar[bool] = True
    about: ClassVar[str] = "share / target of the group that has least for its target over that of the one with most"
    n: int
    discount: Discount = LOG2_MAX2

    def __post_init__(self) -> None:
        check_cutoff(self.n)

    def __call__(self, judged: JudgedRanking) -> float:
        """The value; 0 where nothing that is shown has a label. Raises DataError as `exposure_ratio` does."""
        memberships, target = judged.groups_for(self)
        rows = memberships[: self.n]
        shares = known_part(group_exposure(rows, self.discount(len(rows))))
        return exposure_ratio(shares, known_part(target)) if shares.any() else 0.0
