"""nDCG with binary relevance and linear gain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import DataError, UsageError
from fairagent.measures.checks import check_cutoff
from fairagent.measures.discounts import LOG2_MAX2, Discount, Ends
from fairagent.measures.measure import JudgedRanking, Measure


def ndcg(relevant: NDArray[np.bool_], n_relevant: int, n: int, discount: Discount = LOG2_MAX2) -> float:
    """Normalized discounted cumulative gain of the first `n` ranks, in [0, 1].

    `relevant` (m,) of bool says which documents are relevant, in rank order; `n_relevant` is how many
    distinct relevant documents the topic has. The weights of relevant ranks are added up and divided by
    those of ranks 1..min(n, n_relevant), the best ranking there is. An empty ranking scores 0, a short one
    is not padded. A document that is listed twice counts twice and can lift the value above 1: distinct ids
    are the caller's.
    Source: TREC Fair Ranking 2022; for graded relevance there is ir-measures.

    Raises DataError where n or n_relevant is below 1 (a topic without relevant documents has no nDCG: count
    it and leave it out) and where `relevant` is not a vector of bool.

    >>> import numpy as np
    >>> round(ndcg(np.array([True, False, True]), n_relevant=4, n=500), 6)
    0.520909
    """
    check_cutoff(n)
    relevant = np.asarray(relevant)
    if relevant.ndim != 1 or (relevant.size and relevant.dtype != np.bool_):
        raise DataError(f"relevant is {relevant.dtype} of shape {relevant.shape}, expected bool of shape (n,)")
    if n_relevant < 1:
        raise DataError(f"nDCG is not defined with {n_relevant} relevant documents; count the topic and leave it out")
    relevant = relevant[:n].astype(np.bool_)
    gain = float(discount(relevant.size)[relevant].sum())
    return gain / float(discount(min(n, n_relevant)).sum())


@dataclass(frozen=True)
class NDCG(Measure):
    """nDCG at cut-off `n` (>= 1) as a measure.

    >>> print(NDCG(20))
    nDCG(discount=log2-max2)@20
    """

    name: ClassVar[str] = "nDCG"
    n: int
    discount: Discount = LOG2_MAX2

    def __post_init__(self) -> None:
        check_cutoff(self.n)
        if isinstance(self.discount, Ends):
            raise UsageError(f"nDCG: the weights of {self.discount} rise again, so that no ranking is the best one")

    def __call__(self, judged: JudgedRanking) -> float:
        """`ndcg` of the judged ranking, in [0, 1]."""
        return ndcg(judged.relevant, judged.n_relevant, self.n, self.discount)
