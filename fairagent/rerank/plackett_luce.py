"""The stochastic baseline: one ranking drawn from Plackett-Luce (Fair-RAG, ICTIR 2025)."""

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from fairagent.errors import UsageError
from fairagent.rerank.base import Pool
from fairagent.retrieve.placed import placed
from fairagent.retrieve.plackett_luce import Compat, sample_rankings, sampler_log_scores, topic_rng
from fairagent.settings.parts import Part
from fairagent.site import Site
from fairagent.types import Ranking


@dataclass(frozen=True, slots=True)
class PlackettLuceReranker:
    """A random order in which a document's chance grows with its score: `alpha` 0 is uniform, 8 almost the engine's.

    The draw depends on `seed` and the topic alone (on the query's text where it has no id), not on what was drawn
    before or elsewhere.
    """

    alpha: float = 1.0
    seed: int = 0
    compat: Compat = None

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise UsageError(f"Plackett-Luce: the seed is a number of 0 or more, not {self.seed}")

    def rerank(self, pool: Pool) -> Ranking:
        """`pool.n` candidates, drawn."""
        if not len(pool.ranking):
            return pool.ranking
        log_scores = sampler_log_scores(pool.ranking.scores, self.alpha, self.compat)
        rng = topic_rng(self.seed, pool.query.id or pool.query.text)
        return placed(pool.ranking.ids, sample_rankings(log_scores, pool.n, rng)[0].tolist())


class PlackettLuceConfig(Part):
    """One random ranking a topic, always the same one; with `sampling` each request gets one of its own."""

    kind: Literal["plackett-luce"] = "plackett-luce"
    alpha: float = Field(1.0, ge=0)
    """How closely the draw keeps to the engine's order: at 0 all orders are equally likely, 8 is almost the
    engine's."""

    def build(self, site: Site) -> PlackettLuceReranker:
        """The re-ranker."""
        return PlackettLuceReranker(self.alpha, site.seed)
