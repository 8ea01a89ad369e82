"""Searching the embeddings of an index on a server: its own nearest-neighbor search, scores as inner products."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from operator import index
from typing import Any

import numpy as np

from fairagent.extend import (
    DataError,
    Embeddings,
    Encoder,
    FloatArray,
    Query,
    Ranking,
    UsageError,
    at_path,
    check_length,
    engine_time,
)
from fairagent.guests.opensearch.groups import ServerGroups
from fairagent.guests.opensearch.index import WHOLE, ServerCache, ServerIndex, understood
from fairagent.guests.opensearch.search import OpenSearchRetriever, ordered

MOST_NUMBERS = 400_000
"""Numbers of one answer: some 8 MB as JSON."""
BYTES_CACHED = 1 << 28
MOST_CANDIDATES = 10_000
"""The most that a server looks at in each shard."""
FIRST_KNN = (8, 0)
"""The oldest Elasticsearch with a search for nearest neighbors."""


def by_product(score: float) -> float:
    """The inner product p that a server scores as p + 1, or where it is below 0 as 1 / (1 - p).

    >>> by_product(3.0), by_product(0.25)
    (2.0, -3.0)
    """
    return score - 1 if score >= 1 else 1 - 1 / score


PRODUCTS = ("max_inner_product", "innerproduct")
COSINES = ("cosine", "cosinesimil")
READABLE = ("cosine", "dot_product", "max_inner_product", "cosinesimil", "innerproduct")
"""What mappings call the likenesses whose scores can be read back: (1 + cosine) / 2, or as `by_product`."""


class OpenSearchVectors:
    """The documents nearest to a query's embedding, as an index on a server finds them (HNSW: not always all of them).

    A score is the inner product, or where the index compares directions the cosine, of the embeddings, as for
    `engine: dense`; ties are ordered by id. A blank query has no hits. Threads may share it.
    """

    def __init__(
        self, words: OpenSearchRetriever, encoder: Encoder, candidates: int = 0, groups: ServerGroups | None = None
    ) -> None:
        """Take the engine of the same index's words, the encoder, and how many documents each shard looks at."""
        self._words, self._index, self._encoder, self._groups = words, words.index, encoder, groups
        self._candidates = candidates
        self.document, self.documents = words.document, words.documents
        self._field = self._index.fields.vector
        self.likeness, self.dimensions = likeness(self._index)
        # The query of a search is often scored against a pool afterwards.
        self._query_vector = lru_cache(maxsize=64)(self._encoded)
        self._embeddings: ServerCache[Embeddings] = ServerCache(max(1, BYTES_CACHED // (4 * self.dimensions)))

    def __len__(self) -> int:
        return len(self._words)

    @engine_time("server")
    def search(self, query: Query, n: int) -> Ranking:
        """The `n` nearest documents (fewer where the server has fewer)."""
        check_length(n)
        n = index(n)
        if n > min(self._index.window, MOST_CANDIDATES):
            raise UsageError(f"{n:,} nearest documents were requested; a server gives at most {MOST_CANDIDATES:,}")
        if not str(query).strip():
            return Ranking((), np.zeros(0))
        return self._nearest(self.query_vector(query), n, query.text)

    @engine_time("server")
    def nearest(self, vector: Embeddings, n: int) -> Ranking:
        """The `n` documents nearest to `vector` (d,), as for `search`."""
        return self._nearest(vector, n, "the refined query")

    def _nearest(self, query: Embeddings, n: int, name: str) -> Ranking:
        vector = [float(number) for number in query]
        if self._index.version.is_opensearch:
            nearest: dict[str, Any] = {"query": {"knn": {self._field: {"vector": vector, "k": n}}}}
        else:
            candidates = min(MOST_CANDIDATES, max(self._candidates or 2 * n, n, 100))
            nearest = {"knn": {"field": self._field, "query_vector": vector, "k": n, "num_candidates": candidates}}
        fields = self._groups.fields if self._groups else ()
        hits = self._index.hits({**nearest, "size": n}, fields, name, WHOLE)
        if self._groups:
            self._groups.see(hits)
        with understood(self._index.server):
            products = self.likeness in PRODUCTS
            scores = [(one.id, by_product(one.score) if products else 2 * one.score - 1) for one in hits]
            return ordered(scores, n)

    @engine_time("server")
    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """The inner products (or cosines) of the given documents, (n,), computed here; 0 for a blank query."""
        if not len(ids) or not str(query).strip():
            return np.zeros(len(ids))
        rows, vector = self.vectors(ids).astype(np.float64), self.query_vector(query).astype(np.float64)
        products = rows @ vector
        if self.likeness in COSINES:
            products /= np.maximum(np.linalg.norm(rows, axis=1) * np.linalg.norm(vector), np.finfo(np.float64).tiny)
        return np.asarray(products)

    @engine_time("server")
    def vectors(self, ids: Sequence[str]) -> Embeddings:
        """The embeddings of these documents, (n, d); DataError naming ids without one."""
        batch = max(1, min(self._index.window, MOST_NUMBERS // self.dimensions))
        vectors = self._embeddings.all(ids, self._fetch, batch)
        return np.stack([vectors[id] for id in ids]) if len(ids) else np.zeros((0, self.dimensions), np.float32)

    def query_vector(self, query: Query) -> Embeddings:
        """The embedding of a query's text and keywords, (d,)."""
        vector: Embeddings = self._query_vector(str(query))
        return vector

    def _encoded(self, text: str) -> Embeddings:
        vector: Embeddings = self._encoder.queries([text])[0]
        if len(vector) != self.dimensions:
            raise DataError(
                f"the embeddings of index {self._index} have {self.dimensions} numbers, and {self._encoder.name} makes "
                f"{len(vector)}: they are another encoder's; set engine.encoder to it"
            )
        return vector

    def _fetch(self, ids: list[str]) -> dict[str, Embeddings]:
        vectors: dict[str, Embeddings] = {}
        for id, one in self._index.fetch(ids, (self._field,)).items():
            with understood(self._index.server):
                vector = np.array(at_path(one.source, self._field) or [], dtype=np.float32)
            if vector.shape != (self.dimensions,) or not np.isfinite(vector).all():
                raise DataError(
                    f"document {id[:60]!r} of index {self._index} has no embedding of {self.dimensions} numbers in "
                    f"{self._field!r}"
                )
            vectors[id] = vector
        return vectors


def likeness(index: ServerIndex) -> tuple[str, int]:
    """How the index compares embeddings, as its mapping calls it, and how many numbers they have."""
    field = index.fields.vector
    if not field:
        raise DataError("`by: embeddings` needs the field that holds them (engine.fields.vector)")
    index.check_fields((field,))
    about = index.mapping[field]
    type_ = about.get("type")
    wanted = "knn_vector" if index.version.is_opensearch else "dense_vector"
    if type_ != wanted:
        raise DataError(f"field {field!r} of index {index} is of type {type_}; embeddings are in a {wanted}")
    method = about.get("method") or {}
    if index.version.is_opensearch:
        name = str(about.get("space_type") or method.get("space_type") or "l2")
    else:
        name = str(about.get("similarity") or "cosine")
        if index.version.numbers < FIRST_KNN:
            raise DataError(f"{index.version} has no search for nearest neighbors; version 8 and later have one")
        if about.get("index") is False:
            raise DataError(f"field {field!r} of index {index} is not indexed, so nothing can be searched by it")
    if name not in READABLE or method.get("engine") == "nmslib":
        raise DataError(
            f"field {field!r} of index {index} compares embeddings by {name} ({method.get('engine', 'its own')}), and "
            f"scores of that are no inner products; what can be read: {', '.join(READABLE)}"
        )
    return name, int(about.get("dimension" if index.version.is_opensearch else "dims") or 0)
