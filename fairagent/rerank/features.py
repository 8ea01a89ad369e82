"""What learned re-rankers see of a candidate."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fairagent.measures import min_max
from fairagent.rerank.base import Pool
from fairagent.retrieve.dense import EmbeddingSource
from fairagent.types import FloatArray


class Features(Protocol):
    """Describes candidates: any callable with this signature will do."""

    def __call__(self, pool: Pool) -> FloatArray:
        """One row of numbers a candidate, (n, f), the same f for every pool."""
        ...


@dataclass(frozen=True, slots=True)
class ScoreFeature:
    """One column: the score that found the candidate, min-max in its pool."""

    def __call__(self, pool: Pool) -> FloatArray:
        """The scores on [0, 1], (n, 1)."""
        return min_max(pool.ranking.scores)[:, None]


SCORE = ScoreFeature()


@dataclass(frozen=True, slots=True)
class EmbeddingFeatures:
    """The candidate's embedding (DLF: Sentence-BERT)."""

    source: EmbeddingSource

    def __call__(self, pool: Pool) -> FloatArray:
        """The embeddings, (n, d)."""
        return np.asarray(self.source.vectors(pool.ranking.ids), dtype=np.float64)
