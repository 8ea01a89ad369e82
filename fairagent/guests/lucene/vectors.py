"""Vector search over an HNSW index that Anserini has built.

Impact indexes: the terms of every document with weights that a model such as SPLADE or uniCOIL gave, quantized.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise, takewhile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import IndexMismatch
from fairagent.guests.lucene.bm25 import AnseriniRetriever, borrowed, stored_document
from fairagent.guests.lucene.index import CONTENTS, IMPACT, VECTOR, VECTORS, AnseriniEngine, AnseriniIndex, TermEngine
from fairagent.guests.lucene.java import java_class
from fairagent.retrieve.base import TextSource, check_length, engine_time, full_text, term_weights
from fairagent.retrieve.catalog import ranked
from fairagent.retrieve.encoders import Embeddings, Encoder
from fairagent.types import Document, FloatArray, Query, Ranking

if TYPE_CHECKING:
    from fairagent.guests.dense.splade import SpladeEncoder


PROBES = 3
"""Documents whose texts are encoded again, to see whether the encoder is the index's."""
ALIKE = 0.5
"""The least mean cosine of these with the stored embeddings: other models' are about 0, cut texts' .9 and more."""


class HnswRetriever(AnseriniEngine):
    """The nearest embeddings by Lucene's HNSW graph; scores are exact inner products with the stored embeddings.

    `ef` nodes are looked at, or as many as documents are wanted: Lucene's score (1 + product) / 2 of quantized
    embeddings orders these, the inner product of the full ones those that are returned. A query is encoded as its text
    and keywords in one line; a blank one finds nothing. Ties are ordered by document id.
    """

    document: Callable[[str], Document]
    """The document by its id, where there are texts."""

    def __init__(self, folder: Path, encoder: Encoder, ef: int = 1000, words: AnseriniRetriever | None = None) -> None:
        """Open the index in `folder`; `words` is an engine with the documents' words."""
        self.index = AnseriniIndex(folder, VECTORS)
        self._encoder, self._ef = encoder, ef
        with self.index.java():
            about = self.index.field(VECTOR)
            self._dimension, similarity = int(about.getVectorDimension()), about.getVectorSimilarityFunction().name()
        if similarity != "DOT_PRODUCT":
            raise IndexMismatch(
                f"the index at {self.index.folder} compares embeddings by {similarity}, not DOT_PRODUCT"
            )
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
        return self.nearest(self._query_vector(text), n)

    @engine_time()
    def nearest(self, vector: Embeddings, n: int) -> Ranking:
        """The best `n` of the documents that the graph finds near `vector` (d,); none for zeros, which know nothing."""
        if not vector.any():
            return Ranking((), np.zeros(0))
        wanted = min(max(n, self._ef), len(self))
        with self.index.java():
            nearest = java_class("org.apache.lucene.search.KnnFloatVectorQuery")(VECTOR, vector.tolist(), wanted)
        hits = self.index.hits(nearest, wanted)
        return ranked(np.array(hits.names, np.bytes_), self._products(hits.numbers, vector), n)

    @engine_time()
    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """The inner products of these documents, (n,), equal to those of `search`; 0 for a blank query."""
        numbers, text = self._numbers(ids), str(query)
        if not len(ids) or not text.strip():
            return np.zeros(len(ids))
        return self._products(numbers, self._query_vector(text))

    @engine_time()
    def vectors(self, ids: Sequence[str]) -> Embeddings:
        """The embeddings of these documents, (n, d); DataError naming ids that are not in the index."""
        return self._rows(self._numbers(ids))

    def query_vector(self, query: Query) -> Embeddings:
        """The embedding of a query's text and keywords, (d,)."""
        vector: Embeddings = self._query_vector(str(query))
        return vector

    def _numbers(self, ids: Sequence[str]) -> NDArray[np.intp]:
        hits = self.index.pool(ids)
        numbers = dict(zip(hits.names, hits.numbers.tolist(), strict=True))
        return np.array([numbers[id.encode()] for id in ids], np.intp)

    def _products(self, numbers: NDArray[np.intp], vector: Embeddings) -> FloatArray:
        """The inner products (n,) of documents with a query's embedding: Lucene's similarity is (1 + product) / 2."""
        similarities = np.zeros(len(numbers))
        listed, sources = vector.tolist(), java_class("org.apache.lucene.search.DoubleValuesSource")
        for segment, places, own in self._by_segment(numbers):
            with self.index.java():
                values = sources.similarityToQueryVector(self.index.segments[segment][0], listed, VECTOR)
                for place, number in zip(places, own, strict=True):
                    if values.advanceExact(number):
                        similarities[place] = values.doubleValue()
        return 2 * similarities - 1

    def _rows(self, numbers: NDArray[np.intp]) -> Embeddings:
        rows = np.zeros((len(numbers), self._dimension), np.float32)
        for segment, places, own in self._by_segment(numbers):
            with self.index.java():
                values = self.index.segments[segment][1].getFloatVectorValues(VECTOR)
                for place, number in zip(places, own, strict=True):
                    if values.docID() == number or values.advance(number) == number:
                        rows[place] = values.vectorValue()
        return rows

    def _by_segment(self, numbers: NDArray[np.intp]) -> Iterator[tuple[int, list[int], list[int]]]:
        """Segments with the places of their documents in `numbers`, and their numbers in the segment, which rise."""
        order = np.argsort(numbers, kind="stable")
        starts = self.index.starts
        for segment, (start, stop) in enumerate(pairwise(np.searchsorted(numbers[order], starts).tolist())):
            if stop > start:
                places = order[start:stop]
                yield segment, places.tolist(), (numbers[places] - starts[segment]).tolist()

    def _check(self, words: AnseriniRetriever | None) -> None:
        own = len(self._query_vector("a"))
        if own != self._dimension:
            raise IndexMismatch(
                f"the index at {self.index.folder} has embeddings of {self._dimension} numbers, and those of "
                f"{self._encoder.name!r} have {own}; name the encoder that made the index"
            )
        if not isinstance(words, TextSource):
            return
        chosen = np.unique(np.linspace(0, len(self) - 1, PROBES).astype(np.intp))
        documents = [words.document(self.index.name(number)) for number in chosen.tolist()]
        encoded, stored = self._encoder.documents([full_text(one) for one in documents]), self._rows(chosen)
        lengths = np.linalg.norm(encoded, axis=1) * np.linalg.norm(stored, axis=1)
        alike = float((np.vecdot(encoded, stored) / np.maximum(lengths, 1e-12)).mean())
        if alike < ALIKE:
            raise IndexMismatch(
                f"the embeddings in the index at {self.index.folder} are not those of {self._encoder.name!r}: the mean "
                f"cosine of {len(chosen)} documents' is {alike:.2f}; name the encoder that made the index"
            )


class ImpactRetriever(TermEngine):
    """The sum, over a query's terms, of its weight times the document's impact, as Anserini's ImpactSimilarity scores.

    With an `encoder` a query is its text and keywords in one line, and a weight w becomes
    round(w / `scale` * `levels`), as pyserini quantizes them (5 and 256). Without one the query's words are terms of
    the index as they stand, each with its number of times and keywords with their weights.
    """

    document: Callable[[str], Document]
    """The stored document by its id, where the index stores texts."""

    def __init__(
        self,
        folder: Path,
        encoder: SpladeEncoder | None = None,
        scale: float = 5.0,
        levels: int = 256,
        words: AnseriniRetriever | None = None,
    ) -> None:
        """Open the index in `folder`; `words` is an engine with the documents' words."""
        self.index = index = AnseriniIndex(folder, IMPACT, "io.anserini.search.similarity.ImpactSimilarity")
        self._encoder, self._scale, self._levels = encoder, scale, levels
        if encoder:
            self._check(encoder)
        if index.stored:
            self.document = engine_time()(lambda id: stored_document(index, id))
        if words:
            vars(self).update(borrowed(words))
        # The query of a search is often scored against a pool afterwards.
        self._encoded = lru_cache(maxsize=64)(self._weights)

    def weights(self, query: Query) -> dict[str, float]:
        """The terms that are searched, with their weights."""
        if self._encoder is None:
            return term_weights(query, str.split)
        return dict(self._encoded(str(query)))

    def _weights(self, text: str) -> Counter[str]:
        assert self._encoder is not None
        weights: Counter[str] = Counter()
        if text.strip():
            row = self._encoder.queries([text])
            for place, weight in zip(row.indices.tolist(), row.data.tolist(), strict=True):
                # What is rounded to 0 would find documents with a score of 0.
                if quantized := round(weight / self._scale * self._levels):
                    weights[self._encoder.vocabulary[place]] = quantized
        return weights

    def _check(self, encoder: SpladeEncoder) -> None:
        known = set(encoder.vocabulary)
        with self.index.java():
            terms = self.index.segments[0][1].terms(CONTENTS).iterator()
            there = [term.utf8ToString() for term in takewhile(bool, (terms.next() for _ in range(200)))]
        strange = [term for term in there if term not in known]
        if 2 * len(strange) > len(there):
            raise IndexMismatch(
                f"the index at {self.index.folder} was not made with the vocabulary of {encoder.name!r} (terms such as "
                f"{', '.join(map(repr, strange[:3]))} are not in it); name the encoder that made the index"
            )
