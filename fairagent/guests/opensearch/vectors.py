"""Searching the embeddings of an index on a server: its own nearest-neighbor search, scores as inner products."""

from __future__ import annotations

from typing import Any

from fairagent.extend import DataError, Embeddings, Encoder, at_path
from fairagent.guests.opensearch.groups import ServerGroups
from fairagent.guests.opensearch.index import WHOLE, ServerIndex, understood
from fairagent.guests.opensearch.search import OpenSearchRetriever
from fairagent.guests.servers import ServerVectors

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


class OpenSearchVectors(ServerVectors):
    """The documents nearest to a query's embedding, as an index on a server finds them (HNSW: not always all of them).

    See `ServerVectors`. Threads may share it.
    """

    def __init__(
        self, words: OpenSearchRetriever, encoder: Encoder, candidates: int = 0, groups: ServerGroups | None = None
    ) -> None:
        """Take the engine of the same index's words, the encoder, and how many documents each shard looks at."""
        self._words, self._index, self._groups, self._candidates = words, words.index, groups, candidates
        self.document, self.documents = words.document, words.documents
        self._field = self._index.fields.vector
        self.likeness, dimensions = likeness(self._index)
        most = min(self._index.window, MOST_CANDIDATES)
        super().__init__(
            f"index {self._index}", encoder, dimensions, self.likeness in COSINES, most, self._index.window
        )

    def __len__(self) -> int:
        return len(self._words)

    def _neighbors(self, vector: Embeddings, n: int, about: str) -> list[tuple[str, float]]:
        numbers = [float(number) for number in vector]
        if self._index.version.is_opensearch:
            nearest: dict[str, Any] = {"query": {"knn": {self._field: {"vector": numbers, "k": n}}}}
        else:
            candidates = min(MOST_CANDIDATES, max(self._candidates or 2 * n, n, 100))
            nearest = {"knn": {"field": self._field, "query_vector": numbers, "k": n, "num_candidates": candidates}}
        fields = self._groups.fields if self._groups else ()
        hits = self._index.hits({**nearest, "size": n}, fields, about, WHOLE)
        if self._groups:
            self._groups.see(hits)
        with understood(self._index.server):
            products = self.likeness in PRODUCTS
            return [(one.id, by_product(one.score) if products else 2 * one.score - 1) for one in hits]

    def _stored(self, ids: list[str]) -> dict[str, Any]:
        return {id: at_path(one.source, self._field) for id, one in self._index.fetch(ids, (self._field,)).items()}


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
