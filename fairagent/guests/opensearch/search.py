"""Searching the words of an index on a server: weighted terms, exact scores, texts, terms, and whole result sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.extend import (
    DataError,
    Document,
    FloatArray,
    Postings,
    Query,
    Ranking,
    UsageError,
    check_length,
    engine_time,
    term_weights,
)
from fairagent.guests.opensearch.answers import ServerCache, ServerHit, text_of, value
from fairagent.guests.opensearch.groups import ServerGroups
from fairagent.guests.opensearch.index import BATCH, ServerIndex
from fairagent.guests.opensearch.terms import ServerTerms, check_text

TEXTS = 5_000
"""Documents whose texts are remembered: far more than the lists of one search show."""

Clauses = list[dict[str, Any]]


class OpenSearchRetriever:
    """The ranking of an index on a server: the sum, over keywords and fields, of weight times the field's score.

    The server analyzes the words and scores them by the similarity in its mapping, with document frequencies of the
    whole index (`dfs_query_then_fetch`). Scores are the server's 32-bit floats; ties are ordered by document id, at
    the cut as well. Threads may share it.
    """

    def __init__(self, index: ServerIndex, groups: ServerGroups | None = None) -> None:
        """Take the index, and its groups, if it has any, which see the labels of each list.

        Raises DataError where the index has not the fields that are searched, BackendUnavailable where it is not there.
        """
        index.check_fields((*index.fields.searched, index.fields.text, index.fields.title, index.fields.id))
        self.index, self.groups = index, groups
        self._fields = groups.fields if groups else ()
        self._terms = ServerTerms(index)
        self._texts: ServerCache[Document] = ServerCache(TEXTS)

    def __len__(self) -> int:
        return self.index.documents

    @engine_time("server")
    def search(self, query: Query, n: int) -> Ranking:
        """The best `n` documents with a score above 0; empty where no keyword occurs in the index.

        Raises UsageError for more than one answer of the server may hold, DataError for a tie at the cut that does not
        fit into one either.
        """
        check_length(n)
        n = index(n)
        window = self.index.window
        # Without one more than wanted only the server can tell which of a tie come first, which it cannot by `_id`.
        most = window - (self.index.fields.id == "_id")
        if n > most:
            raise UsageError(
                f"{n:,} documents were asked for, and index {self.index} gives {most:,} at a time; lower `depth` (or "
                "`n`), or raise index.max_result_window on the server"
            )
        evidence = {"bool": {"should": self._clauses(query)}}
        # One more than wanted shows whether a tie goes across the cut; then the whole tie is fetched.
        asked = min(n + 1, window)
        found = self._asked(evidence, asked, query)
        while len(found) == asked and found[n - 1].score == found[-1].score:
            if asked == window:
                found = self._by_id(evidence, n, query)
                break
            asked = min(asked * 2, window)
            found = self._asked(evidence, asked, query)
        return ordered([one for one in found if one.score > 0], n)

    @engine_time("server")
    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """The scores of the documents `ids` for `query`, (n,), in one request (of 10,000); 0 where no term matches.

        Raises DataError naming ids that are not in the index.
        """
        if not len(ids):
            return np.zeros(0)
        # SHOULD, not MUST: documents of the pool without any query term stay in the answer, with score 0.
        told = self.index.fetch(ids, (), query.text, should=self._clauses(query))
        return np.array([told[id].score for id in ids])

    def document(self, id: str) -> Document:
        """The document as the server stores it; DataError where it has none of that id."""
        return self.documents([id])[0]

    @engine_time("server")
    def documents(self, ids: Sequence[str]) -> list[Document]:
        """These documents, in as few requests as their texts allow; DataError naming ids that are not there."""
        told = self._texts.all(ids, self._read, BATCH)
        return [told[id] for id in ids]

    @engine_time("server")
    def document_frequency(self, word: str) -> int:
        """How many documents hold `word` (of several words, the rarest); 0 where none does or it is a stop word."""
        return self._terms.document_frequency(word)

    @engine_time("server")
    def postings(self, ids: Sequence[str]) -> Postings:
        """The terms of these documents, of all fields that are searched; DataError naming ids that are not there."""
        return self._terms.postings(ids)

    @engine_time("server")
    def words(self, vocabulary: NDArray[np.intp]) -> list[str]:
        """A readable word for each term number of `postings`."""
        return self._terms.words(vocabulary)

    @engine_time("server")
    def analyze(self, text: str) -> list[str]:
        """The index terms of `text` in order, as the text field's analyzer makes them."""
        return self._terms.analyze(text)

    @engine_time("server")
    def group_counts(self, query: Query) -> dict[str, dict[str, int]]:
        """Dimension -> label -> how many of ALL documents that match `query` have it, by one aggregation.

        "" counts those without a label; a document with several labels counts for each of them. UsageError without
        `groups`.
        """
        if not self.groups:
            raise UsageError("the engine was not told which fields hold groups (engine.groups)")
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

    def _asked(self, evidence: Mapping[str, Any], size: int, query: Query, **order: Any) -> list[ServerHit]:
        found = self.index.found({"query": evidence, "size": size, **order}, self._fields, query.text)
        if self.groups:
            self.groups.see(found)
        return found

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
        return self._asked(evidence, n, query, **order)

    def _read(self, ids: list[str]) -> dict[str, Document]:
        fields = self.index.fields
        told = self.index.fetch(ids, (fields.title, fields.text, *self._fields))
        if self.groups:
            self.groups.see(list(told.values()))
        title, text = self.index.source_of(fields.title), self.index.source_of(fields.text)
        return {
            id: Document(
                id,
                text_of(value(one.source, text)),
                text_of(value(one.source, title)) if title else "",
                {name: value(one.source, self.index.source_of(name)) for name in self._fields},
            )
            for id, one in told.items()
        }


def ordered(found: Sequence[ServerHit], n: int) -> Ranking:
    """The best `n` of documents by their scores, ties by the bytes of their ids."""
    best = sorted(found, key=lambda one: (-one.score, one.id.encode("utf-8", "surrogatepass")))[:n]
    return Ranking(tuple(one.id for one in best), np.array([one.score for one in best], dtype=np.float64))


def _whole(text: str) -> list[str]:
    """A text of a query as one piece; DataError where it is none that can be sent."""
    check_text(text)
    return [text] if text.strip() else []
