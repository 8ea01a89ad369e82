"""What engines on servers share: vector search where the embeddings are, and groups that documents bring with them."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from operator import index
from typing import Generic, TypeVar

import numpy as np

from fairagent.extend import (
    DataError,
    Embeddings,
    Encoder,
    FloatArray,
    Groups,
    JoinedGroups,
    Query,
    Ranking,
    SettingsError,
    Site,
    UsageError,
    check_length,
    engine_time,
)

T = TypeVar("T")

MOST_NUMBERS = 400_000
"""Numbers of one answer: some 8 MB as JSON."""
BYTES_CACHED = 1 << 28


class ServerCache(Generic[T]):
    """The values of the keys used last, at most `most` of them. Threads may share it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[str, T] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, values: Mapping[str, T]) -> None:
        """Add these, and drop the oldest beyond `most`."""
        with self._lock:
            for key, one in values.items():
                self._values[key] = one
                self._values.move_to_end(key)
            while len(self._values) > self._most:
                self._values.popitem(last=False)

    def all(self, keys: Sequence[str], fetch: Callable[[list[str]], Mapping[str, T]], batch: int) -> dict[str, T]:
        """The values of all keys; unknown ones are fetched, `batch` at a time."""
        with self._lock:
            values = {key: self._values[key] for key in keys if key in self._values}
        unknown = [key for key in dict.fromkeys(keys) if key not in values]
        for start in range(0, len(unknown), batch):
            values.update(fetch(unknown[start : start + batch]))
        self.keep(values)
        return values


def best_of(scores: Sequence[tuple[str, float]], n: int) -> Ranking:
    """The best `n` of documents (id, score), ties by the bytes of their ids."""
    best = sorted(scores, key=lambda one: (-one[1], one[0].encode("utf-8", "surrogatepass")))[:n]
    return Ranking(tuple(id for id, _ in best), np.array([score for _, score in best], dtype=np.float64))


class ServerVectors(ABC):
    """The documents nearest to a query's embedding, as a server finds them (its index may miss some).

    A score is the inner product, or where the server compares directions the cosine, of the embeddings, as for
    `engine: dense`; ties are ordered by id. A blank query has no hits. Threads may share it.
    """

    def __init__(self, name: str, encoder: Encoder, dimensions: int, cosine: bool, most: int, window: int) -> None:
        """Take the index's name, its encoder, and how long embeddings, answers and requests for documents may be."""
        self.dimensions = dimensions
        self._name, self._encoder, self._cosine, self._most = name, encoder, cosine, most
        self._batch = max(1, min(window, MOST_NUMBERS // dimensions))
        # The query of a search is often scored against a pool afterwards.
        self._query_vector = lru_cache(maxsize=64)(self._encoded)
        self._embeddings: ServerCache[Embeddings] = ServerCache(max(1, BYTES_CACHED // (4 * dimensions)))

    @abstractmethod
    def _neighbors(self, vector: Embeddings, n: int, about: str) -> Sequence[tuple[str, float]]:
        """The `n` documents nearest to a vector (d,), with their scores."""

    @abstractmethod
    def _stored(self, ids: list[str]) -> Mapping[str, Sequence[float] | None]:
        """The embeddings of these documents; DataError naming ids that are not there."""

    @engine_time("server")
    def search(self, query: Query, n: int) -> Ranking:
        """The `n` nearest documents (fewer where the server has fewer)."""
        check_length(n)
        n = index(n)
        if n > self._most:
            raise UsageError(f"{n:,} nearest documents were requested; a server gives at most {self._most:,}")
        if not str(query).strip():
            return Ranking((), np.zeros(0))
        return best_of(self._neighbors(self.query_vector(query), n, query.text), n)

    @engine_time("server")
    def nearest(self, vector: Embeddings, n: int) -> Ranking:
        """The `n` documents nearest to `vector` (d,), as for `search`."""
        return best_of(self._neighbors(vector, n, "the refined query"), n)

    @engine_time("server")
    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """The inner products (or cosines) of the given documents, (n,), computed here; 0 for a blank query."""
        if not len(ids) or not str(query).strip():
            return np.zeros(len(ids))
        rows, vector = self.vectors(ids).astype(np.float64), self.query_vector(query).astype(np.float64)
        products = rows @ vector
        if self._cosine:
            products /= np.maximum(np.linalg.norm(rows, axis=1) * np.linalg.norm(vector), np.finfo(np.float64).tiny)
        return np.asarray(products)

    @engine_time("server")
    def vectors(self, ids: Sequence[str]) -> Embeddings:
        """The embeddings of these documents, (n, d); DataError naming ids without one."""
        vectors = self._embeddings.all(ids, self._read, self._batch)
        return np.stack([vectors[id] for id in ids]) if len(ids) else np.zeros((0, self.dimensions), np.float32)

    def query_vector(self, query: Query) -> Embeddings:
        """The embedding of a query's text and keywords, (d,)."""
        vector: Embeddings = self._query_vector(str(query))
        return vector

    def _encoded(self, text: str) -> Embeddings:
        vector: Embeddings = self._encoder.queries([text])[0]
        if len(vector) != self.dimensions:
            raise DataError(
                f"the embeddings of {self._name} have {self.dimensions} numbers, and {self._encoder.name} makes "
                f"{len(vector)}: they are another encoder's; set engine.encoder to it"
            )
        return vector

    def _read(self, ids: list[str]) -> dict[str, Embeddings]:
        vectors: dict[str, Embeddings] = {}
        for id, one in self._stored(ids).items():
            try:
                vector = vectors[id] = np.array(() if one is None else one, dtype=np.float32)
            except (TypeError, ValueError):
                vector = np.zeros(0, np.float32)
            if vector.shape != (self.dimensions,) or not np.isfinite(vector).all():
                raise DataError(f"document {id[:60]!r} of {self._name} has no embedding of {self.dimensions} numbers")
        return vectors


def with_groups(site: Site, names: Collection[str], groups: Callable[[], Groups]) -> Site:
    """With the groups that an engine's documents carry; SettingsError for a dimension that is there already."""
    if not names:
        return site
    own = site.collection.groups
    if twice := sorted(set(own.dimensions) & set(names)):
        raise SettingsError(
            f"engine.groups: collection {site.collection.name!r} has groups of {', '.join(twice)} already; leave "
            "them out here or there"
        )
    return replace(site, collection=replace(site.collection, groups=JoinedGroups([own, groups()])))


def expect_of_collection(site: Site, names: Collection[str]) -> None:
    """Raise SettingsError in an experiment whose collection does not have the groups."""
    if site.stateless and not set(names) <= set(site.collection.groups.dimensions):
        raise SettingsError(
            "an experiment judges by the groups of its collection: write those of the index into a table once "
            "(guests/opensearch/README.md), name it in the collection's settings file, and leave out engine.groups"
        )
