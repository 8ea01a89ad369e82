"""Anserini's HNSW indexes of embeddings, and impact indexes: terms with quantized weights of a model (SPLADE)."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import IndexMismatch
from fairagent.guests.lucene.bm25 import CONTENTS, SEARCH, VECTOR, AnseriniEngine, AnseriniRetriever
from fairagent.guests.lucene.java import java_class, using_java
from fairagent.retrieve.base import TextSource, check_length, engine_time, full_text, lend, term_weights
from fairagent.retrieve.encoders import Embeddings, Encoder
from fairagent.types import FloatArray, Query, Ranking

BORROWED = ("document", "documents", "document_frequency", "postings", "words", "analyze")
"""What an engine over another index of the same documents does in its place."""
PROBES, ALIKE = 3, 0.5
"""Documents encoded again, and the least mean cosine with what is stored: other models' are about 0, cut texts' .9."""


class HnswRetriever(AnseriniEngine):
    """The nearest embeddings by Lucene's HNSW graph; scores are exact inner products with the stored embeddings.

    `ef` nodes are looked at, or as many as documents are wanted: Lucene's score of quantized embeddings chooses these,
    the inner product of the full ones orders them. A query is encoded as its text and keywords in one line; a blank one
    finds nothing. Ties are ordered by document id.
    """

    engine = "lucene-hnsw"

    def __init__(self, folder: Path, encoder: Encoder, ef: int = 1000, words: AnseriniRetriever | None = None) -> None:
        """Open the index in `folder`; `words` is an engine with the documents' words."""
        super().__init__(folder)
        self._ef = ef
        with self.java():
            about = self.field(VECTOR)
            self._dimension, similarity = int(about.getVectorDimension()), about.getVectorSimilarityFunction().name()
        if similarity != "DOT_PRODUCT":
            raise IndexMismatch(f"the index at {self.folder} compares embeddings by {similarity}, not DOT_PRODUCT")
        # The query of a search is often scored against a pool afterwards.
        self._query_vector = lru_cache(maxsize=64)(lambda text: encoder.queries([text])[0])
        lend(self, words, *BORROWED)
        own, named = len(self._query_vector("a")), f"{encoder.name!r}; name the encoder that made the index"
        if own != self._dimension:
            raise IndexMismatch(f"the embeddings at {self.folder} have {self._dimension} numbers, not {own} as {named}")
        if isinstance(words, TextSource):
            chosen = np.unique(np.linspace(0, len(self) - 1, PROBES).astype(np.intp))
            texts = [full_text(words.document(self.name(number))) for number in chosen.tolist()]
            encoded, stored = encoder.documents(texts), self._rows(chosen)
            lengths = np.linalg.norm(encoded, axis=1) * np.linalg.norm(stored, axis=1)
            alike = float((np.vecdot(encoded, stored) / np.maximum(lengths, 1e-12)).mean())
            if alike < ALIKE:
                raise IndexMismatch(f"the embeddings at {self.folder} (mean cosine {alike:.2f}) are not of {named}")

    def search(self, query: Query, n: int) -> Ranking:
        check_length(n)
        return self.nearest(self.query_vector(query), n) if str(query).strip() else Ranking((), np.zeros(0))

    @engine_time()
    def nearest(self, vector: Embeddings, n: int) -> Ranking:
        """The best `n` of the documents that the graph finds near `vector` (d,); none for zeros, which know nothing."""
        if not vector.any():
            return Ranking((), np.zeros(0))
        with self.java():
            nearest = java_class(SEARCH + "KnnFloatVectorQuery")(
                VECTOR, vector.tolist(), min(max(n, self._ef), len(self))
            )
            query = _by_products(nearest, vector)
        names, _, scores = self.hits(query, n)
        # Lucene's similarity of an inner product p is (1 + p) / 2.
        return Ranking(tuple(name.decode() for name in names), 2 * scores - 1)

    @engine_time()
    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """The inner products of these documents, (n,), equal to those of `search`; 0 for a blank query."""
        if not str(query).strip():
            return np.zeros(len(self.of_pool(ids, self.wanted(ids))[0]))
        with using_java():
            pool = _by_products(self.wanted(ids), self.query_vector(query))
        return 2 * self.of_pool(ids, pool)[1] - 1

    @engine_time()
    def vectors(self, ids: Sequence[str]) -> Embeddings:
        return self._rows(self.of_pool(ids, self.wanted(ids))[0])

    def query_vector(self, query: Query) -> Embeddings:
        return np.asarray(self._query_vector(str(query)))

    def _rows(self, numbers: NDArray[np.intp]) -> Embeddings:
        rows, order = np.zeros((len(numbers), self._dimension), np.float32), np.argsort(numbers, kind="stable")
        bounds = pairwise(np.searchsorted(numbers[order], self.starts).tolist())
        for leaf, start, (first, last) in zip(self.leaves, self.starts.tolist(), bounds, strict=False):
            with self.java():
                values = leaf.getFloatVectorValues(VECTOR)
                for place in order[first:last].tolist():
                    number = int(numbers[place]) - start
                    if values.docID() == number or values.advance(number) == number:
                        rows[place] = values.vectorValue()
        return rows


def _by_products(query: Any, vector: Embeddings) -> Any:
    """The documents of a query, scored by the products of their full embeddings with a vector."""
    source = java_class(SEARCH + "FloatVectorSimilarityValuesSource")(vector.tolist(), VECTOR)
    return java_class("org.apache.lucene.queries.function.FunctionScoreQuery")(query, source)


class ImpactRetriever(AnseriniEngine):
    """The sum, over a query's terms, of its weight times the document's impact, as Anserini's ImpactSimilarity scores.

    With an `encoder` (a `SpladeEncoder`) a query is its text and keywords in one line, and a weight w becomes round(w /
    `scale` * `levels`), as pyserini quantizes them (5 and 256). Without one the query's words are terms of the index as
    they stand, each with its number of times and keywords with their weights.
    """

    engine = "lucene-impact"

    def __init__(
        self, folder: Path, encoder: Any = None, scale: float = 5.0, levels: int = 256, words: object = None
    ) -> None:
        """Open the index in `folder`; `words` is an engine with the documents' words."""
        super().__init__(folder, "io.anserini.search.similarity.ImpactSimilarity")
        self._encoder, self._scale, self._levels = encoder, scale, levels
        if encoder:
            known = set(encoder.vocabulary)
            with self.java():
                terms = self.leaves[0].terms(CONTENTS).iterator()
                there = [term.utf8ToString() for term in takewhile(bool, (terms.next() for _ in range(200)))]
            strange = [term for term in there if term not in known]
            if 2 * len(strange) > len(there):
                raise IndexMismatch(
                    f"the index at {self.folder} was not made with the vocabulary of {encoder.name!r}, which lacks "
                    f"{', '.join(map(repr, strange[:3]))}; name the encoder that made the index"
                )
        if self.stored:
            self.document = engine_time()(self.stored_document)
        lend(self, words, *BORROWED)
        # The query of a search is often scored against a pool afterwards.
        self._encoded = lru_cache(maxsize=64)(self._weights)

    def weights(self, query: Query) -> dict[str, float]:
        return self._encoded(str(query)) if self._encoder else term_weights(query, str.split)

    def _weights(self, text: str) -> dict[str, float]:
        row = self._encoder.queries([text])
        weights = zip(row.indices.tolist(), row.data.tolist(), strict=True)
        quantized = {self._encoder.vocabulary[at]: round(one / self._scale * self._levels) for at, one in weights}
        # What is rounded to 0 would find documents with a score of 0.
        return {term: weight for term, weight in quantized.items() if weight and text.strip()}
