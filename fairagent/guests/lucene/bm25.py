"""BM25 over an index that Anserini has built."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import IndexMismatch, UsageError
from fairagent.retrieve.anserini.documents import IndexTerms, stored_document
from fairagent.retrieve.anserini.index import BM25, CONTENTS, AnseriniEngine, AnseriniIndex
from fairagent.retrieve.base import check_length
from fairagent.retrieve.bm25.analysis import open_analyzer
from fairagent.retrieve.bm25.manifest import REMEDY
from fairagent.retrieve.clock import engine_time
from fairagent.retrieve.java import java_class
from fairagent.retrieve.queries import term_weights
from fairagent.retrieve.relevance_model import Postings
from fairagent.retrieve.strings import IdTable
from fairagent.types import Document, FloatArray, Query, Ranking


class AnseriniRetriever(AnseriniEngine):
    """BM25 (as Lucene scores it) with weighted query terms.

    `document` and `documents` are there where the index stores texts, `postings` and `words` where it stores texts or
    document vectors.

    Ties are ordered by document id, at the cut as well. Scores are Lucene's own 32-bit floats: pyserini's
    LuceneSearcher shows them rounded to four decimals, and lowers the later ones of a tie a little.
    """

    document: Callable[[str], Document]
    """The stored document by its id; raises DataError where the index lacks it."""
    documents: Callable[[Sequence[str]], list[Document]]
    """The stored documents by their ids."""
    postings: Callable[[Sequence[str]], Postings]
    """The terms of documents by their ids; raises DataError naming an id that is not in the index."""
    words: Callable[[NDArray[np.intp]], list[str]]
    """A readable word for each term number of `postings`."""
    ids: IdTable
    """The ids in the order of the collection, where `open_own` opened the index."""

    def __init__(self, folder: Path, analyzer: str = "english", k1: float = 0.9, b: float = 0.4) -> None:
        """Open the index in `folder`, whose texts `analyzer` has made terms of.

        Raises what `AnseriniIndex` does; SettingsError for an unknown analyzer.
        """
        if not (0 <= k1 < math.inf and 0 <= b <= 1):
            raise UsageError(f"BM25 needs k1 >= 0 and b from 0 to 1, not k1={k1:g} and b={b:g}")
        self.analyzer = open_analyzer(analyzer)
        self.index = index = AnseriniIndex(folder, BM25, "org.apache.lucene.search.similarities.BM25Similarity", k1, b)
        with index.java():
            vectors = bool(index.field(CONTENTS).hasVectors())
        if index.stored:
            self.document = engine_time()(lambda id: stored_document(index, id))
            self.documents = lambda ids: [self.document(id) for id in ids]
        if vectors or index.stored:
            terms = IndexTerms(index, vectors, self.analyzer.terms)
            self.postings, self.words = engine_time("terms")(terms.postings), engine_time("terms")(terms.words)
        source = "document vectors" if vectors else "the texts" if index.stored else "nowhere"
        self.told = f"{'' if index.stored else 'no '}texts, terms from {source}"

    @engine_time()
    def search(self, query: Query, n: int) -> Ranking:
        """The best `n` documents with a score above 0; empty where no query term occurs in the index."""
        check_length(n)
        return self.index.search(term_weights(query, self.analyzer.terms), n)

    @engine_time()
    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """BM25 of each of the documents `ids` for `query`, in one Lucene call; 0 where no term matches.

        Raises DataError naming ids that are not in the index.
        """
        return self.index.scores(term_weights(query, self.analyzer.terms), ids)

    def document_frequency(self, word: str) -> int:
        """How many documents hold `word` (of several words, the rarest); 0 where none does or it is a stop word."""
        with self.index.java():
            utils = java_class("io.anserini.index.IndexReaderUtils")
            return min((utils.getDF(self.index.reader, term) for term in self.analyze(word)), default=0)

    def analyze(self, text: str) -> list[str]:
        """The index terms of `text` in order."""
        return self.analyzer.terms(text)


def open_own(folder: Path, analyzer: str = "english", k1: float = 0.9, b: float = 0.4) -> AnseriniRetriever:
    """The Lucene index that an earlier version of fairagent built in `folder`; raises what `AnseriniRetriever` does.

    Raises IndexMismatch where its table of ids is damaged.
    """
    engine = AnseriniRetriever(folder / "lucene", analyzer, k1, b)
    try:
        engine.ids = IdTable.load(folder)
    except (OSError, ValueError) as error:
        raise IndexMismatch(f"the index at {folder} is damaged; {REMEDY} ({error})") from None
    return engine


def borrowed(words: AnseriniRetriever) -> dict[str, Any]:
    """What an engine over another index of the same documents tells in its place."""
    told = ("document", "documents", "document_frequency", "postings", "words", "analyze")
    return {name: getattr(words, name) for name in told if hasattr(words, name)}
