"""Vector search: inner products with the embeddings of a collection, of all of them or of those that an index names."""

from collections.abc import Sequence
from copy import copy
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import IndexMismatch
from fairagent.retrieve.ann import AnnIndex
from fairagent.retrieve.base import check_length, engine_time
from fairagent.retrieve.catalog import IdTable, both, mapped, ranked
from fairagent.retrieve.encoded import PROBE_TEXT, VECTORS, DenseManifest, floats
from fairagent.retrieve.encoders import Embeddings, Encoder
from fairagent.retrieve.manifest import REMEDY, Indexable
from fairagent.types import FloatArray, Query, Ranking

F = TypeVar("F", bound=np.floating[Any])

BLOCK = 1 << 9
"""Documents whose scores are computed at once; so many embeddings stay in a processor's cache."""
IN_MEMORY = 1 << 27
"""Bytes of embeddings (as 32-bit floats) up to which they are held in memory from the first search on; of more, which
cost more to convert than to multiply, blocks are converted each time."""


@runtime_checkable
class EmbeddingSource(Protocol):
    """An engine with embeddings of its documents."""

    def vectors(self, ids: Sequence[str]) -> Embeddings:
        """The embeddings of these documents, (n, d)."""


@runtime_checkable
class VectorEngine(EmbeddingSource, Protocol):
    """An engine that searches by embeddings."""

    def query_vector(self, query: Query) -> Embeddings:
        """That of a query, (d,)."""


@runtime_checkable
class VectorSearch(VectorEngine, Protocol):
    """An engine that finds the documents near any vector, not a query's alone."""

    def nearest(self, vector: Embeddings, n: int) -> Ranking:
        """The `n` documents with the largest products with `vector` (d,)."""


class DenseRetriever:
    """Every document by the inner product of its embedding and the query's; ties are ordered by document id.

    A query is encoded as its text and its keywords in one line, without their weights. Every document has a score, so
    `n` documents are returned wherever the collection has them; a blank query matches nothing, nor does one of which
    the encoder knows nothing (zeros). `stored` (n, d) has a row for each document, in the order of `ids`.
    """

    def __init__(
        self, folder: Path, encoder: Encoder, collection: Indexable | None = None, ann: AnnIndex | None = None
    ) -> None:
        """Open the index in `folder`; with `collection`, only if the index was built from it as it is now.

        With `ann`, made from the same embeddings, searches look at the documents that it names. Raises
        BackendUnavailable where there is no index, IndexMismatch where it is damaged, or was built from
        something else or with another model (two models may share a name: what counts is the vector of a test text).
        """
        self._ann = ann
        self._among: NDArray[np.intp] | None = None
        with DenseManifest.opening(folder, collection) as of:
            self.folder, self.manifest = folder, of
            self.ids = IdTable.load(folder)
            self.stored: NDArray[np.float16] = mapped(folder / VECTORS)
            if not len(self.ids) == of.documents or self.stored.shape != (of.documents, of.dimension):
                raise ValueError(f"{VECTORS} has the shape {self.stored.shape} for {len(self.ids)} ids")
        of.check_model(folder, encoder.name, encoder.documents([PROBE_TEXT])[0])
        # The query of a search is often scored against a pool afterwards.
        self._query_vector = lru_cache(maxsize=64)(lambda text: encoder.queries([text])[0])

    def __len__(self) -> int:
        return len(self.ids)

    def search(self, query: Query, n: int) -> Ranking:
        """The `n` documents with the largest inner products; through an index those that it finds, never fewer."""
        check_length(n)
        if not (text := str(query)).strip():
            return Ranking((), np.zeros(0))
        with engine_time("vectors"):
            return self.nearest(self._query_vector(text), n)

    def nearest(self, vector: Embeddings, n: int) -> Ranking:
        """The `n` documents with the largest products with `vector` (d,), as `search` finds them; none for zeros."""
        if not vector.any():
            return Ranking((), np.zeros(0))
        n = min(n, len(self) if self._among is None else len(self._among))
        close = self._ann.candidates(vector, n) if self._ann and self._among is None else None
        if close is None or len(close) < n:
            close = self.near(vector, n)
        return ranked(self.ids.names(close), self._scores(close, vector), n)

    def among(self, numbers: NDArray[np.intp]) -> Self:
        """The same engine over the documents with these `numbers`, which rise; an ANN index is not used."""
        restricted = copy(self)
        restricted._among = both(numbers, self._among)
        return restricted

    def near(self, vector: Embeddings, n: int) -> NDArray[np.intp]:
        """Numbers of documents, rising, that hold the `n` with the largest products with a query's `vector` (d,)."""
        with np.errstate(invalid="ignore"):
            rough = self._finite(self._products(vector))
        if self._among is not None:
            close = self._close(rough[self._among], n) if n else np.zeros(0, dtype=np.intp)
            return self._among[close]
        return self._close(rough, n)

    def _close(self, rough: NDArray[Any], n: int) -> NDArray[np.intp]:
        # Products of 32-bit floats depend on where a row stands in its block: the close ones are computed anew.
        margin = 1e-5 * float(np.abs(rough).max())
        return np.flatnonzero(rough >= np.partition(rough, -n)[-n] - margin)

    def best(self, vector: Embeddings, numbers: NDArray[np.intp], n: int) -> NDArray[np.intp]:
        """The `n` of these documents with the largest products with a query's `vector` (d,), ties by number."""
        return numbers[np.argsort(-self._scores(numbers, vector), kind="stable")[:n]]

    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """The inner products of the given documents, (n,), equal to those of `search`; 0 for a blank query.

        Raises DataError naming ids that are not in the index.
        """
        numbers = self.ids.known(ids)
        if not len(ids) or not (text := str(query)).strip():
            return np.zeros(len(ids))
        with engine_time("vectors"):
            return self._scores(numbers, self._query_vector(text))

    def vectors(self, ids: Sequence[str]) -> Embeddings:
        """The embeddings of these documents, (n, d); DataError naming ids that are not in the index."""
        return self._rows(self.ids.known(ids))

    @cached_property
    def _whole(self) -> Embeddings | None:
        return self.stored.astype(np.float32) if 4 * self.stored.size <= IN_MEMORY else None

    def query_vector(self, query: Query) -> Embeddings:
        """The embedding of a query's text and keywords, (d,)."""
        return np.asarray(self._query_vector(str(query)))

    def _products(self, vector: Embeddings) -> Embeddings:
        if self._whole is not None:
            return np.asarray(self._whole @ vector)
        blocks = (floats(self.stored[start : start + BLOCK]) for start in range(0, len(self), BLOCK))
        return np.concatenate([block @ vector for block in blocks])

    def _scores(self, numbers: NDArray[np.intp], vector: Embeddings) -> FloatArray:
        # Row by row, so that a score does not depend on what else is scored.
        rows = self._rows(numbers).astype(np.float64)
        with np.errstate(invalid="ignore"):
            return self._finite(np.asarray(np.vecdot(rows, vector.astype(np.float64))))

    def _finite(self, products: NDArray[F]) -> NDArray[F]:
        if not np.isfinite(products).all():
            raise IndexMismatch(
                f"the embeddings at {self.folder} or the query's hold numbers that are not finite; if it is they, "
                + REMEDY
            )
        return products

    def _rows(self, numbers: NDArray[np.intp]) -> Embeddings:
        return floats(self.stored[numbers]) if self._whole is None else self._whole[numbers]
