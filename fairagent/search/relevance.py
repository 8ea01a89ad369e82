"""Estimated relevance: the engine's scores for the user's own query, relevance feedback, and the types of documents.

All candidates are ordered by it, whoever retrieved them, and it is what a list's relevance is the mean of. Feedback is
for short queries: these name a broad topic, whose documents are more alike than its few words say; of a long one it
blurs what it asks for. The figures, collection by collection: evaluations/controller/README.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairagent.collection.exposure import ExposureMeter
from fairagent.measures.objective import estimated_relevance
from fairagent.retrieve.base import FusedEngine, Retriever, scored
from fairagent.retrieve.bm25.part import words_at_hand
from fairagent.retrieve.dense import VectorEngine
from fairagent.retrieve.graph import graph_of
from fairagent.retrieve.relevance_model import TermSource
from fairagent.retrieve.site import Site
from fairagent.search.document_types import TypeSource, type_prior
from fairagent.search.rerank.base import ordered
from fairagent.types import FloatArray, Query, Ranking

SAME = 1e-6
"""Scores that differ by less of what the list's scores span are the same."""
Gain = Callable[[Sequence[str]], FloatArray]
"""What documents gain beside the engine's scores, (n,), on their scale."""


@dataclass(frozen=True, slots=True)
class VectorFeedback:
    """Rocchio's: the mean vector of the first `documents` has the share `mix` in the vector of a query of few words.

    A query is left as it is if it has more than `longest` words, as `words` analyzes them.
    """

    words: TermSource | None
    mix: float
    documents: int
    longest: int

    def gains(self, engine: Retriever, query: Query, engine_list: Ranking) -> tuple[FloatArray, Gain] | None:
        """What the documents of the engine's list gain, and how much any others do; None: the query stays.

        The scores of the engine's vectors become those of the new query vector, at the mean and the spread of the old
        ones.
        """
        length = len(self.words.analyze(query.text)) if self.words else len(query.text.split())
        if length > self.longest or len(engine_list) < 2 or not isinstance(engine, VectorEngine):
            return None
        vectors, vector = engine.vectors(engine_list.ids).astype(np.float64), engine.query_vector(query)
        first = vectors[: self.documents].mean(axis=0)
        toward = (1 - self.mix) * vector + self.mix * first / max(float(np.linalg.norm(first)), 1e-9)
        before, after = vectors @ vector, vectors @ toward
        spread = float(after.std())
        if spread <= 0:
            return None
        unit = _unit(engine, query, engine_list, before)
        scale = float(before.std()) / spread
        change = np.asarray(unit * (scale * toward - vector))
        shift = unit * (float(before.mean()) - scale * float(after.mean()))

        def gain(ids: Sequence[str]) -> FloatArray:
            return np.asarray(engine.vectors(ids).astype(np.float64) @ change + shift)

        return np.asarray(vectors @ change + shift), gain


def _unit(engine: VectorEngine, query: Query, engine_list: Ranking, products: FloatArray) -> float:
    """What a product of 1 is worth in the engine's scores, as these are spread; of a fusion in its vectors' part."""
    of_vectors, listed = engine_list.scores, np.ones(len(engine_list), dtype=bool)
    if isinstance(engine, FusedEngine):
        number = next((place for place, one in enumerate(engine.engines) if isinstance(one, VectorEngine)), None)
        if number is None:
            return 0.0
        parts = engine.parts(query)
        given = dict(zip(parts.ids, parts.scores[:, number].tolist(), strict=True))
        of_vectors = np.array([given.get(id, 0.0) for id in engine_list.ids])
        listed = of_vectors > 0
    spread = float(products[listed].std()) if listed.any() else 0.0
    return float(of_vectors[listed].std()) / spread if spread > 0 else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Weighed:
    """The documents of the `engine_list` for a query as `candidates`, best first, and what measures them now."""

    engine: Retriever
    query: Query
    engine_list: Ranking
    candidates: Ranking
    meter: ExposureMeter
    gains: tuple[Gain, ...] = ()

    def joined(self, candidates: Ranking, ids: Sequence[str]) -> Ranking:
        """The candidates with these documents, each as relevant as it is for the user's own query.

        Where an engine scores given documents otherwise than its list does (a host's list is its own), a line through
        both gives the scores that the list makes likely. None is better than the last of the list, which has whatever
        is; one that is worse has a relevance below 0 (at 0 it would come in for nothing:
        evaluations/widening/README.md).
        """
        listed = self.engine_list.scores
        every_score = scored(self.engine, self.query, (*self.engine_list.ids, *ids))
        known, scores = every_score[: len(listed)], every_score[len(listed) :]
        if np.abs(known - listed).max() > SAME * np.ptp(listed):
            spread = float(known.var())
            slope = float(((known - known.mean()) * (listed - listed.mean())).mean()) / spread if spread > 0 else 0.0
            scores = listed.mean() + slope * (scores - known.mean())
        scores = np.minimum(scores, listed[-1])
        scores = scores + sum(gain(ids) for gain in self.gains)
        every = (*candidates.ids, *ids)
        return ordered(every, np.concatenate([candidates.scores, scores]), len(every))


@dataclass(frozen=True, slots=True)
class Weighing:
    """How the documents of an engine's list are weighed: by `feedback`, and by their `types` with this `weight`."""

    feedback: VectorFeedback | None
    types: TypeSource | None
    weight: float

    @classmethod
    def of_site(cls, site: Site) -> Weighing | None:
        """As settings say; None where the engine's order stays, as where nothing looks at groups."""
        settings, chosen = site.settings, site.settings.feedback
        if not (settings.sees_groups and site.collection.groups.dimensions):
            return None
        types = TypeSource.of_collection(site.collection, graph_of(site), site.memo) if settings.types else None
        feedback = None
        if chosen.mix and isinstance(site.engine, VectorEngine):
            feedback = VectorFeedback(words_at_hand(site), chosen.mix, chosen.documents, chosen.longest)
        return cls(feedback, types, settings.types) if feedback or types else None

    def of(self, engine: Retriever, query: Query, engine_list: Ranking, meter: ExposureMeter) -> Weighed:
        """The candidates by estimated relevance, and the meter as their types say.

        A dimension counts by how much it applies to the first documents, and several share the price of one; documents
        that cannot have a label should get what they have of the best by estimated relevance.
        """
        if not len(engine_list):
            return Weighed(engine, query, engine_list, engine_list, meter)
        gains: list[Gain] = []
        scores = engine_list.scores
        applies: Mapping[str, float] = {}
        if self.feedback and (fed := self.feedback.gains(engine, query, engine_list)):
            scores = scores + fed[0]
            gains.append(fed[1])
        if self.types:
            first, last = float(engine_list.scores[0]), float(engine_list.scores[-1])
            # What a difference of 1 in relevance is on the scale of the engine's scores.
            unit = first - last or 1.0
            relevance = estimated_relevance(scores, first, last)
            prior = type_prior(self.types, query.id, engine_list.ids, relevance, self.weight)
            scores, applies = scores + unit * prior.listed, prior.importance
            gains.append(lambda ids: unit * prior.gain(ids))
        counts = [applies.get(target.dimension, 1.0) for target in meter.targets]
        meter = replace(meter, importance=tuple(count / max(1.0, sum(counts)) for count in counts))
        order = np.argsort(-scores, kind="stable")
        candidates = Ranking(tuple(engine_list.ids[place] for place in order.tolist()), scores[order])
        if self.types:
            meter = meter.by_type(candidates, frozenset(self.types.table))
        return Weighed(engine, query, engine_list, candidates, meter, tuple(gains))
