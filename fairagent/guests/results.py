"""What a search of an agent found, with texts, as hosts' own documents need it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairagent.extend import Document, Hit, PassageSource, Pipeline, SearchResult, TextSource, UsageError, texts_for

OnResult = Callable[[SearchResult], None]
"""What receives each search with its trace."""


def check_texts(agent: Pipeline) -> None:
    """Raise UsageError where the agent's engine keeps no texts."""
    if not isinstance(agent.retriever, PassageSource | TextSource):
        raise UsageError(f"{type(agent.retriever).__name__} keeps no texts of its documents for a host to show")


def documents_found(agent: Pipeline, query: str, on_result: OnResult | None = None) -> list[tuple[Hit, Document]]:
    """The lines of a search in order, each with its text: of a collection in passages that which answers best."""
    # Texts are those of the index that was searched, whatever replaces it meanwhile.
    agent = agent.latest()
    result = agent.search(query)
    if on_result:
        on_result(result)
    return list(zip(result.hits, texts_for(result.query, result.ranking.ids, agent.retriever), strict=True))


def metadata_of(hit: Hit, document: Document) -> dict[str, Any]:
    """Title, rank, score and groups (dimension -> label -> share) of a hit, and whatever else its document has."""
    groups = {dimension: dict(shares) for dimension, shares in hit.groups.items()}
    return {**document.extra, "title": hit.title, "rank": hit.rank, "score": hit.score, "groups": groups}
