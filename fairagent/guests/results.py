"""What the stages of hosts share: a search with its texts, and a list in a fair order."""

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, Field, SkipValidation

from fairagent.errors import UsageError
from fairagent.retrieve.base import PassageSource, TextSource, texts_for
from fairagent.search.agent import FairAgent
from fairagent.search.hits import FairHits, fair_rerank, fields_of
from fairagent.settings import Unknown
from fairagent.types import Document, Hit, SearchResult

OnResult = Callable[[SearchResult], None]
"""What receives each search with its trace."""
FoundLine = tuple[Hit, Document, float]
"""A line of a search with its text, and the ranking's score, by which a host may sort: it falls with the rank."""


def check_texts(agent: FairAgent) -> None:
    """Raise UsageError where the agent's engine keeps no texts."""
    if not isinstance(agent.retriever, PassageSource | TextSource):
        raise UsageError(f"{type(agent.retriever).__name__} keeps no texts of its documents for a host to show")


def documents_found(agent: FairAgent, query: str, on_result: OnResult | None = None) -> list[FoundLine]:
    """The lines of a search in order, each with its text: of a collection in passages that which answers best."""
    # Texts are those of the index that was searched, whatever replaces it meanwhile.
    agent = agent.live.agent() if agent.live else agent
    result = agent.search(query)
    if on_result:
        on_result(result)
    texts = texts_for(result.query, result.ranking.ids, agent.retriever)
    return list(zip(result.hits, texts, result.ranking.scores.tolist(), strict=True))


def metadata_of(hit: Hit, document: Document) -> dict[str, Any]:
    """Title, rank, the engine's score, groups (dimension -> label -> share) and whatever else the document has."""
    groups = {dimension: dict(shares) for dimension, shares in hit.groups.items()}
    return {**document.extra, "title": hit.title, "rank": hit.rank, "score": hit.score, "groups": groups}


class ExposureStage(BaseModel):
    """The `n` of a host's hits that are relevant and together give every group about its target share of the exposure.

    Put it behind a retriever that returns many more than `n`: it can only choose among those. `groups`, `target`,
    `fairness`, `keep`, `gap` and `unknown` are those of `fair_rerank`. `on_fair` receives the exposures before and
    after. Raises UsageError for groups that do not go with the target.
    """

    groups: SkipValidation[Any]
    target: SkipValidation[Any] = None
    n: int = Field(default=10, ge=1)
    fairness: float | None = Field(default=None, ge=0)
    keep: float | None = Field(default=None, ge=0, le=1)
    gap: float | None = Field(default=None, ge=0)
    unknown: Unknown = "share"
    on_fair: SkipValidation[Callable[[FairHits], None]] | None = None

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        fields_of(self.groups, self.target)

    def reranked(self, hits: list[Any]) -> list[Any]:
        """The same objects in their new order; raises what `fair_rerank` does."""
        dial: dict[str, Any] = {"fairness": self.fairness, "keep": self.keep, "gap": self.gap}
        fair = fair_rerank(hits, self.groups, self.target, self.n, unknown=self.unknown, **dial)
        if self.on_fair:
            self.on_fair(fair)
        return fair.hits
