"""Which terms the documents of a server's index hold, in how many documents each occurs, and a word for each.

Terms come from `_mtermvectors`, whose document frequencies are those of one shard; those of the whole index are counted
by a search. All of it is remembered as long as the process runs.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.extend import WORD, DataError, Postings
from fairagent.guests.opensearch.answers import ServerCache, ServerHit, text_of, understood, value
from fairagent.guests.opensearch.index import ServerIndex

VECTORS = 10_000
"""Documents whose terms are remembered: some 10 kB each."""
AT_ONCE = 50
"""Documents whose terms are asked for in one request."""
COUNTED = 500
"""Terms whose documents are counted in one request."""
FREQUENCIES = 1_000_000
"""Terms whose document frequencies, and words, are remembered."""
SHOWN = 1_000
"""Terms for which words are looked up in one request, few of them by a search."""
ANALYZED = 2_000
"""Words that are analyzed in one request."""


class ServerTerms:
    """The terms of an index, of all fields that are searched together. Threads may share it."""

    def __init__(self, index: ServerIndex) -> None:
        self._index = index
        self._vectors: ServerCache[Counter[str]] = ServerCache(VECTORS)
        self._frequencies: ServerCache[int] = ServerCache(FREQUENCIES)
        self._words: ServerCache[str] = ServerCache(FREQUENCIES)
        self._numbers: dict[str, int] = {}
        self._terms: list[str] = []
        self._lock = threading.Lock()
        # The loop asks for the terms of the same deep list once an iteration.
        self._postings = lru_cache(maxsize=8)(self._made)
        self.analyze = lru_cache(maxsize=50_000)(self._analyzed)

    def postings(self, ids: Sequence[str]) -> Postings:
        """The terms of these documents; DataError naming ids that are not in the index."""
        return self._postings(tuple(ids))

    def document_frequency(self, word: str) -> int:
        """How many documents hold `word`; of several words, the rarest."""
        terms = self.analyze(word)
        return min(self._counted(terms).values(), default=0)

    def words(self, vocabulary: NDArray[np.intp]) -> list[str]:
        """A word for each term number: one of a text that is analyzed to the term alone, "" where there is none."""
        terms = [self._terms[number] for number in vocabulary.tolist()]
        found = self._words.all(terms, self._named, SHOWN)
        return [found[term] for term in terms]

    def _made(self, ids: tuple[str, ...]) -> Postings:
        vectors = self._vectors.all(ids, self._told, AT_ONCE)
        # In the order of the terms themselves, so that nothing depends on what was asked before.
        terms = sorted({term for id in ids for term in vectors[id]})
        place = {term: number for number, term in enumerate(terms)}
        counts = [vectors[id] for id in ids]
        row = np.repeat(np.arange(len(ids)), [len(count) for count in counts])
        term = np.array([place[one] for count in counts for one in count], dtype=np.intp)
        count = np.array([times for count in counts for times in count.values()], dtype=np.float64)
        length = np.array([count.total() for count in counts], dtype=np.float64)
        frequencies = self._counted(terms)
        documents = max(self._index.documents, max(frequencies.values(), default=1), 1)
        # A term of a document that is there is in one at least, whatever a server that is being written to counts.
        share = np.array([max(1, frequencies[one]) for one in terms], dtype=np.float64) / documents
        return Postings(row, term, count, length, self._numbered(terms), share)

    def _numbered(self, terms: Sequence[str]) -> NDArray[np.intp]:
        with self._lock:
            for term in terms:
                if term not in self._numbers:
                    self._numbers[term] = len(self._terms)
                    self._terms.append(term)
            return np.array([self._numbers[term] for term in terms], dtype=np.intp)

    def _told(self, ids: list[str]) -> dict[str, Counter[str]]:
        """The terms of documents, from their vectors."""
        index, fields = self._index, self._index.fields.searched
        places = index.places(ids)
        # `fields` and the others are of each document: servers differ in which of the common ones they heed.
        about = {"fields": list(fields), "positions": False, "offsets": False, "payloads": False}
        wanted = [{**places[id].named, **about, "field_statistics": False} for id in ids]
        answer = index.server.ask("POST", "/_mtermvectors", {"docs": wanted})
        found: dict[str, Counter[str]] = {}
        with understood(index.server):
            for id, told in zip(ids, answer["docs"], strict=True):
                if told.get("error") or not told.get("found"):
                    raise DataError(f"the terms of document {id[:60]!r} of index {index} cannot be read; is it gone?")
                found[id] = Counter()
                for vector in told.get("term_vectors", {}).values():
                    for term, its in vector["terms"].items():
                        found[id][term] += int(its["term_freq"])
        return found

    def _counted(self, terms: Sequence[str]) -> dict[str, int]:
        """In how many documents each term occurs, in any of the fields."""
        return self._frequencies.all(terms, self._count, COUNTED)

    def _count(self, terms: list[str]) -> dict[str, int]:
        filters = [self._holding(term) for term in terms]
        body = {"size": 0, "track_total_hits": False, "aggs": {"terms": {"filters": {"filters": filters}}}}
        answer = self._index.search(body)
        with understood(self._index.server):
            buckets = answer["aggregations"]["terms"]["buckets"]
            return {term: int(one["doc_count"]) for term, one in zip(terms, buckets, strict=True)}

    def _analyzed(self, text: str) -> list[str]:
        if not text.strip():
            return []
        return [term for term, _, _ in self._tokens(text)]

    def _tokens(self, text: str) -> list[tuple[str, int, int]]:
        """The terms of a text, each with where its word begins and ends (in UTF-16 units, as Java counts)."""
        check_text(text)
        index = self._index
        field = index.fields.searched[-1]
        # As a document that is not there: who may read may ask that, and `_analyze` only who may change the index.
        made: Any = text
        for name in reversed(index.source_of(field).split(".")):
            made = {name: made}
        asked = {"doc": made, "fields": [field], "positions": True, "offsets": True, "payloads": False}
        answer = index.server.ask("POST", f"/{index.one}/_termvectors", {**asked, "field_statistics": False})
        with understood(index.server):
            terms = answer.get("term_vectors", {}).get(field, {}).get("terms", {})
            found = [
                (int(token["position"]), str(term), int(token["start_offset"]), int(token["end_offset"]))
                for term, its in terms.items()
                for token in its["tokens"]
            ]
        return [(term, begin, end) for _, term, begin, end in sorted(found)]

    def _named(self, terms: list[str]) -> dict[str, str]:
        """Term -> a word whose only term it is: itself, or the shortest of the document that it is best found in."""
        made = self._terms_of(terms)
        # Most stems are their own stems; a search for each of hundreds would cost a cluster more than the list does.
        disfigured = [term for term in terms if made[term] != [term]]
        fields = self._index.fields
        best = self._index.best_of_each([self._holding(term) for term in disfigured], (fields.title, fields.text))
        near = {term: _near(term, self._text(found)) for term, found in zip(disfigured, best, strict=True)}
        made |= self._terms_of(sorted({word for words in near.values() for word in words}))
        near |= {term: [term] for term in terms if term not in near}
        return {term: next((word for word in near[term] if made[word] == [term]), "") for term in terms}

    def _text(self, found: Sequence[ServerHit]) -> str:
        fields = (
            self._index.source_of(field) for field in (self._index.fields.title, self._index.fields.text) if field
        )
        return " ".join(text_of(value(one.source, field)) for field in fields for one in found)

    def _holding(self, term: str) -> dict[str, Any]:
        """The query for the documents that hold a term in any of the fields."""
        clauses = [{"term": {field: term}} for field in self._index.fields.searched]
        return clauses[0] if len(clauses) == 1 else {"bool": {"should": clauses}}

    def _terms_of(self, words: Sequence[str]) -> dict[str, list[str]]:
        """The terms of each word, many at once: one a line, told apart by where they stand."""
        found: dict[str, list[str]] = {word: [] for word in words}
        for start in range(0, len(words), ANALYZED):
            some = words[start : start + ANALYZED]
            ends = np.cumsum([len(word.encode("utf-16-le", "surrogatepass")) // 2 + 1 for word in some])
            for term, begin, end in self._tokens("\n".join(some)):
                first, last = np.searchsorted(ends, [begin, max(begin, end - 1)], side="right").tolist()
                # A term of two words is none of either.
                if first == last < len(some):
                    found[some[first]].append(term)
        return found


def _near(term: str, text: str) -> list[str]:
    """The words of a text that begin as a term does, the shortest first.

    >>> _near("citi", "The cities' citizens, city by city")
    ['city', 'cities', 'citizens']
    """
    stem = term[: max(1, len(term) - 1)]
    return sorted({word for word in map(str.lower, WORD.findall(text)) if word.startswith(stem)}, key=_by_length)


def _by_length(word: str) -> tuple[int, str]:
    return len(word), word


def check_text(text: str) -> None:
    """Raise DataError for what no server reads as text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise DataError("the query holds half of a surrogate pair, which is no Unicode text") from None
