"""Relevance models: the words of the documents that answer a query (Lavrenko & Croft 2001; RM3: Jaleel et al. 2004)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fairagent.errors import UsageError
from fairagent.retrieve.base import TextSource, Vocabulary, lend, scored, searched
from fairagent.retrieve.site import Site
from fairagent.settings.parts import Engine, Part, default
from fairagent.types import FloatArray, Query, Ranking, Term


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """The terms of some documents: entry i says that document `row[i]` holds `vocabulary[term[i]]` `count[i]` times.

    `row` counts from 0 in the order of the documents; `length` (n,) is the number of terms of each document;
    `vocabulary` (v,) are the engine's term numbers, `document_share` (v,) the share of all documents that hold each.
    """

    row: NDArray[np.intp]
    term: NDArray[np.intp]
    count: FloatArray
    length: FloatArray
    vocabulary: NDArray[np.intp]
    document_share: FloatArray


@runtime_checkable
class TermSource(Protocol):
    """An engine with the terms of its documents."""

    def postings(self, ids: Sequence[str]) -> Postings:
        """The terms of these documents."""

    def words(self, vocabulary: NDArray[np.intp]) -> list[str]:
        """A readable word for each of these term numbers; "" for a term that no word is analyzed to."""

    def analyze(self, text: str) -> list[str]:
        """The index terms of a text, without stop words."""


def relevance_model(postings: Postings, weights: FloatArray) -> FloatArray:
    """P(w|R), shape (v,): the documents' term distributions averaged with `weights` (n,); all 0 where they are."""
    total = weights.sum()
    if total <= 0:
        return np.zeros(len(postings.vocabulary))
    per_entry = (weights / total / np.maximum(postings.length, 1))[postings.row] * postings.count
    summed = np.bincount(postings.term, weights=per_entry, minlength=len(postings.vocabulary))
    return np.asarray(summed, dtype=np.float64)


def top_words(
    source: TermSource,
    postings: Postings,
    scores: FloatArray,
    n: int,
    max_share: float,
    skip: frozenset[str] = frozenset(),
) -> list[tuple[str, int]]:
    """The `n` words with the highest positive `scores` (v,), best first, each with its place in the vocabulary.

    Of ties the word in more documents comes first, then the earlier of the vocabulary. Words in more than `max_share`
    of all documents say nothing and are left out, as are those in `skip`.
    """
    eligible = np.flatnonzero((scores > 0) & (postings.document_share <= max_share))
    most = n + len(skip)
    if len(eligible) > most:
        # Sorting the few that can be among the best is much cheaper than sorting all; ties at the cut stay in.
        least = np.partition(scores[eligible], -most)[-most]
        eligible = eligible[scores[eligible] >= least]
    order = eligible[np.lexsort((-postings.document_share[eligible], -scores[eligible]))][:most]
    words = zip(source.words(postings.vocabulary[order]), order.tolist(), strict=True)
    return [(word, place) for word, place in words if word and word not in skip][:n]


@dataclass(frozen=True, slots=True)
class RM3:
    """Query expansion by pseudo-relevance feedback: the words of the first `documents` of a ranking.

    The expanded query is (1 - weight) P(w|query) + weight P(w|R), with P(w|R) cut to its `terms` best words; each
    document counts by its score. `max_share` leaves out words that are in more than this share of all documents.
    """

    documents: int = 50
    terms: int = 200
    weight: float = 0.7
    max_share: float = 0.2

    def expand(self, source: TermSource, query: Query, ranking: Ranking) -> Query:
        """`query` with its topic words behind the keywords it has; unchanged where the ranking is empty."""
        first = ranking.top(self.documents)
        if not len(first):
            return query
        postings = source.postings(first.ids)
        scores = relevance_model(postings, first.scores)
        words = top_words(source, postings, scores, self.terms, self.max_share)
        best = [(word, float(scores[place])) for word, place in words]
        size = len(source.analyze(query.text)) * self.weight / (1 - self.weight)
        return Query(query.text, query.id, (*query.terms, *share_out(best, size)))


def share_out(scored: Sequence[tuple[str, float]], weight: float) -> tuple[Term, ...]:
    """Terms that share `weight` (in words of the user's query) in proportion to their scores."""
    total = sum(score for _, score in scored)
    return tuple(Term(word, weight * score / total) for word, score in scored) if weight > 0 else ()


class RM3Retriever:
    """`engine`, which stores terms and texts as `BM25Retriever` does, with queries expanded by `rm3`.

    Keywords that a query has already keep their weights. It does not show the engine's terms (it is no `TermSource`),
    so that an agent does not expand its queries a second time.
    """

    def __init__(self, engine: Any, rm3: RM3 | None = None) -> None:
        self.engine, self.rm3 = engine, rm3 or RM3()
        lend(self, engine, "document", "document_frequency")

    def search(self, query: Query, n: int) -> Ranking:
        return searched(self.engine, self.expanded(query), n)

    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        return scored(self.engine, self.expanded(query), ids)

    def expanded(self, query: Query) -> Query:
        """`query` with its topic words; as it is where it retrieves nothing."""
        return self.rm3.expand(self.engine, query, searched(self.engine, query, max(1, self.rm3.documents)))


class RM3Config(Part):
    """An engine (BM25, unless another is named) whose queries get the words of their first documents (RM3)."""

    kind: Literal["rm3"] = "rm3"
    documents: int = Field(50, ge=1)
    """How many of the first documents the words are taken from. More give more general words."""
    terms: int = Field(200, ge=1)
    """How many words are added. More widen the query and slow the search down."""
    weight: float = Field(0.7, ge=0, lt=1)
    """The share of the added words in the weight of the whole query, 0 to below 1. Larger values rely less on the
    user's words."""
    engine: Engine = default("engine", "bm25")
    """The engine that is searched; it has to tell the terms of its documents."""

    def build(self, site: Site) -> RM3Retriever:
        """The engine; UsageError for one that does not tell the terms of its documents."""
        engine = self.engine.build(site)
        if not all(isinstance(engine, protocol) for protocol in (TermSource, TextSource, Vocabulary)):
            raise UsageError(f"engine rm3: {self.engine.kind!r} does not tell which terms its documents hold")
        return RM3Retriever(engine, RM3(self.documents, self.terms, self.weight))
