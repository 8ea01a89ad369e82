"""The groups' evidence through the engine at hand: as vectors, as weighted terms, or as queries of their own."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairagent.loop.base import Search
from fairagent.loop.evidence import (
    Channel,
    EvidenceDocuments,
    averaged,
    by_queries,
    by_terms,
    by_vectors,
    centroids,
    first_documents,
    refined_vector,
    scores_of,
)
from fairagent.loop.sources import GroupText
from fairagent.measures.scale import on_scale_of
from fairagent.retrieve.base import Retriever
from fairagent.retrieve.dense import VectorEngine
from fairagent.retrieve.encoder import Embeddings
from fairagent.retrieve.fused import FusedRetriever
from fairagent.retrieve.relevance_model import TermSource, share_out
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
