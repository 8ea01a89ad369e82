"""Re-scoring over the graph of the candidates: what is like other good candidates is better than its own score says."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import Field

from fairagent.rerank.base import Pool
from fairagent.retrieve.dense import EmbeddingSource
from fairagent.retrieve.encoder import Embeddings
from fairagent.settings.parts import Part
from fairagent.site import Site
from fairagent.types import FloatArray, Ranking


@dataclass(frozen=True, slots=True)
class GraphReranker:
    """The best `depth`: (1 - weight) own + weight the mean score of the `k` nearest among them; the rest stays behind.

    Nearest are those with the largest inner products of the embeddings that `source` tells; without one nothing
    changes. (Neighbors outside the pool have no scores, and made it worse: docs/loop.md.)
    """

    source: EmbeddingSource | None
    weight: float = 0.4
    k: int = 10
    depth: int = 300

    def rerank(self, pool: Pool) -> Ranking:
        """The best `pool.n` candidates, ties as they stand."""
        if self.source is None or len(pool.ranking) < 2:
            return pool.ranking.top(pool.n)
        head = pool.ranking.top(self.depth)
        scores = smoothed(head.scores, self.source.vectors(head.ids), self.weight, self.k)
        order = np.argsort(-scores, kind="stable")
        rest = pool.ranking.scores[len(head) :]
        # Scores fall: what was not looked at stays below what was.
        behind = np.minimum(rest, scores[order[-1]] - 1e-9) if len(rest) else rest
        ids = tuple(head.ids[place] for place in order.tolist()) + pool.ranking.ids[len(head) :]
        return Ranking(ids, np.concatenate((scores[order], behind))).top(pool.n)


def smoothed(scores: FloatArray, vectors: Embeddings, weight: float, k: int) -> FloatArray:
    """The scores (n,), mixed with the mean of the `k` nearest others, and of those as near as the last; n >= 2.

    >>> alike = np.array([[1, 0], [1, 0], [0, 1]], dtype=np.float32)
    >>> smoothed(np.array([1.0, 0.0, 0.5]), alike, weight=0.5, k=1).tolist()
    [0.5, 0.5, 0.5]
    """
    k = min(k, len(scores) - 1)
    products = vectors @ vectors.T
    np.fill_diagonal(products, -np.inf)
    # Sorting 32-bit floats is faster than looking for the places of the largest.
    near = products >= np.sort(products, axis=1)[:, -k:][:, :1]
    return np.asarray((1 - weight) * scores + weight * (near @ scores) / near.sum(axis=1))


class GraphConfig(Part):
    """Scores smoothed over the graph of the candidates' embeddings; without embeddings nothing changes."""

    kind: Literal["graph"] = "graph"
    weight: float = Field(0.4, ge=0, lt=1)
    """The weight of the neighbors' mean score, 0 to below 1; the document's own score has the rest. Larger values
    smooth more."""
    k: int = Field(10, ge=1)
    """How many nearest neighbors the mean is taken of. More smooth over a wider area."""
    depth: int = Field(300, ge=2)
    """How many of the first candidates are re-scored, and are each other's neighbors; the others stay behind them. More
    take longer."""

    def build(self, site: Site) -> GraphReranker:
        """The re-ranker."""
        source = site.engine if hasattr(site.engine, "query_vector") else None
        return GraphReranker(source, self.weight, self.k, self.depth)
