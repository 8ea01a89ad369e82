"""Re-rankers behind each other: each orders what the one before it gives."""

from dataclasses import dataclass, replace
from typing import Literal

from fairagent.rerank.base import Pool, Reranker
from fairagent.settings.parts import Part, Rerank
from fairagent.site import Site
from fairagent.types import Ranking


@dataclass(frozen=True, slots=True)
class ChainReranker:
    """The last one gives the best `pool.n`; those before it keep all candidates."""

    rerankers: tuple[Reranker, ...]

    def rerank(self, pool: Pool) -> Ranking:
        """The ranking of the last re-ranker."""
        for number, reranker in enumerate(self.rerankers, start=1):
            last = number == len(self.rerankers)
            ranking = reranker.rerank(pool if last else replace(pool, n=len(pool.ranking)))
            if last:
                return ranking
            pool = pool.of(ranking)
        return pool.ranking.top(pool.n)


class ChainConfig(Part):
    """Several re-rankers; in settings a list stands for it."""

    kind: Literal["chain"] = "chain"
    parts: tuple[Rerank, ...]
    """The re-rankers in their order: each one orders what the one before it gives."""

    def __str__(self) -> str:
        return ", ".join(map(str, self.parts)) or "none"

    def build(self, site: Site) -> ChainReranker:
        """The chain."""
        return ChainReranker(tuple(part.build(site) for part in self.parts if part.kind != "none"))
