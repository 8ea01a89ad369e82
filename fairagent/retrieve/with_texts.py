"""Engines that keep no texts, with those of the BM25 index beside them."""

from collections.abc import Sequence
from dataclasses import dataclass

from fairagent.retrieve.base import PassageSource, Retriever, TextSource, shown, texts_for
from fairagent.retrieve.encoder import Embeddings
from fairagent.types import Document, FloatArray, Query, Ranking


@dataclass(frozen=True, slots=True)
class RetrieverWithTexts:
    """An engine that can also show its documents, of which its own index keeps no texts."""

    engine: Retriever
    texts: TextSource | PassageSource

    def search(self, query: Query, n: int) -> Ranking:
        """The best `n` documents by the engine."""
        return self.engine.search(query, n)

    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """The engine's scores of the given documents, (n,)."""
        return self.engine.score(query, ids)

    def document(self, id: str) -> Document:
        """The document as the BM25 index stores it."""
        return self.texts.document(id)  # type: ignore[union-attr]

    def documents(self, ids: Sequence[str]) -> list[Document]:
        """These documents, at once where the index can."""
        return shown(ids, self.texts)  # type: ignore[arg-type]

    def passages(self, query: Query, ids: Sequence[str]) -> list[Document]:
        """The documents, or of a collection in passages the best passage of each, by its words."""
        return texts_for(query, ids, self.texts)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class VectorRetrieverWithTexts(RetrieverWithTexts):
    """Vector search that can also show its documents, and tells their embeddings."""

    def vectors(self, ids: Sequence[str]) -> Embeddings:
        """The embeddings of these documents, (n, d)."""
        found: Embeddings = self.engine.vectors(ids)  # type: ignore[attr-defined]
        return found

    def query_vector(self, query: Query) -> Embeddings:
        """That of a query, (d,)."""
        vector: Embeddings = self.engine.query_vector(query)  # type: ignore[attr-defined]
        return vector

    def nearest(self, vector: Embeddings, n: int) -> Ranking:
        """The `n` documents with the largest products with `vector` (d,)."""
        found: Ranking = self.engine.nearest(vector, n)  # type: ignore[attr-defined]
        return found
