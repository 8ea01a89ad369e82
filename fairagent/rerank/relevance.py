"""Re-rankers that look at relevance alone: by the user's own query, and by it together with the refined ones."""

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from fairagent.measures import min_max
from fairagent.rerank.base import Pool, ordered
from fairagent.retrieve.base import Retriever
from fairagent.retrieve.bm25.part import engine_of
from fairagent.settings.parts import Part
from fairagent.site import Site
from fairagent.types import Ranking


@dataclass(frozen=True, slots=True)
class OriginalReranker:
    """By the engine's score for the user's own query (FAIR-QR, step 5).

    TRAP: where the candidates contain the first list, this gives the first list's top n back, whatever the loop did.
    """

    retriever: Retriever

    def rerank(self, pool: Pool) -> Ranking:
        """The candidates by their score for the user's query, ties by id."""
        return ordered(pool.ranking.ids, self.retriever.score(pool.query, pool.ranking.ids), pool.n)


@dataclass(frozen=True, slots=True)
class FusedReranker:
    """By the user's query and the refined evidence together: (1 - refined) o + refined r, both min-max on [0, 1].

    o is the engine's score for the user's query, r the score of the queries that found the candidates.
    """

    retriever: Retriever
    refined: float = 0.5

    def rerank(self, pool: Pool) -> Ranking:
        """The candidates by their fused score, ties by id."""
        ids = pool.ranking.ids
        original = min_max(self.retriever.score(pool.query, ids))
        return ordered(ids, (1 - self.refined) * original + self.refined * min_max(pool.ranking.scores), pool.n)


class OriginalConfig(Part):
    """By the engine's score for the user's own query (FAIR-QR)."""

    kind: Literal["original"] = "original"

    def build(self, site: Site) -> OriginalReranker:
        """The re-ranker."""
        return OriginalReranker(engine_of(site))


class FusedConfig(Part):
    """By the user's query and the refined evidence together."""

    kind: Literal["fused"] = "fused"
    refined: float = Field(0.5, ge=0, le=1)
    """The weight of the refined queries' scores, 0 to 1; those of the user's query have the rest."""

    def build(self, site: Site) -> FusedReranker:
        """The re-ranker."""
        return FusedReranker(engine_of(site), self.refined)
