"""A stochastic retriever: each request gets one ranking drawn from an engine's scores (Fair-RAG, ICTIR 2025)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import UsageError
from fairagent.retrieve.base import Retriever, check_length, checked
from fairagent.retrieve.placed import placed
from fairagent.retrieve.plackett_luce import Compat, checked_alpha, sample_rankings, sampler_log_scores, topic_rng
from fairagent.retrieve.request_counter import RequestCounter
from fairagent.types import FloatArray, Query, Ranking

OPTIONAL = ("document", "passages", "document_frequency", "postings", "words", "analyze", "vectors", "close")
"""What an engine may be able to do besides: see TextSource, PassageSource, Vocabulary, TermSource, EmbeddingSource."""


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Rankings that were drawn for one query: `rankings` (N, k') hold places in `ids`, the pool's n documents.

    k' is min(k, n); N rankings of no documents are those of an empty pool.
    """

    ids: tuple[str, ...]
    rankings: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.rankings)

    def ranking(self, number: int) -> Ranking:
        """The ranking of that number, from 0; its scores only say the rank."""
        return placed(self.ids, self.rankings[number].tolist())


def draw(pool: Ranking, alpha: float, k: int, rng: np.random.Generator, n: int = 1, compat: Compat = None) -> Samples:
    """`n` rankings of the best min(k, len(pool)) documents of `pool`: Plackett-Luce over its scores.

    Raises UsageError where `alpha` is negative or not finite, or `k` or `n` below 1, DataError where a score is not
    finite.
    """
    return Samples(pool.ids, sample_rankings(sampler_log_scores(pool.scores, alpha, compat), k, rng, n))


class StochasticRetriever:
    """Any engine, answering each request with a ranking of its own, drawn from its first `depth` documents.

    `alpha` 0 makes all orders equally likely, 8 is almost the engine's. Successive requests for a topic (for the
    query's text, where it has no id) differ; a ranking depends on `seed`, the topic and the number of its request
    alone, not on what else was asked. What the engine can do besides it can do here too. Threads may share it.
    """

    def __init__(
        self, retriever: Retriever, alpha: float, seed: int = 0, depth: int = 100, compat: Compat = None
    ) -> None:
        """Raises UsageError where `alpha` is negative or not finite, `seed` below 0 or `depth` below 1."""
        if seed < 0 or depth < 1:
            raise UsageError(f"stochastic retriever: seed is 0 or more and depth 1 or more, not {seed} and {depth}")
        self._engine, self._alpha, self._seed = retriever, checked_alpha(alpha), seed
        self._depth, self._compat = depth, compat
        self._requests = RequestCounter()
        # Attributes of the object: engines are told apart by what they have, here as well.
        for name in OPTIONAL:
            if hasattr(retriever, name):
                setattr(self, name, getattr(retriever, name))

    def search(self, query: Query, n: int) -> Ranking:
        """One ranking of min(n, depth) documents, drawn; scores fall in equal steps from 1 at rank 1.

        Raises DataError where the engine's list is none (a score that is not finite, a document twice).
        """
        check_length(n)
        pool, topic = self._pool(query), query.id or query.text
        rng = topic_rng(self._seed, topic, self._requests.number(topic))
        return draw(pool, self._alpha, n, rng, compat=self._compat).ranking(0)

    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """The engine's own scores, (n,)."""
        return self._engine.score(query, ids)

    def sample(self, query: Query, n_samples: int, k: int) -> Samples:
        """`n_samples` rankings of the best `k`, drawn from one list of the engine: the same ones at every call."""
        rng = topic_rng(self._seed, query.id or query.text)
        return draw(self._pool(query), self._alpha, k, rng, n_samples, self._compat)

    def _pool(self, query: Query) -> Ranking:
        return checked(query, self._engine.search(query, self._depth))
