"""Re-rankers by how alike the candidates are, by their words, embeddings or groups; all are cosines.

Maximal marginal relevance: relevant, and unlike what is above (Carbonell & Goldstein 1998). Re-scoring over the graph
of the candidates: what is like other good candidates is better than its own score says.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fairagent.measures import min_max
from fairagent.retrieve.base import placed
from fairagent.retrieve.bm25.part import prepare_index, prepare_words, words_of
from fairagent.retrieve.dense import EmbeddingSource, VectorEngine
from fairagent.retrieve.encoders import BUNDLED, Embeddings
from fairagent.retrieve.relevance_model import TermSource
from fairagent.retrieve.site import Site
from fairagent.retrieve.vectors import check_vectors, open_vectors, prepare_vectors
from fairagent.search.rerank.base import Pool
from fairagent.settings.parts import Part, Progress
from fairagent.types import FloatArray, Ranking

Similar = Callable[[int], FloatArray]
"""The similarity of every candidate to candidate i, (n,): what a greedy re-ranker asks after each pick."""


Similarity = Callable[[Pool], Similar]
"""How alike candidates are: similarities within a pool."""


def by_groups(pool: Pool) -> Similar:
    """Cosine of the membership rows of all dimensions side by side, in [0, 1].

    Unknown counts as a group: left out, documents without a label would be unlike everything, and MMR put them first.
    """
    return _cosines(np.hstack(pool.memberships))


def by_embeddings(source: EmbeddingSource, pool: Pool) -> Similar:
    """Cosine of the texts' embeddings, in [-1, 1]."""
    return _cosines(np.asarray(source.vectors(pool.ranking.ids), dtype=np.float64))


def by_terms(source: TermSource, pool: Pool) -> Similar:
    """Cosine of the texts' term vectors, in [0, 1], by (1 + ln count) ln(documents / documents with the term)."""
    postings = source.postings(pool.ranking.ids)
    n, row, term = len(pool.ranking), postings.row, postings.term
    weight = (1 + np.log(postings.count)) * -np.log(postings.document_share)[term]
    length = np.sqrt(np.bincount(row, weights=weight**2, minlength=n))
    weight = weight / np.where(length > 0, length, 1)[row]

    def similar(i: int) -> FloatArray:
        of_i = row == i
        vector = np.zeros(len(postings.vocabulary))
        vector[term[of_i]] = weight[of_i]
        return np.asarray(np.bincount(row, weights=weight * vector[term], minlength=n), dtype=np.float64)

    return similar


def _cosines(vectors: FloatArray) -> Similar:
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.where(length > 0, length, 1)
    return lambda i: unit @ unit[i]


@dataclass(frozen=True, slots=True)
class MMRReranker:
    """Greedy: at each rank the document with the best mix of relevance and novelty.

    `similarity` says what alike means; `relevance` in [0, 1] is the weight of the min-max score, 1 the candidates'
    order.
    """

    similarity: Similarity
    relevance: float = 0.5

    def rerank(self, pool: Pool) -> Ranking:
        n = min(pool.n, len(pool.ranking))
        order = mmr(min_max(pool.ranking.scores), self.similarity(pool), self.relevance, n) if n else []
        return placed(pool.ranking.ids, order)


def mmr(
    relevance: FloatArray, similar: Callable[[int], FloatArray | NDArray[np.float32]], weight: float, n: int
) -> list[int]:
    """The indices of the `n` documents that MMR picks, in order: argmax weight rel(d) - (1 - weight) max_s sim(d, s).

    `relevance` is (m,) with m >= n; `similar(i)` gives the similarity of every document to document i, (m,), and is
    called once a pick. The first pick is by relevance alone. Ties go to the lower index.

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


class MMRConfig(Part):
    """Maximal marginal relevance."""

    kind: Literal["mmr"] = "mmr"
    by: Literal["text", "groups", "embeddings"] = "text"
    """What makes two documents alike: the words of their texts, their groups, or their embeddings."""
    relevance: float = Field(0.5, ge=0, le=1)
    """The weight of relevance, 0 to 1; novelty has the rest. 1 keeps the candidates' order."""
    encoder: str = BUNDLED
    """The embedding model of `by: embeddings`, named as for `engine: dense`."""

    @property
    def sees_groups(self) -> bool:
        return self.by == "groups"

    def check(self, site: Site) -> None:
        """Raise what is wrong with the embeddings, where they are needed."""
        if self.by == "embeddings":
            check_vectors(site, self.encoder)

    def prepare(self, site: Site, progress: Progress) -> None:
        if self.by == "text":
            prepare_words(site, progress)
        if self.by == "embeddings":
            prepare_index(site, progress)
            prepare_vectors(site, self.encoder, progress)

    def build(self, site: Site) -> MMRReranker:
        similarity: Similarity = by_groups
        if self.by == "text":
            similarity = partial(by_terms, words_of(site))
        elif self.by == "embeddings":
            similarity = partial(by_embeddings, open_vectors(site, self.encoder))
        return MMRReranker(similarity, self.relevance)


@dataclass(frozen=True, slots=True)
class GraphReranker:
    """The best `depth`: (1 - weight) own + weight the mean score of the `k` nearest among them; the rest stays behind.

    Nearest are those with the largest inner products of the embeddings of `source`; without one nothing changes.
    (Neighbors outside the pool have no scores, and made it worse: docs/search_and_answer.md.)
    """

    source: EmbeddingSource | None
    weight: float = 0.4
    k: int = 10
    depth: int = 300

    def rerank(self, pool: Pool) -> Ranking:
        if self.source is None or len(pool.ranking) < 2:
            return pool.ranking.top(pool.n)
        head = pool.ranking.top(self.depth)
        scores = smoothed(head.scores, self.source.vectors(head.ids), self.weight, self.k)
        order = np.argsort(-scores, kind="stable")
        rest = pool.ranking.scores[len(head) :]
        # The scores of the rest are lowered, so that they stay below those of the head.
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
        source = site.engine if isinstance(site.engine, VectorEngine) else None
        return GraphReranker(source, self.weight, self.k, self.depth)
