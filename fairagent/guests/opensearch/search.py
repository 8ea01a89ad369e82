"""Searching the words of an index on a server: weighted terms, exact scores, texts, terms, and whole result sets.

Terms come from `_mtermvectors`, whose document frequencies are those of one shard; those of the whole index are counted
by a search. All of it is cached as long as the process runs.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.extend import (
    WORD,
    DataError,
    Document,
    FloatArray,
    Postings,
    Query,
    Ranking,
    UsageError,
    at_path,
    check_length,
    engine_time,
    term_weights,
)
from fairagent.guests.opensearch.groups import ServerGroups
from fairagent.guests.opensearch.index import (
    TEXTS_AT_ONCE,
    ServerHit,
    ServerIndex,
    text_of,
    understood,
)
from fairagent.guests.servers import ServerCache, best_of

TEXTS_CACHED = 5_000
VECTORS_CACHED = 10_000
FREQUENCIES_CACHED = 1_000_000
VECTORS_AT_ONCE = 50
TERMS_COUNTED_AT_ONCE = 500
SHOWN = 1_000
"""Terms for which words are looked up in one request, few of them by a search."""
WORDS_ANALYZED_AT_ONCE = 2_000

Clauses = list[dict[str, Any]]


class OpenSearchRetriever:
    """The ranking of an index on a server: the sum, over keywords and fields, of weight times the field's score.

    The server analyzes the words and scores them by the similarity in its mapping, with document frequencies of the
    whole index (`dfs_query_then_fetch`). Scores are the server's 32-bit floats; ties are ordered by document id, at
    the cut as well. Threads may share it.
    """

    def __init__(self, index: ServerIndex, groups: ServerGroups | None = None) -> None:
        """Take the index, and its groups, if it has any, which see the labels of each list."""
        index.check_fields((*index.fields.searched, index.fields.text, index.fields.title, index.fields.id))
        self.index, self.groups = index, groups
        self._fields = groups.fields if groups else ()
        self._texts: ServerCache[Document] = ServerCache(TEXTS_CACHED)
        self._vectors: ServerCache[Counter[str]] = ServerCache(VECTORS_CACHED)
        self._frequencies: ServerCache[int] = ServerCache(FREQUENCIES_CACHED)
        self._words: ServerCache[str] = ServerCache(FREQUENCIES_CACHED)
        self._numbers: dict[str, int] = {}
        self._terms: list[str] = []
        self._lock = threading.Lock()
        # The loop reads the terms of the same deep list once an iteration.
        self._cached_postings = lru_cache(maxsize=8)(self._postings)
        self._analyzed = lru_cache(maxsize=50_000)(self._analyze)

    def __len__(self) -> int:
        return self.index.documents

    @engine_time("server")
    def search(self, query: Query, n: int) -> Ranking:
        """The best `n` documents with a score above 0; empty where no keyword occurs in the index."""
        check_length(n)
        n, window = index(n), self.index.window
        # Without one more than wanted only the server can tell which of a tie come first, which it cannot by `_id`.
        most = window - (self.index.fields.id == "_id")
        if n > most:
            raise UsageError(
                f"{n:,} documents were requested, and index {self.index} gives {most:,} at a time; lower `depth` (or "
                "`n`), or raise index.max_result_window on the server"
            )
        evidence = {"bool": {"should": self._clauses(query)}}
        # One more than wanted shows whether a tie goes across the cut; then the whole tie is fetched.
        size = min(n + 1, window)
        hits = self._hits(evidence, size, query)
        while len(hits) == size and hits[n - 1].score == hits[-1].score:
            if size == window:
                hits = self._by_id(evidence, n, query)
                break
            size = min(size * 2, window)
            hits = self._hits(evidence, size, query)
        return best_of([(one.id, one.score) for one in hits if one.score > 0], n)

    @engine_time("server")
    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """The scores of the documents `ids` for `query`, (n,), in one request (of 10,000); 0 where no term matches."""
        if not len(ids):
            return np.zeros(0)
        # SHOULD, not MUST: documents of the pool without any query term stay in the answer, with score 0.
        hits = self.index.fetch(ids, (), query.text, should=self._clauses(query))
        return np.array([hits[id].score for id in ids])

    def document(self, id: str) -> Document:
        """The document as the server stores it; DataError where it has none of that id."""
        return self.documents([id])[0]

    @engine_time("server")
    def documents(self, ids: Sequence[str]) -> list[Document]:
        """These documents, in as few requests as their texts allow; DataError naming ids that are not there."""
        texts = self._texts.all(ids, self._read, TEXTS_AT_ONCE)
        return [texts[id] for id in ids]

    @engine_time("server")
    def document_frequency(self, word: str) -> int:
        """How many documents hold `word` (of several words, the rarest); 0 where none does or it is a stop word."""
        return min(self._counts(self.analyze(word)).values(), default=0)

    @engine_time("server")
    def postings(self, ids: Sequence[str]) -> Postings:
        """The terms of these documents, of all fields that are searched; DataError naming ids that are not there."""
        return self._cached_postings(tuple(ids))

    @engine_time("server")
    def words(self, vocabulary: NDArray[np.intp]) -> list[str]:
        """A word for each term number of `postings`: one of a text that is analyzed to it, "" where there is none."""
        terms = [self._terms[number] for number in vocabulary.tolist()]
        words = self._words.all(terms, self._readable, SHOWN)
        return [words[term] for term in terms]

    @engine_time("server")
    def analyze(self, text: str) -> list[str]:
        """The index terms of `text` in order, as the text field's analyzer makes them."""
        return list(self._analyzed(text))

    @engine_time("server")
    def group_counts(self, query: Query) -> dict[str, dict[str, int]]:
        """Dimension -> label -> how many of ALL documents that match `query` have it, by one aggregation."""
        if not self.groups:
            raise UsageError("the engine has no fields that hold groups (engine.groups)")
        return self.groups.count({"bool": {"should": self._clauses(query), "minimum_should_match": 1}})

    def _clauses(self, query: Query) -> Clauses:
        # The server analyzes the texts.
        weights = term_weights(query, _whole)
        clauses = [
            {"match": {field: {"query": text, "boost": weight}}}
            for text, weight in weights.items()
            for field in self.index.fields.searched
        ]
        return clauses or [{"match_none": {}}]

    def _hits(self, evidence: Mapping[str, Any], size: int, query: Query, **order: Any) -> list[ServerHit]:
        hits = self.index.hits({"query": evidence, "size": size, **order}, self._fields, query.text)
        if self.groups:
            self.groups.see(hits)
        return hits

    def _by_id(self, evidence: Mapping[str, Any], n: int, query: Query) -> list[ServerHit]:
        """The first `n` by score and id as the server orders them: of a tie that does not fit into one answer."""
        field = self.index.fields.id
        if field == "_id":
            raise DataError(
                f"more than {self.index.window:,} documents of index {self.index} have the same score for "
                f"{query.text[:80]!r}, and a server cannot order them by `_id`; name a keyword field with the id "
                "(engine.fields.id)"
            )
        order = {"sort": [{"_score": "desc"}, {field: "asc"}], "track_scores": True}
        return self._hits(evidence, n, query, **order)

    def _read(self, ids: list[str]) -> dict[str, Document]:
        fields, source_of = self.index.fields, self.index.source_of
        hits = self.index.fetch(ids, (fields.title, fields.text, *self._fields))
        if self.groups:
            self.groups.see(list(hits.values()))
        documents = {}
        for id, hit in hits.items():
            title = text_of(at_path(hit.source, source_of(fields.title))) if fields.title else ""
            extra = {name: at_path(hit.source, source_of(name)) for name in self._fields}
            documents[id] = Document(id, text_of(at_path(hit.source, source_of(fields.text))), title, extra)
        return documents

    def _postings(self, ids: tuple[str, ...]) -> Postings:
        vectors = self._vectors.all(ids, self._term_vectors, VECTORS_AT_ONCE)
        # In the order of the terms themselves, so that nothing depends on earlier requests.
        terms = sorted({term for id in ids for term in vectors[id]})
        place = {term: number for number, term in enumerate(terms)}
        counts = [vectors[id] for id in ids]
        row = np.repeat(np.arange(len(ids)), [len(count) for count in counts])
        term = np.array([place[one] for count in counts for one in count], dtype=np.intp)
        count = np.array([times for count in counts for times in count.values()], dtype=np.float64)
        length = np.array([count.total() for count in counts], dtype=np.float64)
        frequencies = self._counts(terms)
        documents = max(len(self), max(frequencies.values(), default=1), 1)
        # A term of a document that is there is in one at least, whatever a server that is being written to counts.
        share = np.array([max(1, frequencies[one]) for one in terms], dtype=np.float64) / documents
        with self._lock:
            for one in terms:
                if one not in self._numbers:
                    self._numbers[one] = len(self._terms)
                    self._terms.append(one)
            numbers = np.array([self._numbers[one] for one in terms], dtype=np.intp)
        return Postings(row, term, count, length, numbers, share)

    def _term_vectors(self, ids: list[str]) -> dict[str, Counter[str]]:
        index, fields = self.index, self.index.fields.searched
        addresses = index.addresses(ids)
        # `fields` and the others are of each document: servers differ in which of the common ones they heed.
        about = {"fields": list(fields), "positions": False, "offsets": False, "payloads": False}
        wanted = [{**addresses[id], **about, "field_statistics": False} for id in ids]
        answer = index.server.ask("POST", "/_mtermvectors", {"docs": wanted})
        counts: dict[str, Counter[str]] = {}
        with understood(index.server):
            for id, document in zip(ids, answer["docs"], strict=True):
                if document.get("error") or not document.get("found"):
                    raise DataError(f"the terms of document {id[:60]!r} of index {index} cannot be read; is it gone?")
                counts[id] = Counter()
                for vector in document.get("term_vectors", {}).values():
                    counts[id].update({term: int(its["term_freq"]) for term, its in vector["terms"].items()})
        return counts

    def _counts(self, terms: Sequence[str]) -> dict[str, int]:
        """In how many documents each term occurs, in any of the fields."""
        return self._frequencies.all(terms, self._count, TERMS_COUNTED_AT_ONCE)

    def _count(self, terms: list[str]) -> dict[str, int]:
        filters = [self._holding(term) for term in terms]
        body = {"size": 0, "track_total_hits": False, "aggs": {"terms": {"filters": {"filters": filters}}}}
        answer = self.index.search(body)
        with understood(self.index.server):
            buckets = answer["aggregations"]["terms"]["buckets"]
            return {term: int(one["doc_count"]) for term, one in zip(terms, buckets, strict=True)}

    def _holding(self, term: str) -> dict[str, Any]:
        """The query for the documents that hold a term in any of the fields."""
        clauses: Clauses = [{"term": {field: term}} for field in self.index.fields.searched]
        return clauses[0] if len(clauses) == 1 else {"bool": {"should": clauses}}

    def _analyze(self, text: str) -> list[str]:
        return [term for term, _, _ in self._tokens(text)] if text.strip() else []

    def _tokens(self, text: str) -> list[tuple[str, int, int]]:
        """The terms of a text, each with where its word begins and ends (in UTF-16 units, as Java counts)."""
        check_text(text)
        index, field = self.index, self.index.fields.searched[-1]
        # As a document that is not there: who may read may send that, and `_analyze` only who may change the index.
        document: Any = text
        for name in reversed(index.source_of(field).split(".")):
            document = {name: document}
        body = {"doc": document, "fields": [field], "positions": True, "offsets": True, "payloads": False}
        answer = index.server.ask("POST", f"/{index.one}/_termvectors", {**body, "field_statistics": False})
        with understood(index.server):
            terms = answer.get("term_vectors", {}).get(field, {}).get("terms", {})
            tokens = sorted(
                (int(token["position"]), str(term), int(token["start_offset"]), int(token["end_offset"]))
                for term, its in terms.items()
                for token in its["tokens"]
            )
        return [(term, begin, end) for _, term, begin, end in tokens]

    def _readable(self, terms: list[str]) -> dict[str, str]:
        """Term -> a word whose only term it is: itself, or the shortest of the document that is best for it."""
        analyzed = self._terms_of(terms)
        # Most stems are their own stems; a search for each of hundreds would cost a cluster more than the list does.
        disfigured = [term for term in terms if analyzed[term] != [term]]
        fields = tuple(filter(None, (self.index.fields.title, self.index.fields.text)))
        best = self.index.best_of_each([self._holding(term) for term in disfigured], fields)
        near = {term: [term] for term in terms}
        for term, hits in zip(disfigured, best, strict=True):
            sources = [self.index.source_of(field) for field in fields]
            near[term] = _near(term, " ".join(text_of(at_path(hit.source, field)) for field in sources for hit in hits))
        analyzed |= self._terms_of(sorted({word for term in disfigured for word in near[term]}))
        return {term: next((word for word in near[term] if analyzed[word] == [term]), "") for term in terms}

    def _terms_of(self, words: Sequence[str]) -> dict[str, list[str]]:
        """The terms of each word, many at once: one a line, distinguished by their offsets."""
        terms: dict[str, list[str]] = {word: [] for word in words}
        for start in range(0, len(words), WORDS_ANALYZED_AT_ONCE):
            some = words[start : start + WORDS_ANALYZED_AT_ONCE]
            ends = np.cumsum([len(word.encode("utf-16-le", "surrogatepass")) // 2 + 1 for word in some])
            for term, begin, end in self._tokens("\n".join(some)):
                first, last = np.searchsorted(ends, [begin, max(begin, end - 1)], side="right").tolist()
                # A term of two words is none of either.
                if first == last < len(some):
                    terms[some[first]].append(term)
        return terms


def check_text(text: str) -> None:
    """Raise DataError for what no server reads as text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise DataError("the query holds half of a surrogate pair, which is no Unicode text") from None


def _whole(text: str) -> list[str]:
    """A text of a query as one piece."""
    check_text(text)
    return [text] if text.strip() else []


def _near(term: str, text: str) -> list[str]:
    """The words of a text that begin as a term does, the shortest first.

    >>> _near("citi", "The cities' citizens, city by city")
    ['city', 'cities', 'citizens']
    """
    stem = term[: max(1, len(term) - 1)]
    words = {word for word in map(str.lower, WORD.findall(text)) if word.startswith(stem)}
    return sorted(words, key=lambda word: (len(word), word))
