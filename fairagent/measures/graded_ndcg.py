"""nDCG with graded relevance and linear or exponential gain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

import numpy as np

from fairagent.measures.checks import check_cutoff
from fairagent.measures.discounts import Log2Plus1
from fairagent.types import FloatArray

Gain = Literal["linear", "exponential"]

GAINS: Mapping[Gain, Callable[[FloatArray], FloatArray]] = {
    "linear": lambda grades: grades,
    "exponential": lambda grades: np.exp2(grades) - 1,
}
"""What a grade is worth: itself (trec_eval), or 2^grade - 1."""


def graded_ndcg(ranking: Sequence[str], grades: Mapping[str, int], n: int, gain: Gain = "linear") -> float | None:
    """NDCG of the first `n` documents, in [0, 1]: gains by grade, the discount 1 / log2(rank + 1), ranks from 1.

    `grades` are all judgments of the topic; what is not judged, or below 0, is worth 0. None where no document is worth
    anything: then nDCG is not defined. An empty ranking scores 0, a short one is not padded. The linear variant is
    trec_eval's ndcg_cut; ir-measures has it too, but the exponential one only through other programs.
    Source: Jarvelin & Kekalainen 2002 (linear), Burges et al. 2005 (exponential).

    Raises DataError where n is below 1.

    >>> round(graded_ndcg(["b", "x", "a"], {"a": 3, "b": 1, "c": 0}, 10), 4)
    0.6885
    """
    check_cutoff(n)
    best = _dcg(sorted(grades.values(), reverse=True), n, gain)
    return _dcg((grades.get(id, 0) for id in ranking), n, gain) / best if best else None


def _dcg(grades: Iterable[int], n: int, gain: Gain) -> float:
    worth = GAINS[gain](np.maximum(np.array(list(grades)[:n], dtype=np.float64), 0.0))
    return float(worth @ Log2Plus1()(len(worth)))
