"""Impact indexes: the terms of every document with weights that a model such as SPLADE or uniCOIL gave, quantized."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from fairagent.errors import IndexMismatch
from fairagent.retrieve.anserini.bm25 import AnseriniRetriever, borrowed
from fairagent.retrieve.anserini.documents import stored_document
from fairagent.retrieve.anserini.index import CONTENTS, IMPACT, AnseriniEngine, AnseriniIndex
from fairagent.retrieve.base import check_length
from fairagent.retrieve.clock import engine_time
from fairagent.retrieve.queries import term_weights
from fairagent.types import Document, FloatArray, Query, Ranking

if TYPE_CHECKING:
    from scipy.sparse import csr_array

LOOKED_AT = 200
"""Terms of the index that are looked up in the encoder's vocabulary."""


class QueryEncoder(Protocol):
    """Gives queries weights over a vocabulary of terms."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    @property
    def vocabulary(self) -> Sequence[str]:
        """The terms, in the order of the weights."""
        ...

    def queries(self, texts: Sequence[str]) -> csr_array:
        """Weights of queries, (n, d), none below 0."""
        ...


class ImpactRetriever(AnseriniEngine):
    """The sum, over a query's terms, of its weight times the document's impact, as Anserini's ImpactSimilarity scores.

    With an `encoder` a query is its text and keywords in one line, and a weight w becomes
    round(w / `scale` * `levels`), as pyserini quantizes them (5 and 256). Without one the query's words are terms of
    the index as they stand, each with its number of times and keywords with their weights. Ties are ordered by
    document id, at the cut as well.
    """

    document: Callable[[str], Document]
    """The stored document by its id, where the index stores texts."""

    def __init__(
        self,
        folder: Path,
        encoder: QueryEncoder | None = None,
        scale: float = 5.0,
        levels: int = 256,
        words: AnseriniRetriever | None = None,
    ) -> None:
        """Open the index in `folder`; `words` is an engine with the documents' words.

        Raises what `AnseriniIndex` does; IndexMismatch where the index's terms are not the encoder's.
        """
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

    @engine_time()
    def search(self, query: Query, n: int) -> Ranking:
        """The best `n` documents, those that share a term with the query."""
        check_length(n)
        return self.index.search(self.weights(query), n)

    @engine_time()
    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """The scores of these documents, (n,), in one Lucene call; 0 where no term matches.

        Raises DataError naming ids that are not in the index.
        """
        return self.index.scores(self.weights(query), ids)

    def weights(self, query: Query) -> dict[str, float]:
        """The terms that are searched, with their weights."""
        if self._encoder is None:
            return term_weights(query, str.split)
        return dict(self._encoded(str(query)))

    def _weights(self, text: str) -> Counter[str]:
        assert self._encoder is not None
        found: Counter[str] = Counter()
        if text.strip():
            row = self._encoder.queries([text])
            for place, weight in zip(row.indices.tolist(), row.data.tolist(), strict=True):
                # What is rounded to 0 would find documents with a score of 0.
                if quantized := round(weight / self._scale * self._levels):
                    found[self._encoder.vocabulary[place]] = quantized
        return found

    def _check(self, encoder: QueryEncoder) -> None:
        known = set(encoder.vocabulary)
        with self.index.java():
            terms = self.index.segments[0][1].terms(CONTENTS).iterator()
            there = [term.utf8ToString() for term in takewhile(bool, (terms.next() for _ in range(LOOKED_AT)))]
        strange = [term for term in there if term not in known]
        if 2 * len(strange) > len(there):
            raise IndexMismatch(
                f"the index at {self.index.folder} was not made with the vocabulary of {encoder.name!r} (terms such as "
                f"{', '.join(map(repr, strange[:3]))} are not in it); name the encoder that made the index"
            )
