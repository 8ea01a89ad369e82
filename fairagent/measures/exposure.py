"""Group exposure: each group's share of a ranking's attention, and the most under-exposed group.

A membership row says how a document's weight is spread over the groups; column 0 is `UNKNOWN`.
"""

import math
from collections.abc import Sequence

import numpy as np

from fairagent.errors import DataError
from fairagent.measures.checks import as_memberships, as_vector, check_nonnegative, check_same_length
from fairagent.types import FloatArray

DECIMALS = 12
"""What lies below this decimal of a gap is rounding."""


def group_exposure(memberships: FloatArray, weights: FloatArray) -> FloatArray:
    """The share of exposure that each group gets, shape (g,); the shares add up to 1.

    `memberships` (n, g) holds a row a document in rank order, `weights` (n,) the weight of each rank, such
    as `LOG2_MAX2(n)`; both are 0 or more. Share g is sum_k w_k a_kg divided by its sum over g, so rows that
    do not add up to 1 count by their mass, and an all-zero row not at all. No mass (an empty ranking, no
    weight) gives zeros.
    Source: TREC Fair Ranking 2022, Task 1, the exposure inside AWRF.

    Raises DataError for shapes that do not fit and for negative, nan or infinite numbers.

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

    Raises DataError where `shares` is not (g,) or a share is negative, nan or infinite.

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


def gaps(shares: FloatArray, target: FloatArray) -> FloatArray:
    """What each group lacks: target - shares, shape (g,), in [-1, 1]; positive means under-exposed.

    Raises DataError where the shapes differ or a share is negative, nan or infinite.

    >>> import numpy as np
    >>> gaps(np.array([0.25, 0.75]), np.array([0.5, 0.5])).tolist()
    [0.25, -0.25]
    """
    shares, target = as_vector(shares, "shares"), as_vector(target, "target")
    check_same_length(shares, target, "shares and target")
    check_nonnegative(shares, "shares")
    check_nonnegative(target, "target")
    return target - shares


def most_underexposed(shares: Sequence[FloatArray], targets: Sequence[FloatArray]) -> tuple[int, int] | None:
    """The places (dimension, group) of the known group that lacks most exposure, of all dimensions; None where none.

    `shares` and `targets` hold an array (g,) a dimension, as `known_part` gives them. It is the group with the largest
    target - share, both rounded to the 12th decimal. Ties go to the larger target, then to the first dimension and
    group; a group with target 0 is never chosen.

    Where nothing in a dimension is labeled, its shares are all zero and its groups lack their whole target: a loop has
    to look for some group then. FAIR-QR's reference values name no group there, since the exposure is not known.

    Raises DataError as `gaps` does.

    >>> import numpy as np
    >>> gender, region = np.array([0.6, 0.4]), np.array([0.7, 0.1, 0.2])
    >>> most_underexposed([gender, region], [np.array([0.5, 0.5]), np.array([0.4, 0.3, 0.3])])
    (1, 1)
    """
    lacking = [
        (round(gap, DECIMALS), due, -dimension, -group)
        for dimension, (of_groups, target) in enumerate(zip(shares, targets, strict=True))
        for group, (gap, due) in enumerate(zip(gaps(of_groups, target).tolist(), target.tolist(), strict=True))
    ]
    most, _, dimension, group = max(lacking, default=(0.0, 0.0, 0, 0))
    return (-dimension, -group) if most > 0 else None
