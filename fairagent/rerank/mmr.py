"""Maximal marginal relevance: relevant, and unlike what is above (Carbonell & Goldstein 1998)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import UsageError
from fairagent.rerank.base import Pool, min_max
from fairagent.rerank.similarity import Similarity
from fairagent.retrieve.placed import placed
from fairagent.types import FloatArray, Ranking


@dataclass(frozen=True, slots=True)
class MMRReranker:
    """Greedy: at each rank the document with the best mix of relevance and novelty.

    `similarity` says what alike means: by text (`ByTerms`, `ByEmbeddings`) or by group (`ByGroups`, the fairness
    variant). `relevance` in [0, 1] is the weight of the min-max score; 1 is the order of the candidates.
    """

    similarity: Similarity
    relevance: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.relevance <= 1:
            raise UsageError(f"MMR: the weight of relevance is from 0 to 1, not {self.relevance}")

    def rerank(self, pool: Pool) -> Ranking:
        """The best `pool.n` candidates."""
        n = min(pool.n, len(pool.ranking))
        order = mmr(min_max(pool.ranking.scores), self.similarity(pool), self.relevance, n) if n else []
        return placed(pool.ranking.ids, order)


def mmr(
    relevance: FloatArray, similar: Callable[[int], FloatArray | NDArray[np.float32]], weight: float, n: int
) -> list[int]:
    """The indices of the `n` documents that MMR picks, in order: argmax weight rel(d) - (1 - weight) max_s sim(d, s).

    `relevance` is (m,) with m >= n; `similar(i)` gives the similarity of every document to document i, (m,), and is
    asked once a pick: the maximum over the documents s picked so far is kept, not computed anew. The first pick is by
    relevance alone. Ties go to the lower index.

    >>> alike = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> mmr(np.array([1.0, 0.9, 0.5]), lambda i: alike[i], weight=0.5, n=3)
    [0, 2, 1]
    """
    value = weight * relevance
    closest = np.full(len(relevance), -np.inf)
    picked: list[int] = []
    for _ in range(n):
        best = int(value.argmax())
        picked.append(best)
        np.maximum(closest, similar(best), out=closest)
        value = weight * relevance - (1 - weight) * closest
        value[picked] = -np.inf
    return picked
