"""Re-rankers by relevance alone, chains of re-rankers, and rankings drawn at random (Fair RAG, ICTIR 2025)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from fairagent.measures import min_max
from fairagent.retrieve.base import Retriever, placed, scored
from fairagent.retrieve.site import Site
from fairagent.retrieve.stochastic import sample_rankings, sampler_log_scores, topic_rng
from fairagent.search.rerank.base import Pool, Reranker, account_notes, ordered, rerank_with
from fairagent.search.rerank.exposure import ExposureReranker
from fairagent.search.rerank.frontier import Frontier
from fairagent.settings.parts import Part, Rerank
from fairagent.types import Dial, FloatArray, Ranking
from fairagent.types.common import Compat


@dataclass(frozen=True, slots=True)
class OriginalReranker:
    """By the engine's score for the user's own query (FAIR-QR, step 5), ties by id.

    TRAP: where the candidates contain the first list, this gives the first list's top n back, whatever the loop did.
    """

    retriever: Retriever

    def rerank(self, pool: Pool) -> Ranking:
        return ordered(pool.ranking.ids, scored(self.retriever, pool.query, pool.ranking.ids), pool.n)


@dataclass(frozen=True, slots=True)
class FusedReranker:
    """By the user's query and the refined evidence together: (1 - refined) o + refined r, both min-max; ties by id.

    o is the engine's score for the user's query, r the score of the queries that retrieved the candidates.
    """

    retriever: Retriever
    refined: float = 0.5

    def rerank(self, pool: Pool) -> Ranking:
        ids = pool.ranking.ids
        original = min_max(scored(self.retriever, pool.query, ids))
        return ordered(ids, (1 - self.refined) * original + self.refined * min_max(pool.ranking.scores), pool.n)


class OriginalConfig(Part):
    """By the engine's score for the user's own query (FAIR-QR)."""

    kind: Literal["original"] = "original"

    def build(self, site: Site) -> OriginalReranker:
        return OriginalReranker(site.engine)


class FusedRerankConfig(Part):
    """By the user's query and the refined evidence together."""

    kind: Literal["fused"] = "fused"
    refined: float = Field(0.5, ge=0, le=1)
    """The weight of the refined queries' scores, 0 to 1; those of the user's query have the rest."""

    def build(self, site: Site) -> FusedReranker:
        return FusedReranker(site.engine, self.refined)


@dataclass(frozen=True, slots=True)
class ChainReranker:
    """The last one gives the best `pool.n`; those before it keep all candidates."""

    rerankers: tuple[Reranker, ...]

    @property
    def widens(self) -> bool:
        return any(getattr(one, "widens", False) for one in self.rerankers)

    @property
    def keeps(self) -> bool:
        return any(getattr(one, "keeps", False) for one in self.rerankers)

    def keep(self, pool: Pool, served: Pool) -> tuple[str, ...]:
        notes = (account_notes(one, lambda: (pool, served), pool.query) for one in self.rerankers)
        return tuple(note for some in notes for note in some)

    def rerank(self, pool: Pool) -> Ranking:
        return rerank_with(self.rerankers[-1], self._before(pool)) if self.rerankers else pool.ranking.top(pool.n)

    def _before(self, pool: Pool) -> Pool:
        """The pool as the last re-ranker gets it; made once, for the ranking and for its relevance."""
        before = self.rerankers[:-1]
        known, key = pool.ordered_by, tuple(map(id, before))
        if key not in known:
            changed = pool
            for reranker in before:
                changed = changed.of(rerank_with(reranker, replace(changed, n=len(changed.ranking))))
            known[key] = replace(changed, n=pool.n) if before else pool
        return known[key]

    @property
    def dial(self) -> Dial:
        return self._last.dial

    def with_dial(self, dial: Dial) -> ChainReranker:
        return ChainReranker((*self.rerankers[:-1], self._last.with_dial(dial)))

    def frontier(self, pool: Pool, others: Sequence[Ranking] = ()) -> Frontier:
        return self._last.frontier(self._before(pool), others)

    def relevance(self, pool: Pool) -> FloatArray:
        before = self._before(pool)
        of = dict(zip(before.ranking.ids, self._last.relevance(before).tolist(), strict=True))
        return np.array([of[id] for id in pool.ranking.ids])

    @property
    def _last(self) -> ExposureReranker:
        # Callers have made sure by `dialed` that it has a dial.
        return self.rerankers[-1]  # type: ignore[return-value]


class ChainConfig(Part):
    """Several re-rankers; in settings a list stands for it."""

    kind: Literal["chain"] = "chain"
    parts: tuple[Rerank, ...]
    """The re-rankers in their order: each one orders what the one before it gives."""

    def __str__(self) -> str:
        return ", ".join(map(str, self.parts)) or "none"

    def build(self, site: Site) -> ChainReranker:
        return ChainReranker(tuple(part.build(site) for part in self.parts if not part.idle(site.settings)))


@dataclass(frozen=True, slots=True)
class PlackettLuceReranker:
    """A random order in which a document's chance grows with its score: `alpha` 0 is uniform, 8 almost the engine's.

    The draw depends on `seed` and the topic alone (without an id, on the query's text).
    """

    alpha: float = 1.0
    seed: int = 0
    compat: Compat = None

    def rerank(self, pool: Pool) -> Ranking:
        if not len(pool.ranking):
            return pool.ranking
        log_scores = sampler_log_scores(pool.ranking.scores, self.alpha, self.compat)
        rng = topic_rng(self.seed, pool.query.id or pool.query.text)
        return placed(pool.ranking.ids, sample_rankings(log_scores, pool.n, rng)[0].tolist())


class PlackettLuceConfig(Part):
    """One random ranking a topic, always the same one; `sampling` gives each request one of its own, without this."""

    at_random: ClassVar[bool] = True

    kind: Literal["plackett-luce"] = "plackett-luce"
    alpha: float = Field(1.0, ge=0)
    """How closely the draw keeps to the engine's order: at 0 all orders are equally likely, 8 is almost the
    engine's."""

    def build(self, site: Site) -> PlackettLuceReranker:
        return PlackettLuceReranker(self.alpha, site.seed)
