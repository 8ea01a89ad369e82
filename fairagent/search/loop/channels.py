"""The groups' evidence through the engine at hand: as vectors, as weighted terms, or as queries of their own.

The second search: the refined query over the whole collection, so that documents come in that no list had.

Vectors are searched by the refined vector, engines of words by a weighted query, engines that take text alone by a
query for each group. A group that has too few candidates is searched for among its own documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fairagent.collection import Groups
from fairagent.measures.exposure import on_scale_of
from fairagent.retrieve.base import Retriever
from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.retrieve.catalog import IdTable
from fairagent.retrieve.dense import DenseRetriever, VectorEngine, VectorSearch
from fairagent.retrieve.encoders import Embeddings
from fairagent.retrieve.fused import FusedRetriever
from fairagent.retrieve.relevance_model import TermSource, share_out
from fairagent.search.loop.base import Lack, Search
from fairagent.search.loop.evidence import (
    Channel,
    EvidenceDocuments,
    averaged,
    by_queries,
    by_terms,
    by_vectors,
    centroids,
    first_documents,
    group_query,
    refined_vector,
    scores_of,
    words,
)
from fairagent.search.loop.sources import GroupText
from fairagent.storage.threads import Memo
from fairagent.types import FloatArray, Query, Ranking


@dataclass(frozen=True, slots=True, eq=False)
class Mix:
    """Query and evidence as scores of the candidates: `channels` are refined, `fixed` (n,) is not.

    `has` (g,) is 1 for the groups that have evidence.
    """

    channels: tuple[Channel, ...]
    fixed: FloatArray
    has: FloatArray

    def scores(self, added: FloatArray, weights: FloatArray, part: float = 1.0) -> FloatArray:
        """The refined scores (n,) under the groups' `weights` (g,), with what is `added` (n,) to them.

        Evidence has a `part` of its share of the query.
        """
        return self.fixed + added + sum(channel.scores(weights, part) for channel in self.channels)


@dataclass(frozen=True, slots=True, eq=False)
class Mixer:
    """Mixes evidence into a query: `beta` is its share among vectors, `terms` among the scores of words.

    `source` tells terms for engines without vectors. What a model has said of a group takes the place of what its
    documents have in common, or with `feedback` stands beside it. The query itself is that of Rocchio's feedback: what
    the first `documents` have in common, whoever they are about, has the share `rocchio` (0: none) among vectors.
    """

    beta: float = 0.7
    source: TermSource | None = None
    feedback: bool = True
    terms: float = 0.2
    rocchio: float = 0.0
    documents: int = 20

    def able(self, engine: Retriever) -> bool:
        """Whether this engine's scores can be refined."""
        return self.source is not None or isinstance(engine, VectorEngine)

    def mix(
        self,
        search: Search,
        found: Ranking,
        learned: Sequence[EvidenceDocuments],
        texts: Sequence[Sequence[GroupText]] = (),
    ) -> Mix:
        """What the evidence says of the candidates `found`, which have the engine's scores for the user's query.

        `texts` are a model's words, for each source of them.
        """
        engine, channels, fixed = search.engine, list[Channel](), np.zeros(len(found))

        def dense(one: VectorEngine, now: FloatArray) -> Channel:
            vectors = one.vectors(found.ids)
            groups = self.group_vectors(one, vectors, learned, texts)
            channel = by_vectors(now, vectors, self.query_vector(one, search.query, found, vectors), groups, self.beta)
            return replace(channel, now=on_scale_of(channel.own, now)) if self.rocchio else channel

        if isinstance(engine, FusedRetriever) and engine.vector_engines:
            for one, now in zip(engine.engines, _parts(engine, search.query, found).T, strict=True):
                if isinstance(one, VectorEngine):
                    channels.append(dense(one, now))
                elif isinstance(one, TermSource):
                    channels.append(self._by_words(one, one, now, search, found, learned, texts))
                else:
                    fixed += now
        elif isinstance(engine, VectorEngine):
            channels = [dense(engine, found.scores)]
        elif self.source is None:
            fixed = found.scores
        else:
            channels = [self._by_words(self.source, engine, found.scores, search, found, learned, texts)]
        return Mix(tuple(channels), fixed, has_evidence(learned, texts))

    def query_vector(self, engine: VectorEngine, query: Query, found: Ranking, vectors: Embeddings) -> Embeddings:
        """The query's vector (d,) after Rocchio's feedback, of length 1; `vectors` (n, d) are the candidates'."""
        own = engine.query_vector(query)
        if not self.rocchio:
            return own
        common = centroids(vectors, [first_documents(found.scores, self.documents)])
        fed = refined_vector(own, common, np.ones(1), self.rocchio)
        return np.asarray(fed / max(float(np.linalg.norm(fed)), 1e-9), dtype=np.float32)

    def group_vectors(
        self,
        engine: VectorEngine,
        vectors: Embeddings,
        learned: Sequence[EvidenceDocuments],
        texts: Sequence[Sequence[GroupText]] = (),
    ) -> Embeddings:
        """The evidence of each group as a vector (g, d); `vectors` (n, d) are the candidates'."""
        from_model = [_vectors(engine, part, vectors.shape[1]) for part in texts]
        return centroids(vectors, learned, from_model, self.feedback)

    def _by_words(
        self,
        source: TermSource,
        engine: Retriever,
        now: FloatArray,
        search: Search,
        found: Ranking,
        learned: Sequence[EvidenceDocuments],
        texts: Sequence[Sequence[GroupText]],
    ) -> Channel:
        """The evidence of an engine without vectors: the words of the groups' documents, and a model's."""
        query = search.query
        everybody = [first_documents(found.scores, self.documents)] if self.rocchio else []
        if isinstance(engine, TermSource):
            documents = len(engine) if hasattr(engine, "__len__") else len(found)
            channel = by_terms(source, found.ids, now, [*learned, *everybody], self.terms, documents)
        else:
            channel = by_queries(search.retrieve, source, found, query, [*learned, *everybody], self.terms)
        if everybody:
            groups, common = np.split(channel.evidence, [len(learned)], axis=1)
            fed = replace(channel, evidence=common).scores(np.ones(1))
            channel = Channel(fed, fed, groups, self.terms)

        def score(asked: Query) -> FloatArray:
            if isinstance(engine, TermSource):
                return engine.score(asked, found.ids)
            return scores_of(found.ids, search.retrieve(asked))

        rows = np.zeros((len(texts), len(learned), len(found)))
        for number, part in enumerate(texts):
            for place, one in enumerate(part):
                # Without stop words, which would take their share of the weight and find nothing.
                known = [(term.text, term.weight) for term in one.terms if source.analyze(term.text)]
                if known:
                    rows[number, place] = score(Query("", query.id, share_out(known, 1.0)))
        return replace(channel, evidence=averaged(channel.evidence.T, list(rows), self.feedback).T)


def has_evidence(learned: Sequence[EvidenceDocuments], texts: Sequence[Sequence[GroupText]]) -> FloatArray:
    """1 for each group (g,) that has evidence: documents, or what a model says of it."""
    return np.array([float(bool(one) or any(part[place] for part in texts)) for place, one in enumerate(learned)])


def _parts(engine: FusedRetriever, query: Query, found: Ranking) -> FloatArray:
    """What each engine gives the candidates, (n, engines); 0 for those that no list has."""
    parts = engine.parts(query)
    row = {id: number for number, id in enumerate(parts.ids)}
    scores = np.zeros((len(found), parts.scores.shape[1]))
    known = [place for place, id in enumerate(found.ids) if id in row]
    scores[known] = parts.scores[[row[found.ids[place]] for place in known]]
    return scores


def _vectors(engine: VectorEngine, texts: Sequence[GroupText], size: int) -> Embeddings:
    """The text of each group as a vector of length 1, (g, size); zeros where there is none."""
    rows = np.zeros((len(texts), size), dtype=np.float32)
    for place, one in enumerate(texts):
        if one:
            vector = engine.query_vector(Query(one.text))
            rows[place] = vector / max(float(np.linalg.norm(vector)), 1e-9)
    return rows


WORDS = 10
"""Words that are added to a query of words: each of them has to be looked up, and more cost more than they find."""


@dataclass(frozen=True, slots=True, eq=False)
class GroupMembers:
    """Which documents of an index belong to a group; looked up once for a dimension, and kept in `memo`."""

    groups: Groups
    memo: Memo

    def numbers(self, ids: IdTable, lack: Lack) -> NDArray[np.intp]:
        """The numbers of the group's documents, rising; none where labels depend on the topic."""
        dimension, label = lack.group.dimension, lack.group.label
        if dimension in self.groups.oracle:
            return np.zeros(0, dtype=np.intp)

        def found() -> dict[str, NDArray[np.intp]]:
            rows = self.groups.memberships(dimension, ids.texts())[:, 1:]
            labels = self.groups.labels(dimension)
            return {one: np.flatnonzero(column) for one, column in zip(labels, rows.T, strict=True)}

        return self.memo.get(("members", id(ids), dimension), found)[label]  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What a second search goes by: the candidates `found`, and what is `learned` of each group among them.

    `texts` are a model's words for the groups, `weights` (g,) those of their evidence; `short` are groups that have too
    few candidates, each with the number of documents that it lacks.
    """

    found: Ranking
    learned: Sequence[EvidenceDocuments]
    texts: Sequence[Sequence[GroupText]]
    weights: FloatArray
    short: Sequence[tuple[Lack, int]]


@dataclass(frozen=True, slots=True, eq=False)
class SecondSearch:
    """Finds up to `depth` documents by the refined query; `members` tell the documents of groups."""

    members: GroupMembers
    depth: int = 100

    def documents(self, search: Search, mixer: Mixer, evidence: Evidence) -> list[str]:
        """The ids of all documents that are found, each once. Raises what the engine raises."""
        engine = search.engine
        engines = engine.engines if isinstance(engine, FusedRetriever) else (engine,)
        by_vectors = [one for one in engines if isinstance(one, VectorSearch)]
        lists: Iterator[Sequence[str]]
        if by_vectors:
            lists = (ids for one in by_vectors for ids in self._by_vectors(one, search, mixer, evidence))
        elif mixer.source is None:
            lists = iter(())
        elif isinstance(engine, TermSource):
            lists = self._by_words(mixer.source, search, mixer, evidence)
        else:
            lists = self._by_queries(mixer.source, search, evidence)
        return list(dict.fromkeys(id for ids in lists for id in ids))

    def _by_vectors(
        self, engine: VectorSearch, search: Search, mixer: Mixer, evidence: Evidence
    ) -> Iterator[Sequence[str]]:
        vectors = engine.vectors(evidence.found.ids)
        own = mixer.query_vector(engine, search.query, evidence.found, vectors)
        groups = mixer.group_vectors(engine, vectors, evidence.learned, evidence.texts)
        yield engine.nearest(refined_vector(own, groups, evidence.weights, mixer.beta), self.depth).ids
        inner = getattr(engine, "engine", engine)
        if isinstance(inner, DenseRetriever):
            for lack, count in evidence.short:
                toward = refined_vector(own, groups[lack.place : lack.place + 1], np.ones(1), mixer.beta)
                yield inner.nearest(toward, count, self.members.numbers(inner.ids, lack)).ids

    def _by_words(
        self, source: TermSource, search: Search, mixer: Mixer, evidence: Evidence
    ) -> Iterator[Sequence[str]]:
        postings = source.postings(evidence.found.ids)
        total: dict[int, float] = {}
        for one, weight in zip(evidence.learned, evidence.weights.tolist(), strict=True):
            for place, share in words(source, postings, one, len(evidence.found)) if one and weight else ():
                total[place] = total.get(place, 0.0) + weight * share
        best = sorted(total.items(), key=lambda item: (-item[1], item[0]))[:WORDS]
        names = source.words(postings.vocabulary[[place for place, _ in best]]) if best else []
        found = [(name, share) for name, (_, share) in zip(names, best, strict=True)]
        query = search.query
        size = max(len(source.analyze(query.text)), 1) * mixer.terms / (1 - mixer.terms)
        yield search.retrieve(Query(query.text, query.id, (*query.terms, *share_out(found, size)))).ids[: self.depth]
        if isinstance(search.engine, BM25Retriever):
            for lack, count in evidence.short:
                numbers = self.members.numbers(search.engine.ids, lack)
                yield search.engine.search(query, count, among=numbers).ids

    def _by_queries(self, source: TermSource, search: Search, evidence: Evidence) -> Iterator[Sequence[str]]:
        postings, size = source.postings(evidence.found.ids), len(evidence.found)
        for one in evidence.learned:
            if (asked := group_query(source, postings, one, size, search.query)) is not None:
                yield search.retrieve(asked).ids[: self.depth]
