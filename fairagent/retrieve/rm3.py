"""BM25 + RM3: each query is searched with the words of its first documents added."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from pydantic import Field

from fairagent.errors import UsageError
from fairagent.retrieve.base import Retriever, TextSource, Vocabulary
from fairagent.retrieve.relevance_model import RM3, TermSource
from fairagent.settings.parts import Engine as EnginePart
from fairagent.settings.parts import Part, default
from fairagent.site import Site
from fairagent.types import Document, FloatArray, Query, Ranking

DEFAULT = RM3()


class TermEngine(Retriever, TermSource, TextSource, Vocabulary, Protocol):
    """A search engine that keeps terms and texts, such as `BM25Retriever`."""


@dataclass(frozen=True, slots=True)
class RM3Retriever:
    """`engine` with queries expanded by `rm3` (Jaleel et al. 2004).

    Keywords that a query has already keep their weights. It does not show the engine's terms (it is no `TermSource`),
    so that an agent does not expand its queries a second time.
    """

    engine: TermEngine
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


class RM3Config(Part):
    """An engine (BM25, unless another is named) whose queries get the words of their first documents (RM3)."""

    kind: Literal["rm3"] = "rm3"
    documents: int = Field(50, ge=1)
    """How many of the first documents the words are taken from. More give more general words."""
    terms: int = Field(200, ge=1)
    """How many words are added. More widen the query and slow the search down."""
    weight: float = Field(0.7, ge=0, lt=1)
    """The share of the added words in the weight of the whole query, 0 to below 1. Larger values rely less on the
    user's words."""
    engine: EnginePart = default("engine", "bm25")
    """The engine that is searched; it has to tell the terms of its documents."""

    def build(self, site: Site) -> RM3Retriever:
        """The engine; UsageError for one that does not tell the terms of its documents."""
        engine = self.engine.build(site)
        if not (isinstance(engine, TermSource) and isinstance(engine, TextSource) and isinstance(engine, Vocabulary)):
            raise UsageError(f"engine rm3: {self.engine.kind!r} does not tell which terms its documents hold")
        return RM3Retriever(engine, RM3(self.documents, self.terms, self.weight))  # type: ignore[arg-type]
