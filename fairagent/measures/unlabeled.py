"""What labels cannot see: the exposure of documents that have none."""

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from fairagent.errors import DataError, UsageError
from fairagent.measures.checks import check_cutoff
from fairagent.measures.discounts import LOG2_MAX2, Discount
from fairagent.measures.exposure import group_exposure
from fairagent.measures.measure import JudgedRanking, Measure

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
        if self.of not in get_args(Of):
            raise UsageError(f"unlabeled: of is {self.of!r}, expected one of: {', '.join(get_args(Of))}")

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
