"""The gap between a ranking's exposure and the target, as a measure."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fairagent.errors import DataError, UsageError
from fairagent.measures.checks import check_cutoff
from fairagent.measures.discounts import LOG2_MAX2, Discount
from fairagent.measures.divergence import DIVERGENCES
from fairagent.measures.exposure import group_exposure, known_part
from fairagent.measures.measure import JudgedRanking, Measure

SMOOTHING = 1e-6
"""Added to every share before a divergence is taken (FAIR-QR leaves its smoothing unsaid)."""


@dataclass(frozen=True)
class Gap(Measure):
    """The divergence of the first `n` ranks' exposure from the target, over the known groups: what the agent lowers.

    `divergence` is one of `DIVERGENCES`; with `kl` the gap is in nats, 0 or more. A ranking that shows no labeled
    document has the largest gap there is, that of all exposure on the group with the smallest target.

    >>> import numpy as np
    >>> rows, due = np.array([[0, 1.0, 0], [0, 0, 1.0]]), np.array([0, 0.5, 0.5])
    >>> shown = JudgedRanking(np.zeros(2, dtype=bool), 0, rows, due)
    >>> round(Gap(2)(shown), 6), round(Gap(1)(shown), 4)
    (0.0, 0.6931)
    """

    name: ClassVar[str] = "gap"
    of_groups: ClassVar[bool] = True
    lower_is_better: ClassVar[bool] = True
    about: ClassVar[str] = "the divergence of the known groups' exposure from the target; lower is fairer"
    n: int
    discount: Discount = LOG2_MAX2
    divergence: str = "kl"

    def __post_init__(self) -> None:
        check_cutoff(self.n)
        if self.divergence not in DIVERGENCES:
            raise UsageError(f"gap: divergence is {self.divergence!r}, expected one of: {', '.join(DIVERGENCES)}")

    def __call__(self, judged: JudgedRanking) -> float:
        """The divergence; raises DataError where there are no memberships, or no known group has a target."""
        if judged.memberships is None or judged.target is None:
            raise DataError(f"{self} needs memberships and a target, and the judged ranking has none")
        rows, due = judged.memberships[: self.n], known_part(judged.target)
        shares = known_part(group_exposure(rows, self.discount(len(rows))))
        if not shares.any():
            shares = np.eye(len(due))[due.argmin()]
        return DIVERGENCES[self.divergence](shares, due, SMOOTHING)
