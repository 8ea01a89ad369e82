"""Vector search over an HNSW index that Anserini has built."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import DataError, IndexMismatch
from fairagent.retrieve.anserini import loops
from fairagent.retrieve.anserini.bm25 import AnseriniRetriever, borrowed
from fairagent.retrieve.anserini.opened import VECTORS, AnseriniEngine, AnseriniIndex
from fairagent.retrieve.base import TextSource, check_length, full_text
from fairagent.retrieve.clock import engine_time
from fairagent.retrieve.encoder import Embeddings, Encoder
from fairagent.retrieve.hits import numbers_and_scores
from fairagent.retrieve.java import java_class, using_java
from fairagent.retrieve.strings import ranked
from fairagent.types import Document, FloatArray, Query, Ranking

PROBES = 3
"""Documents whose texts are encoded again, to see whether the encoder is the index's."""
ALIKE = 0.5
"""The least mean cosine of these with the stored embeddings: other models' are about 0, cut texts' .9 and more."""


class HnswRetriever(AnseriniEngine):
    """The nearest embeddings by Lucene's HNSW graph; scores are exact inner products with the stored embeddings.

    `ef` nodes are looked at, or as many as documents are asked for: Lucene's score (1 + product) / 2 of quantized
    embeddings orders these, the inner product of the full ones those that are returned. A query is encoded as its text
    and keywords in one line; a blank one finds nothing. Ties are ordered by document id.
    """

    document: Callable[[str], Document]
    """The document by its id, where there are texts."""

    def __init__(
        self,
        folder: Path,
        kept: Path,
        encoder: Encoder,
        ef: int = 1000,
        words: AnseriniRetriever | None = None,
        progress: Callable[[int], None] = lambda done: None,
    ) -> None:
        """Open the index in `folder`; `kept` is where its ids are kept, `words` an engine with the documents' words.

        Raises what `AnseriniIndex` does; IndexMismatch where the embeddings are not the encoder's: by their number of
        dimensions, and where there are texts, by the embeddings of some of them.
        """
        self.index = AnseriniIndex(folder, VECTORS, kept, progress)
        self._encoder, self._ef = encoder, ef
        with using_java():
            similarity = java_class("org.apache.lucene.search.similarities.BM25Similarity")()
            self._searcher = self.index.searcher(similarity)
        # The query of a search is often scored against a pool afterwards.
        self._query_vector = lru_cache(maxsize=64)(lambda text: encoder.queries([text])[0])
        if words:
            vars(self).update(borrowed(words))
        self._check(words)

    @engine_time()
    def search(self, query: Query, n: int) -> Ranking:
        """The best `n` of the documents that the graph finds."""
        check_length(n)
        text = str(query)
        if not text.strip():
            return Ranking((), np.zeros(0))
        vector = self._query_vector(text)
        wanted = min(max(n, self._ef), len(self))
        with using_java(), self.index.sound():
            found = java_class("org.apache.lucene.search.KnnFloatVectorQuery")(loops.VECTOR, vector.tolist(), wanted)
            numbers, _ = numbers_and_scores(self._searcher.search(found, wanted))
        return ranked(self.index.ids.names(numbers), self._products(numbers, vector), n)

    @engine_time()
    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """The inner products of these documents, (n,), equal to those of `search`; 0 for a blank query.

        Raises DataError naming ids that are not in the index.
        """
        numbers = self.index.ids.known(ids)
        text = str(query)
        if not len(ids) or not text.strip():
            return np.zeros(len(ids))
        return self._products(numbers, self._query_vector(text))

    @engine_time()
    def vectors(self, ids: Sequence[str]) -> Embeddings:
        """The embeddings of these documents, (n, d); DataError naming ids that are not in the index."""
        return self._rows(self.index.ids.known(ids))

    def query_vector(self, query: Query) -> Embeddings:
        """The embedding of a query's text and keywords, (d,)."""
        vector: Embeddings = self._query_vector(str(query))
        return vector

    def _products(self, numbers: NDArray[np.intp], vector: Embeddings) -> FloatArray:
        # Row by row and in double precision, so that a score does not depend on what else is scored.
        return np.asarray(np.vecdot(self._rows(numbers).astype(np.float64), vector.astype(np.float64)))

    def _rows(self, numbers: NDArray[np.intp]) -> Embeddings:
        starts, dimension = self.index.starts, self.index.fields[loops.VECTOR].dimension
        distinct, asked = np.unique(numbers, return_inverse=True)
        parts = [np.zeros((0, dimension), np.float32)]
        with using_java(), self.index.sound():
            for place, (start, stop) in enumerate(pairwise(np.searchsorted(distinct, starts).tolist())):
                if stop > start:
                    places = (distinct[start:stop] - starts[place]).tolist()
                    parts.append(loops.embeddings(self._values(place), places, dimension))
        return np.concatenate(parts)[asked]

    def _values(self, place: int) -> Any:
        """The embeddings of a segment: as many as documents, so that a document's number is its embedding's."""
        leaf = self.index.leaf(place)
        values = leaf.getFloatVectorValues(loops.VECTOR)
        if values is None or values.size() != leaf.maxDoc():
            there = 0 if values is None else values.size()
            raise DataError(
                f"{leaf.maxDoc() - there:,} documents of the index at {self.index.folder} have no embedding of floats; "
                "build it again, or take another prebuilt one"
            )
        return values

    def _check(self, words: AnseriniRetriever | None) -> None:
        own = len(self._query_vector("a"))
        dimension = self.index.fields[loops.VECTOR].dimension
        if own != dimension:
            raise IndexMismatch(
                f"the index at {self.index.folder} has embeddings of {dimension} numbers, and those of "
                f"{self._encoder.name!r} have {own}; name the encoder that made the index"
            )
        if not isinstance(words, TextSource):
            return
        chosen = np.unique(np.linspace(0, len(self) - 1, PROBES).astype(np.intp))
        documents = [words.document(id.decode()) for id in self.index.ids.names(chosen).tolist()]
        encoded, stored = self._encoder.documents([full_text(one) for one in documents]), self._rows(chosen)
        lengths = np.linalg.norm(encoded, axis=1) * np.linalg.norm(stored, axis=1)
        alike = float((np.vecdot(encoded, stored) / np.maximum(lengths, 1e-12)).mean())
        if alike < ALIKE:
            raise IndexMismatch(
                f"the embeddings in the index at {self.index.folder} are not those of {self._encoder.name!r}: the mean "
                f"cosine of {len(chosen)} documents' is {alike:.2f}; name the encoder that made the index"
            )
