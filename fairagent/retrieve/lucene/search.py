"""BM25 over a Lucene index: ranked search, scores of a given pool in one call, stored texts, term statistics."""

import math
from collections.abc import Sequence
from functools import lru_cache
from operator import index
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.digests import expect_whole
from fairagent.errors import BackendUnavailable, IndexMismatch, UsageError
from fairagent.retrieve.base import check_length
from fairagent.retrieve.clock import engine_time
from fairagent.retrieve.hits import numbers_and_scores
from fairagent.retrieve.java import java_class, using_java
from fairagent.retrieve.lucene.analysis import Analyzer
from fairagent.retrieve.lucene.catalog import Places
from fairagent.retrieve.lucene.documents import KEY, document_of
from fairagent.retrieve.lucene.index import REMEDY, Indexable, Manifest
from fairagent.retrieve.lucene.strings import IdTable, ranked
from fairagent.retrieve.lucene.vectors import TermVectors
from fairagent.retrieve.queries import CONTENTS, MAX_TERMS, term_weights, weighted_query
from fairagent.retrieve.relevance_model import Postings
from fairagent.types import Document, FloatArray, Query, Ranking


class LuceneRetriever:
    """BM25 (Robertson & Zaragoza 2009, as Lucene scores it) with weighted query terms.

    One searcher serves all threads, one call at a time (why: `fairagent.retrieve.java`). Ties are ordered by
    document id, at the cut as well. Scores are Lucene's own 32-bit floats.
    """

    def __init__(
        self,
        folder: Path,
        collection: Indexable | None = None,
        analyzer: str = "english",
        k1: float = 0.9,
        b: float = 0.4,
    ) -> None:
        """Open the index in `folder`; with `collection`, only if the index was built from it as it is now.

        Raises BackendUnavailable where there is no index, IndexMismatch where it is another one or damaged.
        """
        if not (0 <= k1 < math.inf and 0 <= b <= 1):
            raise UsageError(f"BM25 needs k1 >= 0 and b from 0 to 1, not k1={k1:g} and b={b:g}")
        # Java resolves relative paths against the folder in which it was started.
        folder = folder.absolute()
        self.manifest = Manifest.read(folder)
        self.manifest.check(collection, analyzer, folder)
        expect_whole(folder, "the index", REMEDY)
        self.analyzer = Analyzer(self.manifest.analyzer)
        self._reader, self._searcher = _open(folder, k1, b)
        try:
            self._folder = folder
            self._terms = TermVectors(folder) if TermVectors.there(folder) else None
            self._ids, self._places = IdTable.load(folder), Places.load(folder)
        except (OSError, ValueError) as error:
            raise _damaged(folder, error) from None
        # The loop asks for the terms of the same deep list once an iteration, and of many queries for the same words.
        self._frequency = lru_cache(maxsize=50_000)(self._count)
        self._postings = lru_cache(maxsize=8)(lambda ids: self.expect_terms().postings(self.numbers(ids)))

    def __len__(self) -> int:
        return len(self._ids)

    def expect_terms(self) -> TermVectors:
        """The terms of documents; raises BackendUnavailable where the index was built without them."""
        if self._terms is None and TermVectors.there(self._folder):
            self._terms = TermVectors(self._folder)
        if self._terms is None:
            raise BackendUnavailable(
                f"the index at {self._folder} was built without the terms of documents, which these settings need; "
                "`fairagent index` with the same settings adds them"
            )
        return self._terms

    @property
    def ids(self) -> IdTable:
        """The documents' ids by number."""
        return self._ids

    def close(self) -> None:
        """Release the index files."""
        with using_java():
            self._reader.close()

    @engine_time("bridge")
    def search(self, query: Query, n: int) -> Ranking:
        """The best `n` documents with a score above 0; empty where no query term occurs in the index."""
        check_length(n)
        n = min(index(n), len(self))
        # One more than wanted shows whether a tie goes across the cut; then the whole tie is fetched.
        asked = n + 1
        with using_java():
            lucene_query = self._lucene_query(query)
            numbers, scores = self._top(lucene_query, asked)
            while len(scores) == asked and scores[n - 1] == scores[-1]:
                asked *= 2
                numbers, scores = self._top(lucene_query, asked)
        if len(scores) > n:
            whole_tie = int(np.searchsorted(-scores, -scores[n - 1], side="right"))
            numbers, scores = numbers[:whole_tie], scores[:whole_tie]
        return ranked(self._ids.names(numbers), scores, n)

    @engine_time("bridge")
    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """BM25 of each of the documents `ids` for `query`, in one Lucene call; 0 where no term matches.

        Raises DataError naming ids that are not in the index.
        """
        if not len(ids):
            return np.zeros(0)
        numbers = self.numbers(ids)
        distinct = self._places.keys(np.unique(numbers)).tolist()
        with using_java():
            occur = java_class("org.apache.lucene.search.BooleanClause$Occur")
            pool = java_class("org.apache.lucene.document.IntPoint").newSetQuery(KEY, *distinct)
            evidence = self._lucene_query(query)
            builder = java_class("org.apache.lucene.search.BooleanQuery$Builder")()
            # SHOULD, not MUST: documents of the pool without any query term stay in the result, with score 0.
            builder.add(evidence, occur.SHOULD)
            builder.add(pool, occur.FILTER)
            found, found_scores = self._top(builder.build(), len(distinct))
        order = np.argsort(found)
        return found_scores[order][np.searchsorted(found[order], numbers)]

    def numbers(self, ids: Sequence[str]) -> NDArray[np.intp]:
        """The documents' numbers in the index; raises DataError naming ids that are not there."""
        return self._ids.known(ids)

    @engine_time("bridge")
    def document(self, id: str) -> Document:
        """The stored document; raises DataError where the id is not in the index."""
        (place,) = self._places.in_lucene(self.numbers([id])).tolist()
        import jnius

        try:
            with using_java():
                raw = self._searcher.storedFields().document(place).get("raw")
            return document_of(raw)
        except (jnius.JavaException, ValueError, KeyError, TypeError) as error:
            raise _damaged(self._folder, error) from None

    @engine_time("terms")
    def document_frequency(self, word: str) -> int:
        """How many documents hold `word` (of several words, the rarest); 0 where none does or it is a stop word."""
        return min((self._frequency(term) for term in self.analyzer.terms(word)), default=0)

    @engine_time("terms")
    def postings(self, ids: Sequence[str]) -> Postings:
        """The terms of these documents; raises DataError naming ids that are not in the index."""
        return self._postings(tuple(ids))

    @engine_time("terms")
    def words(self, vocabulary: NDArray[np.intp]) -> list[str]:
        """A readable word for each term number of `postings`."""
        return self.expect_terms().words(vocabulary)

    def analyze(self, text: str) -> list[str]:
        """The index terms of `text` in order."""
        return self.analyzer.terms(text)

    def _count(self, term: str) -> int:
        """How many documents hold an index term."""
        with using_java():
            found: int = self._reader.docFreq(java_class("org.apache.lucene.index.Term")(CONTENTS, term))
        return found

    def _lucene_query(self, query: Query) -> Any:
        return weighted_query(term_weights(query, self.analyzer.terms))

    def _top(self, lucene_query: Any, n: int) -> tuple[NDArray[np.intp], FloatArray]:
        import jnius

        try:
            with engine_time("lucene"):
                found = self._searcher.search(lucene_query, n)
        except jnius.JavaException as error:
            raise _damaged(self._folder, error) from None
        places, scores = numbers_and_scores(found)
        return self._places.numbers(places), scores


def _open(folder: Path, k1: float, b: float) -> tuple[Any, Any]:
    """A reader of the Lucene index in `folder` and a searcher with it."""
    import jnius

    with using_java():
        path = java_class("java.nio.file.Paths").get(str(folder / "lucene"))
        try:
            directory = java_class("org.apache.lucene.store.FSDirectory").open(path)
            reader = java_class("org.apache.lucene.index.DirectoryReader").open(directory)
        except jnius.JavaException as error:
            raise _damaged(folder, error) from None
        searcher_class = java_class("org.apache.lucene.search.IndexSearcher")
        # One more: the pool that `score` filters by.
        searcher_class.setMaxClauseCount(MAX_TERMS + 1)
        # The constructor is overloaded; the cast says which one is meant.
        searcher = searcher_class(jnius.cast("org.apache.lucene.index.IndexReader", reader))
        similarity = java_class("org.apache.lucene.search.similarities.BM25Similarity")(k1, b)
        searcher.setSimilarity(similarity)
        return reader, searcher


def _damaged(folder: Path, error: Exception) -> IndexMismatch:
    reason = str(error).partition("\n")[0]
    return IndexMismatch(f"the index at {folder} is damaged; {REMEDY} ({reason})")
