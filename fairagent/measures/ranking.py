"""Measures of rankings: nDCG, and of groups AWRF, NDKL and the share of what has no label."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairagent.errors import DataError, UsageError
from fairagent.measures.base import (
    LOG2_MAX2,
    LOG2_PLUS1,
    Discount,
    JudgedRanking,
    Measure,
    as_distribution,
    as_memberships,
    check_choice,
    check_cutoff,
    check_nonnegative,
)
from fairagent.measures.exposure import SMOOTHING, group_exposure, jensen_shannon, known_part
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
    `memberships` (m, g) has a row a document in rank order, `target` (g,) adds up to 1, both with column 0 `UNKNOWN`.
    Documents whose `known` (m,) is False are dropped, the others keep their ranks. `unknown` = "group" counts UNKNOWN
    as a group like any other; "ignore" leaves documents without a label out of both sides. Raises DataError where one
    side has no mass, and for arguments out of form. Source: TREC Fair Ranking 2022, Task 1 (2021 ignored the unknown).

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

    Row by row the outer product, the last dimension running fastest; column 0 is UNKNOWN in every dimension. Raises
    DataError where there is no dimension, and for arguments out of form.

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
    """AWRF at cut-off `n` (>= 1); `log` names the logarithm of the divergence, "e" or "2".

    `AWRF@20` is that of TREC Fair Ranking 2022; `AWRF(unknown=ignore)@20` leaves documents without a label out.
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
        """`awrf` of the judged ranking; one that shows no group that counts has the lowest value, as in the track."""
        memberships, target = judged.groups_for(self)
        shown = memberships[: self.n]
        if judged.known is not None:
            shown = shown[judged.known[: self.n]]
        if not np.any(shown[:, int(self.needs_labels) :]):
            return 1.0 - math.log(2.0) / math.log(_BASES[self.log])
        return awrf(memberships, target, self.n, self.discount, self.unknown, _BASES[self.log], judged.known)


Gain = Literal["linear", "exponential"]
GAINS: Mapping[Gain, Callable[[FloatArray], FloatArray]] = {
    "linear": lambda grades: grades,
    "exponential": lambda grades: np.exp2(grades) - 1,
}
"""What a grade is worth: itself (trec_eval), or 2^grade - 1."""


def normalized_gain(gained: ArrayLike, relevant: NDArray[np.int64], n: int, discount: Discount) -> FloatArray:
    """What topics have `gained` (t,), the weights of relevant ranks, over those of the best ranking of `n`, (t,).

    `relevant` (t,) counts the relevant documents of each topic; nan for a topic without any.
    """
    longest = min(n, int(relevant.max()))  # no ranking is better than one of all relevant documents
    ideal = np.concatenate(([np.nan], discount(longest).cumsum()))
    return np.asarray(gained, dtype=np.float64) / ideal[np.minimum(longest, relevant)]


def ndcg(relevant: NDArray[np.bool_], n_relevant: int, n: int, discount: Discount = LOG2_MAX2) -> float:
    """Normalized discounted cumulative gain of the first `n` ranks with binary relevance, in [0, 1].

    `relevant` (m,) of bool is in rank order; `n_relevant` is how many relevant documents the topic has. The weights of
    relevant ranks are divided by those of ranks 1..min(n, n_relevant). An empty ranking scores 0. Raises DataError
    where n or n_relevant is below 1. Source: TREC Fair Ranking 2022.

    >>> round(ndcg(np.array([True, False, True]), n_relevant=4, n=500), 6)
    0.520909
    """
    relevant = np.asarray(relevant)
    if relevant.ndim != 1 or (relevant.size and relevant.dtype != np.bool_):
        raise DataError(f"relevant is {relevant.dtype} of shape {relevant.shape}, expected bool of shape (n,)")
    check_cutoff(n)
    if n_relevant < 1:
        raise DataError(f"nDCG is not defined with {n_relevant} relevant documents; count the topic and leave it out")
    gained = float(discount(min(n, relevant.size))[relevant[:n].astype(np.bool_)].sum())
    return float(normalized_gain(gained, np.array(n_relevant), n, discount))


def graded_ndcg(ranking: Sequence[str], grades: Mapping[str, int], n: int, gain: Gain = "linear") -> float | None:
    """NDCG of the first `n` documents, in [0, 1]: gains by grade, the discount 1 / log2(rank + 1), ranks from 1.

    `grades` are all judgments of the topic; what is not judged, or below 0, is worth 0. None where no document is worth
    anything. An empty ranking scores 0. The linear variant is trec_eval's ndcg_cut. Raises DataError where n is below
    1. Source: Jarvelin & Kekalainen 2002 (linear), Burges et al. 2005 (exponential).

    >>> round(graded_ndcg(["b", "x", "a"], {"a": 3, "b": 1, "c": 0}, 10), 4)
    0.6885
    """
    check_cutoff(n)
    if max(grades.values(), default=0) <= 0:
        return None
    of_ranking = np.array([grades.get(id, 0) for id in ranking], dtype=np.float64)
    return _graded(of_ranking, np.array([*grades.values()], dtype=np.float64), n, gain, LOG2_PLUS1)


def _graded(grades: FloatArray, judgments: FloatArray, n: int, gain: Gain, discount: Discount) -> float:
    """The discounted gains of a ranking's `grades` (m,), over those of the best order of the `judgments` (j,)."""
    sides = (GAINS[gain](np.maximum(side, 0.0))[:n] for side in (grades, np.sort(judgments)[::-1]))
    gained, ideal = (float((discount(len(side)) * side).sum()) for side in sides)
    return gained / ideal


@dataclass(frozen=True)
class NDCG(Measure):
    """nDCG at cut-off `n` (>= 1), in its variants by `gain` and `discount`.

    `nDCG@20` is that of TREC Fair Ranking, trec_eval's is `nDCG(discount=log2-plus1, gain=linear)@20`.
    """

    name: ClassVar[str] = "nDCG"
    n: int
    discount: Discount = LOG2_MAX2
    gain: Literal["binary", Gain] = field(default="binary", metadata={"implied": True})

    def __post_init__(self) -> None:
        check_cutoff(self.n)
        if self.discount.rises:
            raise UsageError(f"nDCG: the weights of {self.discount} rise again, so that no ranking is the best one")
        check_choice("nDCG: gain", self.gain, ("binary", *GAINS))

    def __call__(self, judged: JudgedRanking) -> float:
        """NDCG of the judged ranking, in [0, 1]; DataError where it has no grades and the gain needs them."""
        if self.gain == "binary":
            return ndcg(judged.relevant, judged.n_relevant, self.n, self.discount)
        if judged.grades is None or judged.judgments is None:
            raise DataError(f"{self} needs grades, and the judged ranking has none")
        if not (judged.judgments > 0).any():
            raise DataError("nDCG is not defined: no judged document is worth anything; leave the topic out")
        return _graded(np.nan_to_num(judged.grades), judged.judgments, self.n, self.gain, self.discount)


def ndkl(memberships: FloatArray, target: FloatArray, n: int) -> float:
    """NDKL: the mean of KL(shares of ranks 1..i, target) over the prefixes i <= n, weighted by 1 / log2(i + 1).

    In nats; 0 is the target in every prefix. `memberships` (m, 1 + g) has a row a document in rank order, `target` (1 +
    g,) adds up to 1; column 0 `UNKNOWN` is left out of both sides, and prefixes before the first label out of the mean.
    A target of 0 counts as 1e-6, so that a document of such a group costs much, and not infinitely much. Raises
    DataError where no prefix has a label or the target no mass, and for arguments out of form. Source: Geyik et al.,
    KDD 2019.

    Shares of (1, 0) and (1/2, 1/2) where half each is due: (ln 2 + 0 / log2 3) / (1 + 1 / log2 3).

    >>> rows, due = np.array([[0, 1.0, 0], [0, 0, 1.0]]), np.array([0, 0.5, 0.5])
    >>> round(ndkl(rows, due, n=2), 6)
    0.425001
    """
    check_cutoff(n)
    rows, due = as_memberships(memberships)[:n], as_distribution(target, "target")
    check_nonnegative(rows, "memberships")
    if due.size != rows.shape[1]:
        raise DataError(f"memberships have {rows.shape[1]} groups and target {due.size}, expected the same")
    rows, due = rows[:, 1:], due[1:]
    if not due.sum() > 0:
        raise DataError("the target has no mass on any known group; leave the topic out or use another target")
    mass, due = np.cumsum(rows, axis=0), due / due.sum()
    weights = LOG2_PLUS1(len(mass))
    some = mass.sum(axis=1) > 0
    if not some.any():
        raise DataError("NDKL is not defined: nothing that is ranked has a group that counts; leave the topic out")
    shown = mass[some] / mass[some].sum(axis=1, keepdims=True)
    due = np.maximum(due, SMOOTHING)
    divergences = (shown * np.log(np.where(shown > 0, shown, 1) / (due / due.sum()))).sum(axis=1)
    return max(0.0, float(weights[some] @ divergences / weights[some].sum()))


@dataclass(frozen=True)
class NDKL(Measure):
    """`ndkl` at cut-off `n` (>= 1) as a measure, in nats; lower is fairer."""

    name: ClassVar[str] = "NDKL"
    of_groups: ClassVar[bool] = True
    lower_is_better: ClassVar[bool] = True
    about: ClassVar[str] = "the divergence of the groups' shares of each prefix from the target; lower is fairer"
    n: int

    def __post_init__(self) -> None:
        check_cutoff(self.n)

    def __call__(self, judged: JudgedRanking) -> float:
        """The value; raises DataError as `ndkl` does, and without memberships and target."""
        memberships, target = judged.groups_for(self)
        rows = as_memberships(memberships)
        if judged.known is not None:  # a document without a group record is one without a label
            known: NDArray[np.bool_] = np.asarray(judged.known, dtype=np.bool_)
            rows = np.where(known[:, None], rows, np.eye(1, rows.shape[1]))
        return ndkl(rows, target, self.n)


Of = Literal["all", "type"]


@dataclass(frozen=True)
class Unlabeled(Measure):
    """The share of the first `n` ranks' exposure that goes to documents without a label of the dimension, in [0, 1].

    With `of` = "type" only those count that are of the dimension's type: a person of unknown gender, and not a page
    about a river. It describes a ranking: neither more nor less of it is better. Nothing shown gives 0.

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
