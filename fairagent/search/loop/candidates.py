"""The candidates of a loop as the engine at hand sees them, so that an iteration is one product.

Three forms of the groups' evidence for three kinds of engines: centroids of vectors, relevance models of weighted
terms, and, for engines that take text alone, a query of its own for each group.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairagent.collection.exposure import ExposureMeter
from fairagent.measures.exposure import min_max, on_scale_of
from fairagent.retrieve.base import FusedEngine, Retriever, scored
from fairagent.retrieve.dense import VectorEngine
from fairagent.retrieve.encoders import Embeddings
from fairagent.retrieve.relevance_model import Postings, TermSource, share_out
from fairagent.search.loop.base import Search
from fairagent.search.loop.evidence import (
    Channel,
    EvidenceDocuments,
    averaged,
    bm25_weights,
    centroids,
    first_documents,
    group_query,
    refined_vector,
    scores_of,
    unit,
    words,
)
from fairagent.search.loop.sources import GroupText
from fairagent.types import FloatArray, Query, Ranking


@dataclass(frozen=True, slots=True, eq=False)
class Mixer:
    """How evidence is mixed into a query: `beta` is its share among vectors, `terms` among the scores of words.

    `source` tells terms for engines without vectors. What a model says of a group takes the place of what its
    documents have in common, or with `feedback` counts as much. The query itself is that of Rocchio's feedback: what
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


class Candidates:
    """The documents of `ranking`, with the engine's scores for the user's query, and what is to be known of them.

    Groups, vectors and words are looked up once, when they are first needed.
    """

    def __init__(self, ranking: Ranking, search: Search, meter: ExposureMeter, mixer: Mixer) -> None:
        self.ranking, self.ids, self.search, self.mixer = ranking, ranking.ids, search, mixer
        self._meter = meter

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def memberships(self) -> tuple[FloatArray, ...]:
        """Their groups, (n, 1 + g) a dimension."""
        return self._meter.memberships(self.ids)

    @cached_property
    def groups(self) -> FloatArray:
        """The known groups of all dimensions side by side, (n, g)."""
        return np.hstack([rows[:, 1:] for rows in self.memberships])

    @cached_property
    def everybody(self) -> list[EvidenceDocuments]:
        """The first documents, whoever they are about, where the query takes in what they have in common."""
        return [first_documents(self.ranking.scores, self.mixer.documents)] if self.mixer.rocchio else []

    @cached_property
    def postings(self) -> Postings:
        """Their words, by the mixer's source."""
        assert self.mixer.source is not None
        return self.mixer.source.postings(self.ids)

    @property
    def views(self) -> tuple[VectorView | WordView, ...]:
        """How the engine, or each of several that are fused, sees them."""
        return self._seen[0]

    @property
    def fixed(self) -> FloatArray:
        """The part of their scores that cannot be refined, (n,)."""
        return self._seen[1]

    @cached_property
    def _seen(self) -> tuple[tuple[VectorView | WordView, ...], FloatArray]:
        engine, source, now, fixed = self.search.engine, self.mixer.source, self.ranking.scores, np.zeros(len(self))
        if isinstance(engine, FusedEngine) and isinstance(engine, VectorEngine):
            views: list[VectorView | WordView] = []
            for one, part in zip(engine.engines, self._parts(engine).T, strict=True):
                if isinstance(one, VectorEngine):
                    views.append(VectorView(self, one, part))
                elif isinstance(one, TermSource):
                    views.append(WordView(self, one, one, one.postings(self.ids), part))
                else:
                    fixed += part
            return tuple(views), fixed
        if isinstance(engine, VectorEngine):
            return (VectorView(self, engine, now),), fixed
        return ((WordView(self, engine, source, self.postings, now),), fixed) if source else ((), now)

    @cached_property
    def fed(self) -> FloatArray:
        """Their scores by the query after relevance feedback, (n,)."""
        if not self.mixer.rocchio or not self.mixer.able(self.search.engine):
            return self.ranking.scores
        return self.fixed + sum(view.fed for view in self.views)

    def _parts(self, engine: FusedEngine) -> FloatArray:
        """What each fused engine gives them, (n, engines); 0 for those that no list has."""
        parts = engine.parts(self.search.query)
        row = {id: number for number, id in enumerate(parts.ids)}
        scores = np.zeros((len(self), parts.scores.shape[1]))
        known = [place for place, id in enumerate(self.ids) if id in row]
        scores[known] = parts.scores[[row[self.ids[place]] for place in known]]
        return scores

    def similarity(self, text: GroupText) -> FloatArray:
        """How similar they are to what a model says, (n,): the sum of the views', each min-max; zeros if nothing is."""
        of_views = [min_max(view.similarity(text), flat=0.0) for view in self.views]
        return np.asarray(np.sum([np.zeros(len(self)), *of_views], axis=0))

    def mix(self, learned: Sequence[EvidenceDocuments], texts: Sequence[Sequence[GroupText]] = ()) -> Mix:
        """What the evidence of the groups says of them; `texts` are a model's words, for each source of them."""
        channels = tuple(view.channel(learned, texts) for view in self.views)
        return Mix(channels, self.fixed, has_evidence(learned, texts))


class VectorView:
    """The candidates by an engine of vectors; `now` (n,) is its part of their scores."""

    def __init__(self, candidates: Candidates, engine: VectorEngine, now: FloatArray) -> None:
        self._mixer, self.engine, self.now = candidates.mixer, engine, now
        self.vectors, self.query = engine.vectors(candidates.ids), engine.query_vector(candidates.search.query)
        if candidates.everybody:
            common = centroids(self.vectors, candidates.everybody)
            self.query = unit(refined_vector(self.query, common, np.ones(1), self._mixer.rocchio))

    @property
    def fed(self) -> FloatArray:
        """The engine's part of the scores after relevance feedback, (n,)."""
        return self.channel((), ()).now

    def groups(self, learned: Sequence[EvidenceDocuments], texts: Sequence[Sequence[GroupText]]) -> Embeddings:
        """The evidence of each group as a vector (g, d)."""
        from_model = [np.zeros((len(part), self.vectors.shape[1]), dtype=np.float32) for part in texts]
        for rows, part in zip(from_model, texts, strict=True):
            for place, one in enumerate(part):
                if one:
                    rows[place] = self._vector(one)
        return averaged(centroids(self.vectors, learned), from_model, weights_of(texts), self._mixer.feedback)

    def similarity(self, text: GroupText) -> FloatArray:
        """How similar the candidates are to what a model says, (n,)."""
        return np.asarray(self.vectors @ self._vector(text), dtype=np.float64)

    def _vector(self, text: GroupText) -> Embeddings:
        return unit(self.engine.query_vector(Query(text.text)))

    def channel(self, learned: Sequence[EvidenceDocuments], texts: Sequence[Sequence[GroupText]]) -> Channel:
        """The products with the query's vector and with those of the groups; a mixture of these has length 1."""
        groups = self.groups(learned, texts)
        products = (self.vectors @ np.vstack((self.query, groups)).T).astype(np.float64)
        now = on_scale_of(products[:, 0], self.now) if self._mixer.rocchio else self.now
        gram = (groups @ groups.T).astype(np.float64)
        return Channel(now, products[:, 0], products[:, 1:], self._mixer.beta, gram)


class WordView:
    """The candidates by their words, for an engine without vectors; `now` (n,) is its part of their scores."""

    def __init__(
        self, candidates: Candidates, engine: Retriever, source: TermSource, postings: Postings, now: FloatArray
    ) -> None:
        self._candidates, self._engine, self._source, self._postings = candidates, engine, source, postings
        documents = len(engine) if isinstance(engine, Sized) else len(candidates)
        self._weights = bm25_weights(postings, documents) if isinstance(engine, TermSource) else None
        self.fed = now
        if candidates.everybody:
            common = self._evidence(candidates.everybody)
            self.fed = Channel(now, now, common, candidates.mixer.terms).scores(np.ones(1))

    def channel(self, learned: Sequence[EvidenceDocuments], texts: Sequence[Sequence[GroupText]]) -> Channel:
        """The words of the groups' documents, and a model's."""
        own, mixer = self._evidence(learned), self._candidates.mixer
        rows = np.zeros((len(texts), len(learned), len(own)))
        for number, part in enumerate(texts):
            for place, one in enumerate(part):
                if one:
                    rows[number, place] = self.similarity(one)
        groups = averaged(own.T, list(rows), weights_of(texts), mixer.feedback).T
        return Channel(self.fed, self.fed, groups, mixer.terms)

    def similarity(self, text: GroupText) -> FloatArray:
        """What the words that a model says give the candidates, (n,)."""
        # Without stop words, which would take their share of the weight and match nothing.
        known = [(term.text, term.weight) for term in text.terms if self._source.analyze(term.text)]
        if not known:
            return np.zeros(len(self._candidates))
        return self._scores(Query("", self._candidates.search.query.id, share_out(known, 1.0)))

    def _scores(self, query: Query) -> FloatArray:
        """What a query of evidence gives the candidates, (n,)."""
        if isinstance(self._engine, TermSource):
            return scored(self._engine, query, self._candidates.ids)
        return scores_of(self._candidates.ids, self._candidates.search.retrieve(query))

    def _evidence(self, learned: Sequence[EvidenceDocuments]) -> FloatArray:
        """(n, g): each group's best words, weighted as BM25 weighs them, or what a query of them retrieves."""
        evidence, postings = np.zeros((len(self._candidates), len(learned))), self._postings
        for column, one in enumerate(learned):
            if self._weights is not None:
                model = np.zeros(len(postings.vocabulary))
                for place, share in words(self._source, postings, one):
                    model[place] = share
                weights = self._weights * model[postings.term]
                evidence[:, column] = np.bincount(postings.row, weights, minlength=len(evidence))
            elif query := group_query(self._source, postings, one, self._candidates.search.query):
                evidence[:, column] = self._scores(query)
        return evidence


def weights_of(texts: Sequence[Sequence[GroupText]]) -> FloatArray:
    """How much each of a model's texts counts, (sources, g)."""
    return np.array([[one.weight for one in part] for part in texts])


def has_evidence(learned: Sequence[EvidenceDocuments], texts: Sequence[Sequence[GroupText]]) -> FloatArray:
    """1 for each group (g,) that has evidence: documents, or what a model says of it."""
    return np.array([float(bool(one) or any(part[place] for part in texts)) for place, one in enumerate(learned)])
