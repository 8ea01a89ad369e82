"""BM25 + RM3: each query is searched with the words of its first documents added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from fairagent.retrieve.base import Retriever, TextSource, Vocabulary
from fairagent.retrieve.relevance_model import RM3, TermSource
from fairagent.types import Document, FloatArray, Query, Ranking

DEFAULT = RM3()


class Engine(Retriever, TermSource, TextSource, Vocabulary, Protocol):
    """A search engine that keeps terms and texts, such as `LuceneRetriever`."""


@dataclass(frozen=True, slots=True)
class RM3Retriever:
    """`engine` with queries expanded by `rm3` (Jaleel et al. 2004).

    Keywords that a query has already keep their weights. It does not show the engine's terms (it is no `TermSource`),
    so that an agent does not expand its queries a second time.
    """

    engine: Engine
    rm3: RM3 = DEFAULT

    def search(self, query: Query, n: int) -> Ranking:
        """The best `n` documents for the expanded query."""
        return self.engine.search(self.expanded(query), n)

    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """The engine's scores of the given documents for the expanded query, (n,)."""
        return self.engine.score(self.expanded(query), ids)

    def expanded(self, query: Query) -> Query:
        """`query` with its topic words; as it is where it retrieves nothing."""
        first = self.engine.search(query, max(1, self.rm3.documents))
        return self.rm3.expand(self.engine, query, first)

    def document(self, id: str) -> Document:
        """The engine's stored document."""
        return self.engine.document(id)

    def document_frequency(self, word: str) -> int:
        """How many documents of the engine hold `word`."""
        return self.engine.document_frequency(word)
