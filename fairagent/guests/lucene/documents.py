"""What an index of Anserini's stores of its documents: texts, of whatever form the collection had, and terms."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.extend import WORD, DataError, Document, Postings, full_text, logger, parse_json
from fairagent.guests.lucene.index import RAW, AnseriniIndex, write_json
from fairagent.guests.lucene.java import java_class, using_java

TITLES = ("title", "headline", "heading")
TEXTS = ("contents", "text", "passage", "segment", "body", "abstract")
"""Where the title and the text are in raw JSON: the first of these keys that it has."""
LEFT_OUT = frozenset({"id", "_id", "docid", "vector"})
OWN = {"id", "title", "contents", "extra"}
"""The keys of raw JSON in the indexes that earlier versions of fairagent built."""
REMEMBERED = 20_000
"""Documents whose terms are remembered, since the lists of a search overlap: about 16 MB of 100 terms each."""

log = logger(__name__)


def stored_document(index: AnseriniIndex, id: str) -> Document:
    """The document as the index stores it; DataError where it lacks the document, or its text."""
    with index.java():
        utils = java_class("io.anserini.index.IndexReaderUtils")
        text = (utils.documentRaw if index.stored == RAW else utils.documentContents)(index.reader, id)
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
    record = _record(stored)
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


def _record(stored: str) -> Mapping[str, Any]:
    try:
        record = parse_json(stored) if stored.lstrip().startswith("{") else {}
    except ValueError:
        record = {}
    return record if isinstance(record, Mapping) else {}


class IndexTerms:
    """The terms of documents, from document vectors or else from stored texts, which are analyzed again.

    Terms are numbered as they are met. Memory grows with the distinct terms met, by about 200 bytes each, and holds the
    terms of the last `REMEMBERED` documents. Threads may share it.
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
        self._held = lru_cache(maxsize=REMEMBERED)(self._read)
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
                    documents = java_class("io.anserini.index.IndexReaderUtils").getDF(self._index.reader, term)
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
                vector = java_class("io.anserini.index.IndexReaderUtils").getDocumentVector(self._index.reader, id)
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
