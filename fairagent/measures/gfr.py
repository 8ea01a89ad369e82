"""GFR: group fairness and relevance of the NTCIR FairWeb tasks, for nominal and ordinal groups.

A reader goes down the ranking and stops at a relevant document; where they stop, what they have seen by then is
compared with the target. Sources: Sakai, Kim & Kang, TOIS 2023 (arXiv 2204.00280); NTCIREVAL 230128 (GFRcompute).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from fairagent.errors import DataError, UsageError
from fairagent.measures.base import (
    JudgedRanking,
    Measure,
    as_memberships,
    as_shares,
    as_vector,
    check_choice,
    check_cutoff,
    check_nonnegative,
)
from fairagent.measures.divergence import jensen_shannon, normalized_match_distance, order_aware_divergence
from fairagent.measures.exposure import group_exposure, known_part
from fairagent.types import FloatArray

Relevance = Literal["err", "irbu", "none"]
Unlabeled = Literal["ignore", "uniform"]

SIMILARITY: Mapping[str, Callable[[FloatArray, FloatArray], float]] = {
    "jsd": lambda shown, target: 1.0 - jensen_shannon(shown, target, base=2),
    "nmd": lambda shown, target: 1.0 - normalized_match_distance(shown, target),
    "rnod": lambda shown, target: 1.0 - order_aware_divergence(shown, target),
}
"""1 - divergence, in [0, 1]: jsd for nominal groups, nmd and rnod for ordinal ones."""

PATIENCE = 0.99
"""How much of iRBU is left a rank further down."""


def stopping(grades: ArrayLike, highest: int = 1) -> FloatArray:
    """The probability (n,) that a reader stops at each rank: p_k prod_{j < k} (1 - p_j), p = (2^grade - 1) / 2^highest.

    `grades` (n,) of 0 or more, in rank order; `highest` (>= 1) is the highest grade there is. The sum is at most 1;
    the rest is of readers who never stop. Raises DataError for a grade that is no such number.
    Source: Chapelle et al., CIKM 2009 (ERR); NTCIREVAL with the gains 2^grade - 1 (`-g 1:3`).

    >>> stopping([2, 0, 1], highest=2).tolist()
    [0.75, 0.0, 0.0625]
    """
    levels = np.asarray(grades, dtype=np.float64)
    if levels.ndim != 1:
        raise DataError(f"grades have shape {levels.shape}, expected (n,)")
    check_nonnegative(levels, "grades")
    if highest < 1 or (levels.size and levels.max() > highest):
        raise DataError(f"the highest grade is {highest}, but a document has {levels.max(initial=0):g}")
    stops = (np.exp2(levels) - 1.0) / 2.0**highest
    left = np.cumprod(np.concatenate(([1.0], 1.0 - stops)))[:-1]
    return stops * left


def err(stop: ArrayLike) -> float:
    """ERR, in [0, 1): sum_k stop_k / k, with `stop` (n,) as `stopping` gives it.

    >>> err(stopping([2, 0, 1], highest=2)).__round__(6)
    0.770833
    """
    weights = _stop(stop)
    return float((weights / np.arange(1, weights.size + 1)).sum())


def irbu(stop: ArrayLike, patience: float = PATIENCE) -> float:
    """Intentwise rank-biased utility (iRBU), in [0, 1): sum_k stop_k patience^k; the default is NTCIREVAL's.

    Source: Sakai & Zeng, SIGIR 2019.

    >>> irbu(stopping([2, 0, 1], highest=2)).__round__(6)
    0.803144
    """
    weights = _stop(stop)
    return float((weights * np.power(patience, np.arange(1, weights.size + 1))).sum())


def group_fairness(
    memberships: FloatArray,
    target: FloatArray,
    stop: ArrayLike,
    divergence: str = "jsd",
    unknown: Unlabeled = "ignore",
) -> float:
    """GF, the group fairness part of GFR, in [0, 1): sum_k stop_k (1 - divergence of ranks 1..k from the target).

    `memberships` (n, 1 + g) and `target` (1 + g,) have column 0 `UNKNOWN`; the groups are in their order, where they
    have one. `stop` (n,) is `stopping`'s. `divergence` is jsd (base 2), nmd or rnod. What ranks 1..k show is the mean
    of their rows, all ranks alike. `unknown` = "ignore" leaves the unknown out of both sides, as AWRF(unknown=ignore);
    a reader who has seen no label yet finds a similarity of 0. "uniform" shares the unknown out evenly among the
    groups, as NTCIREVAL does with documents that have no memberships. A ranking without relevant documents scores 0.

    Raises DataError where the target has no known mass, for shapes that do not fit, and for numbers that are no
    memberships or probabilities; UsageError for an unknown divergence.

    >>> import numpy as np
    >>> levels = np.array([[0, 1, 0, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 1]])
    >>> even = np.array([0, 0.25, 0.25, 0.25, 0.25])
    >>> group_fairness(levels, even, stopping([2, 0, 1], highest=2), "nmd", "uniform").__round__(6)
    0.430556
    """
    check_choice("GFR: divergence", divergence, tuple(SIMILARITY))
    check_choice("GFR: unknown", unknown, get_args(Unlabeled))
    rows, weights, due = as_memberships(memberships), _stop(stop), known_part(as_vector(target, "target"))
    check_nonnegative(rows, "memberships")
    if rows.shape != (weights.size, due.size + 1):
        raise DataError(f"memberships have shape {rows.shape}, expected {(weights.size, due.size + 1)}: (n, 1 + g)")
    if not due.any():
        raise DataError("GFR is not defined: the target has no mass on any known group; leave the topic out")
    known = rows[:, 1:] + (rows[:, :1] / due.size if unknown == "uniform" else 0.0)
    similarity, total = SIMILARITY[divergence], 0.0
    for rank in np.flatnonzero(weights):
        shown = group_exposure(known[: rank + 1], np.ones(rank + 1))
        total += float(weights[rank]) * (similarity(shown, due) if shown.any() else 0.0)
    return total


def _stop(values: ArrayLike) -> FloatArray:
    return as_shares(values, "stop") if np.size(values) else np.zeros(0)


@dataclass(frozen=True)
class GFR(Measure):
    """GFR at cut-off `n` (>= 1): the mean of relevance and group fairness, (ERR + GF) / 2, in [0, 1).

    `relevance` = "irbu" takes iRBU in the place of ERR, and "none" leaves GF alone. A task that looks at several
    dimensions takes the mean of relevance and of all GFs; here a dimension has a value of its own. `divergence` is jsd
    for nominal groups, nmd or rnod for ordinal ones, whose order is that of the dimension's labels. Documents without
    a label are left out as by AWRF(unknown=ignore), or count as evenly spread (`unknown` = "uniform", NTCIREVAL).
    With `highest` 1 relevance is binary, and a relevant document stops half of the readers. With 2 or more, judgments
    are grades up to `highest` (FairWeb has 2), which stop (2^grade - 1) / 2^highest of them.

    >>> print(GFR(20, divergence="rnod"))
    GFR(divergence=rnod, relevance=err, unknown=ignore)@20
    """

    name: ClassVar[str] = "GFR"
    of_groups: ClassVar[bool] = True
    n: int
    divergence: str = "jsd"
    relevance: Relevance = "err"
    unknown: Unlabeled = "ignore"
    highest: int = field(default=1, metadata={"implied": True})

    def __post_init__(self) -> None:
        check_cutoff(self.n)
        if not str(self.highest).isdecimal() or int(self.highest) < 1:
            raise UsageError(f"GFR: highest is {self.highest!r}, expected a grade: 1 or more")
        object.__setattr__(self, "highest", int(self.highest))  # a definition has it as text
        check_choice("GFR: divergence", self.divergence, tuple(SIMILARITY))
        check_choice("GFR: relevance", self.relevance, get_args(Relevance))
        check_choice("GFR: unknown", self.unknown, get_args(Unlabeled))

    @property
    def of_relevance(self) -> bool:
        """It does: readers stop at relevant documents."""
        return True

    def __call__(self, judged: JudgedRanking) -> float:
        """The value; DataError without memberships and target, and for a topic without relevant documents."""
        memberships, target = judged.groups_for(self)
        if judged.n_relevant < 1:
            raise DataError(f"GFR is not defined with {judged.n_relevant} relevant documents; leave the topic out")
        stop = stopping(self._grades(judged)[: self.n], self.highest)
        rows = as_memberships(memberships)[: self.n]
        if judged.known is not None:
            # Whoever has no group record is of no known group.
            without = ~np.asarray(judged.known, dtype=np.bool_)[: self.n]
            rows = np.where(without[:, None], np.eye(1, rows.shape[1]), rows)
        fairness = group_fairness(rows, target, stop, self.divergence, self.unknown)
        if self.relevance == "none":
            return fairness
        return ((err if self.relevance == "err" else irbu)(stop) + fairness) / 2.0

    def _grades(self, judged: JudgedRanking) -> FloatArray:
        if self.highest == 1:
            return judged.relevant.astype(np.float64)
        if judged.grades is None:
            raise DataError(f"{self} needs grades, and the judged ranking has none")
        # What is not judged, or is judged below 0, stops nobody.
        return np.maximum(np.nan_to_num(judged.grades), 0.0)
