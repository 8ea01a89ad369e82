"""nDCG: gains and a discount, in its named variants.

ndcg            binary relevance with any discount; TREC Fair Ranking's with its default, 1 / log2(max(rank, 2))
graded_ndcg     grades with linear or exponential gain and the discount 1 / log2(rank + 1), as trec_eval
normalized_gain the binary one of many topics at once, from what each has gained
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairagent.errors import DataError, UsageError
from fairagent.measures.base import JudgedRanking, Measure, check_choice, check_cutoff
from fairagent.measures.discounts import LOG2_MAX2, Discount, Log2Plus1
from fairagent.types import FloatArray

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

    `relevant` (m,) of bool says which documents are relevant, in rank order; `n_relevant` is how many distinct relevant
    documents the topic has. The weights of relevant ranks are added up and divided by those of ranks
    1..min(n, n_relevant). An empty ranking scores 0, a short one is not padded. A document that is listed twice counts
    twice and can lift the value above 1: distinct ids are the caller's.
    Source: TREC Fair Ranking 2022.

    Raises DataError where n or n_relevant is below 1 (a topic without relevant documents has no nDCG: count it and
    leave it out) and where `relevant` is not a vector of bool.

    >>> import numpy as np
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
    anything: then nDCG is not defined. An empty ranking scores 0, a short one is not padded. The linear variant is
    trec_eval's ndcg_cut. Raises DataError where n is below 1.
    Source: Jarvelin & Kekalainen 2002 (linear), Burges et al. 2005 (exponential).

    >>> round(graded_ndcg(["b", "x", "a"], {"a": 3, "b": 1, "c": 0}, 10), 4)
    0.6885
    """
    check_cutoff(n)
    if max(grades.values(), default=0) <= 0:
        return None
    of_ranking = np.array([grades.get(id, 0) for id in ranking], dtype=np.float64)
    return _graded(of_ranking, np.array([*grades.values()], dtype=np.float64), n, gain, Log2Plus1())


def _graded(grades: FloatArray, judgments: FloatArray, n: int, gain: Gain, discount: Discount) -> float:
    """The discounted gains of a ranking's `grades` (m,), over those of the best order of the `judgments` (j,)."""
    sides = (GAINS[gain](np.maximum(side, 0.0))[:n] for side in (grades, np.sort(judgments)[::-1]))
    gained, ideal = (float((discount(len(side)) * side).sum()) for side in sides)
    return gained / ideal


@dataclass(frozen=True)
class NDCG(Measure):
    """nDCG at cut-off `n` (>= 1) as a measure, in its variants by `gain` and `discount`.

    `nDCG@20` is that of TREC Fair Ranking: a document is relevant or not, the discount 1 / log2(max(rank, 2)).
    trec_eval's is `nDCG(discount=log2-plus1, gain=linear)@20`; gain `exponential` is that of Burges et al. 2005.

    >>> print(NDCG(20), NDCG(20, Log2Plus1(), "linear"))
    nDCG(discount=log2-max2)@20 nDCG(discount=log2-plus1, gain=linear)@20
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
