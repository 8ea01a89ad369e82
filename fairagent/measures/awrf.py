"""AWRF: attention-weighted rank fairness, the group fairness measure of the TREC Fair Ranking track."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import DataError
from fairagent.measures.base import (
    JudgedRanking,
    Measure,
    as_distribution,
    as_memberships,
    check_choice,
    check_cutoff,
    check_nonnegative,
)
from fairagent.measures.discounts import LOG2_MAX2, Discount
from fairagent.measures.divergence import jensen_shannon
from fairagent.measures.exposure import group_exposure, known_part
from fairagent.types import FloatArray

Unknown = Literal["group", "ignore"]
Log = Literal["e", "2"]

_BASES: dict[str, float] = {"e": math.e, "2": 2.0}


def awrf(
    memberships: FloatArray,
    target: FloatArray,
    n: int,
    discount: Discount = LOG2_MAX2,
    unknown: Unknown = "group",
    base: float = math.e,
    known: NDArray[np.bool_] | None = None,
) -> float:
    """1 - the Jensen-Shannon divergence of the first `n` ranks' group exposure from the target.

    In [1 - ln 2, 1] = [0.3069, 1] with the natural logarithm, in [0, 1] with `base` 2; 1 is exactly the target.
    `memberships` (m, g) holds a row a document in rank order, `target` (g,) the shares that add up to 1 (within 1e-6),
    both with column 0 `UNKNOWN`; for several dimensions both are over all combinations, see `joint_memberships`.
    `known` (m,) is False for documents without a group record: they are dropped with their weight, but the others keep
    their ranks. `unknown` = "group" counts UNKNOWN as a group like any other; "ignore" leaves documents without a label
    out of both sides (column 0; of several dimensions, those without a label in any). A ranking shorter than `n` is
    measured as it is.
    Source: TREC Fair Ranking 2022 guidelines and code, Task 1 (2021 ignored the unknown).

    Raises DataError where one side has no mass (nothing ranked, or nothing with a label or record), for shapes that do
    not fit, negative, nan or infinite numbers, a target that does not add up to 1, and n < 1.

    >>> import numpy as np
    >>> ranking = np.array([[0, 0, 1, 0], [1, 0, 0, 0], [0, 1, 0, 0]])  # unknown, female, male, NB
    >>> round(awrf(ranking, np.array([0.25, 0.310625, 0.435625, 0.00375]), n=500), 6)
    0.988707
    """
    check_cutoff(n)
    rows = as_memberships(memberships)[:n]
    target = as_distribution(target, "target")
    if target.size != rows.shape[1]:
        raise DataError(f"memberships have {rows.shape[1]} groups and target {target.size}, expected the same")
    weights = discount(rows.shape[0])
    if known is not None:
        mask, m = np.asarray(known), np.shape(memberships)[:1]
        if mask.shape != m or (mask.size and mask.dtype != np.bool_):
            raise DataError(f"known is {mask.dtype} of shape {mask.shape}, expected bool of shape {m}")
        recorded = mask.astype(np.bool_)[:n]
        rows, weights = rows[recorded], weights[recorded]
    exposure = group_exposure(rows, weights)
    check_choice("AWRF: unknown", unknown, get_args(Unknown))
    if unknown == "ignore":
        exposure, target = known_part(exposure), known_part(target)
    for side, shares in (("ranking", exposure), ("target", target)):
        if not shares.any():
            raise DataError(
                f"AWRF is not defined: the {side} has no mass on any "
                f"{'known ' if unknown == 'ignore' else ''}group; count the topic and leave it out"
            )
    return 1.0 - jensen_shannon(exposure, target, base=base)


def joint_memberships(rows: Sequence[FloatArray]) -> FloatArray:
    """The memberships in all combinations of dimensions: (n, g_1), (n, g_2) ... -> (n, g_1 * g_2 * ...).

    Row by row the outer product, the last dimension running fastest; of one dimension, that dimension itself. Column 0
    is the combination in which every dimension is UNKNOWN. Where all rows add up to 1, summing over a dimension's
    groups gives the joint of the others.

    Raises DataError where there is no dimension, shapes do not fit, or a number is negative, nan or infinite.

    >>> import numpy as np
    >>> joint_memberships([np.array([[0.5, 0.5]]), np.array([[0.2, 0, 0.8]])]).tolist()
    [[0.1, 0.0, 0.4, 0.1, 0.0, 0.4]]
    """
    dimensions = [as_memberships(row) for row in rows]
    if len({len(dimension) for dimension in dimensions}) != 1:
        raise DataError(
            f"dimensions with {[len(dimension) for dimension in dimensions]} documents cannot be joined; "
            "expected one or more dimensions, each with a row for the same documents"
        )
    for index, dimension in enumerate(dimensions):
        check_nonnegative(dimension, f"memberships of dimension {index}")
    joint = dimensions[0]
    for dimension in dimensions[1:]:
        groups = joint.shape[1] * dimension.shape[1]
        joint = (joint[:, :, None] * dimension[:, None, :]).reshape(len(joint), groups)
    return joint


@dataclass(frozen=True)
class AWRF(Measure):
    """AWRF at cut-off `n` (>= 1) as a measure; `log` names the logarithm of the divergence, "e" or "2".

    `AWRF@20` is that of TREC Fair Ranking 2022: documents without a label are a group of their own, with its share of
    the target. `AWRF(unknown=ignore)@20` leaves them out of both sides.

    >>> print(AWRF(20))
    AWRF(discount=log2-max2, log=e, unknown=group)@20
    """

    name: ClassVar[str] = "AWRF"
    of_groups: ClassVar[bool] = True
    n: int
    discount: Discount = LOG2_MAX2
    log: Log = "e"
    unknown: Unknown = "group"

    def __post_init__(self) -> None:
        check_cutoff(self.n)
        check_choice("AWRF: log", self.log, get_args(Log))
        check_choice("AWRF: unknown", self.unknown, get_args(Unknown))

    @property
    def needs_labels(self) -> bool:  # type: ignore[override]
        """Whether unknown is no group."""
        return self.unknown == "ignore"

    def __call__(self, judged: JudgedRanking) -> float:
        """`awrf` of the judged ranking, in [1 - ln 2, 1] (log e) or [0, 1] (log 2).

        A ranking that shows nothing to any group that counts (an empty one too) is as far from the target as can be:
        it has the lowest value, as the track has it for a ranking without any page that it knows.
        """
        memberships, target = judged.groups_for(self)
        shown = memberships[: self.n]
        if judged.known is not None:
            shown = shown[judged.known[: self.n]]
        if not np.any(shown[:, int(self.needs_labels) :]):
            return 1.0 - math.log(2.0) / math.log(_BASES[self.log])
        return awrf(memberships, target, self.n, self.discount, self.unknown, _BASES[self.log], judged.known)
