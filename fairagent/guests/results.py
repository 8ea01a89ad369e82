"""The result of an agent's search with its texts, as hosts need it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from fairagent.errors import UsageError
from fairagent.retrieve.base import PassageSource, TextSource, texts_for
from fairagent.search.agent import FairAgent
from fairagent.types import Document, Hit, SearchResult

OnResult = Callable[[SearchResult], None]
"""What receives each search with its trace."""


def check_texts(agent: FairAgent) -> None:
    """Raise UsageError where the agent's engine keeps no texts."""
    if not isinstance(agent.retriever, PassageSource | TextSource):
        raise UsageError(f"{type(agent.retriever).__name__} keeps no texts of its documents for a host to show")


class FoundLine(NamedTuple):
    """A line of a search with its text, and the ranking's score, by which a host may sort: it falls with the rank."""

    hit: Hit
    document: Document
    score: float


def documents_found(agent: FairAgent, query: str, on_result: OnResult | None = None) -> list[FoundLine]:
    """The lines of a search in order, each with its text: of a collection in passages that which answers best."""
    # Texts are those of the index that was searched, whatever replaces it meanwhile.
    agent = agent.live.agent() if agent.live else agent
    result = agent.search(query)
    if on_result:
        on_result(result)
    texts = texts_for(result.query, result.ranking.ids, agent.retriever)
    return [FoundLine(*line) for line in zip(result.hits, texts, result.ranking.scores.tolist(), strict=True)]


def metadata_of(hit: Hit, document: Document) -> dict[str, Any]:
    """Title, rank, the engine's score, groups (dimension -> label -> share) and whatever else the document has."""
    groups = {dimension: dict(shares) for dimension, shares in hit.groups.items()}
    return {**document.extra, "title": hit.title, "rank": hit.rank, "score": hit.score, "groups": groups}
