"""Re-ranking by a model that reads the user's query and each document together."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import Field

from fairagent.errors import UsageError
from fairagent.rerank.base import Pool, ordered
from fairagent.rerank.pair_scorer import PairScorer, pair_scorer
from fairagent.retrieve.base import Retriever, full_text, texts_for
from fairagent.retrieve.bm25.part import engine_of
from fairagent.settings.parts import Part
from fairagent.site import Site
from fairagent.types import Ranking


@dataclass(frozen=True, slots=True)
class CrossEncoderReranker:
    """The best `depth` candidates by the scorer's number for the user's query and the document, ties by id.

    It reads title and text as `retriever` keeps them, of a long document the passage that answers best. Candidates
    beyond `depth` follow in their order, each one below the one before. Raises UsageError where `depth` is below 1 or
    the engine keeps no texts, DataError where a score is no finite number.
    """

    retriever: Retriever
    scorer: PairScorer
    depth: int = 100

    def __post_init__(self) -> None:
        """Check the depth."""
        if self.depth < 1:
            raise UsageError(f"depth is the number of documents to re-rank and must be at least 1, not {self.depth}")

    def rerank(self, pool: Pool) -> Ranking:
        """The best `pool.n` of the candidates."""
        ids = pool.ranking.ids[: self.depth]
        texts = list(map(full_text, texts_for(pool.query, ids, self.retriever)))
        best = ordered(ids, self.scorer.score(pool.query.text, texts), pool.n)
        rest = pool.ranking.ids[self.depth : self.depth + pool.n - len(best)]
        if not rest:
            return best
        return Ranking(best.ids + rest, np.concatenate([best.scores, best.scores[-1] - np.arange(1, len(rest) + 1)]))


class CrossEncoderConfig(Part):
    """The best candidates by a model that reads query and document together."""

    kind: Literal["cross-encoder"] = "cross-encoder"
    scorer: str = Field(min_length=1)
    """A cross-encoder, or `monot5:NAME` for a MonoT5: a folder, or a name in the Hugging Face cache."""
    depth: int = Field(100, ge=1)
    """How many of the first candidates the model reads; the others stay behind them. More take longer in proportion."""

    def check(self, site: Site) -> None:
        """Raise BackendUnavailable where the scorer is not on this machine."""
        pair_scorer(site, self.scorer)

    def build(self, site: Site) -> CrossEncoderReranker:
        """The re-ranker."""
        return CrossEncoderReranker(engine_of(site), pair_scorer(site, self.scorer), self.depth)
