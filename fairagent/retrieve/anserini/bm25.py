"""BM25 over an index that Anserini has built."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import UsageError
from fairagent.retrieve.anserini.opened import BM25, AnseriniEngine, AnseriniIndex
from fairagent.retrieve.anserini.stored import StoredDocuments, has_texts
from fairagent.retrieve.anserini.terms import IndexTerms, has_vectors
from fairagent.retrieve.base import check_length
from fairagent.retrieve.clock import engine_time
from fairagent.retrieve.java import java_class, using_java
from fairagent.retrieve.lucene.analysis import Analyzer
from fairagent.retrieve.queries import term_weights, weighted_query
from fairagent.retrieve.relevance_model import Postings
from fairagent.types import Document, FloatArray, Query, Ranking


class AnseriniRetriever(AnseriniEngine):
    """BM25 (as Lucene scores it) with weighted query terms.

    `document` is there where the index stores texts, `postings` and `words` where it stores texts or document vectors.

    Ties are ordered by document id, at the cut as well. Scores are Lucene's own 32-bit floats: pyserini's
    LuceneSearcher shows them rounded to four decimals, and lowers the later ones of a tie a little.
    """

    document: Callable[[str], Document]
    """The stored document by its id; raises DataError where the index lacks it."""
    postings: Callable[[Sequence[str]], Postings]
    """The terms of documents by their ids; raises DataError naming ids that are not in the index."""
    words: Callable[[NDArray[np.intp]], list[str]]
    """A readable word for each term number of `postings`."""

    def __init__(
        self,
        folder: Path,
        kept: Path,
        analyzer: str = "english",
        k1: float = 0.9,
        b: float = 0.4,
        progress: Callable[[int], None] = lambda done: None,
    ) -> None:
        """Open the index in `folder`, whose texts `analyzer` has made terms of; `kept` is where its ids are kept.

        Raises what `AnseriniIndex` does; SettingsError for an unknown analyzer.
        """
        if not (0 <= k1 < math.inf and 0 <= b <= 1):
            raise UsageError(f"BM25 needs k1 >= 0 and b from 0 to 1, not k1={k1:g} and b={b:g}")
        self.index = AnseriniIndex(folder, BM25, kept, progress)
        self.analyzer = Analyzer(analyzer)
        with using_java():
            similarity = java_class("org.apache.lucene.search.similarities.BM25Similarity")(k1, b)
            self._searcher = self.index.searcher(similarity)
        stored = StoredDocuments(self.index) if has_texts(self.index) else None
        if stored:
            self.document = engine_time()(stored.named)
        terms = "document vectors" if has_vectors(self.index) else "the texts" if stored else "nowhere"
        self.told = f"{'' if stored else 'no '}texts, terms from {terms}"
        if stored or has_vectors(self.index):
            self._tell(IndexTerms(self.index, self.analyzer.terms, stored.numbered if stored else None))

    def _tell(self, terms: IndexTerms) -> None:
        self.postings = engine_time()(lambda ids: terms.postings(self.index.ids.known(ids).tolist()))
        self.words = engine_time()(terms.words)

    @engine_time()
    def search(self, query: Query, n: int) -> Ranking:
        """The best `n` documents with a score above 0; empty where no query term occurs in the index."""
        check_length(n)
        with using_java():
            lucene_query = weighted_query(term_weights(query, self.analyzer.terms))
        return self.index.best(self._searcher, lucene_query, n)

    @engine_time()
    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """BM25 of each of the documents `ids` for `query`, in one Lucene call; 0 where no term matches.

        Raises DataError naming ids that are not in the index.
        """
        with using_java():
            lucene_query = weighted_query(term_weights(query, self.analyzer.terms))
        return self.index.scores(self._searcher, lucene_query, ids)

    def document_frequency(self, word: str) -> int:
        """How many documents hold `word` (of several words, the rarest); 0 where none does or it is a stop word."""
        with using_java():
            term_class = java_class("org.apache.lucene.index.Term")
            terms = [term_class("contents", text) for text in self.analyzer.terms(word)]
            return min((self.index.reader.docFreq(term) for term in terms), default=0)

    def analyze(self, text: str) -> list[str]:
        """The index terms of `text` in order."""
        return self.analyzer.terms(text)


def borrowed(words: AnseriniRetriever) -> dict[str, Any]:
    """What an engine over another index of the same documents tells in its place."""
    told = ("document", "document_frequency", "postings", "words", "analyze")
    return {name: getattr(words, name) for name in told if hasattr(words, name)}
