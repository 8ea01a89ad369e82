"""What makes two candidates alike: their words, their embeddings, or their groups. All are cosines."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fairagent.rerank.base import Pool
from fairagent.retrieve.dense import EmbeddingSource
from fairagent.retrieve.relevance_model import TermSource
from fairagent.types import FloatArray

Similar = Callable[[int], FloatArray]
"""The similarity of every candidate to candidate i, (n,): what a greedy re-ranker asks after each pick."""


class Similarity(Protocol):
    """Tells how alike candidates are: any callable with this signature will do."""

    def __call__(self, pool: Pool) -> Similar:
        """Similarities within this pool."""
        ...


@dataclass(frozen=True, slots=True)
class ByGroups:
    """Cosine of the membership rows of all dimensions side by side.

    The unknown share counts as a group of its own: left out, documents without a label would be unlike everything,
    and MMR would put them first.
    """

    def __call__(self, pool: Pool) -> Similar:
        """Similarities of groups, in [0, 1]."""
        return _cosines(np.hstack(pool.memberships))


@dataclass(frozen=True, slots=True)
class ByEmbeddings:
    """Cosine of the texts' embeddings."""

    source: EmbeddingSource

    def __call__(self, pool: Pool) -> Similar:
        """Similarities of meaning, in [-1, 1]."""
        return _cosines(np.asarray(self.source.vectors(pool.ranking.ids), dtype=np.float64))


@dataclass(frozen=True, slots=True)
class ByTerms:
    """Cosine of the texts' term vectors, weighted (1 + ln count) ln(documents / documents with the term)."""

    source: TermSource

    def __call__(self, pool: Pool) -> Similar:
        """Similarities of wording, in [0, 1]; 0 for a text without terms."""
        postings = self.source.postings(pool.ranking.ids)
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
