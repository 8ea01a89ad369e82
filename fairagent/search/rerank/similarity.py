"""Maximal marginal relevance: relevant, and unlike what is above (Carbonell & Goldstein 1998)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fairagent.errors import UsageError
from fairagent.measures import min_max
from fairagent.rerank.base import Pool
from fairagent.rerank.similarity import ByEmbeddings, ByGroups, ByTerms, Similarity
from fairagent.retrieve.bm25.part import prepare_index, prepare_words, words_of
from fairagent.retrieve.encoder import BUNDLED
from fairagent.retrieve.placed import placed
from fairagent.retrieve.vectors import check_vectors, open_vectors, prepare_vectors
from fairagent.settings.parts import Part, Progress
from fairagent.site import Site
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
        """Whether likeness is that of groups."""
        return self.by == "groups"

    def check(self, site: Site) -> None:
        """Raise what is wrong with the embeddings, where they are asked for."""
        if self.by == "embeddings":
            check_vectors(site, self.encoder)

    def prepare(self, site: Site, progress: Progress) -> None:
        """Make the index or the embeddings where they are asked for and missing."""
        if self.by == "text":
            prepare_words(site, progress)
        if self.by == "embeddings":
            prepare_index(site, progress)
            prepare_vectors(site, self.encoder, progress)

    def build(self, site: Site) -> MMRReranker:
        """The re-ranker."""
        return MMRReranker(self._similarity(site), self.relevance)

    def _similarity(self, site: Site) -> Similarity:
        if self.by == "groups":
            return ByGroups()
        return ByTerms(words_of(site)) if self.by == "text" else ByEmbeddings(open_vectors(site, self.encoder))
