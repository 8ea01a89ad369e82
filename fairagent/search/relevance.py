"""Estimated relevance: the engine's scores for the user's own query, relevance feedback, and the types of documents.

All candidates are ordered by it, whoever found them, and it is what a list's relevance is the mean of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairagent.collection.exposure import ExposureMeter
from fairagent.measures.objective import estimated_relevance
from fairagent.retrieve.base import Retriever, scored
from fairagent.retrieve.graph import graph_of
from fairagent.retrieve.site import Site
from fairagent.search.document_types import TypePrior, TypeSource
from fairagent.search.feedback import VectorFeedback
from fairagent.search.rerank.base import ordered
from fairagent.types import FloatArray, Query, Ranking

SAME = 1e-6
"""Scores that differ by less of what the list's scores span are the same."""
Gain = Callable[[Sequence[str]], FloatArray]
"""What documents gain beside the engine's scores, on their scale."""


@dataclass(frozen=True, slots=True, eq=False)
class Weighed:
    """The documents of the engine's list `own` for a query as `candidates`, best first, and what measures them now."""

    engine: Retriever
    query: Query
    own: Ranking
    candidates: Ranking
    meter: ExposureMeter
    gains: tuple[Gain, ...] = ()

    def joined(self, candidates: Ranking, ids: Sequence[str]) -> Ranking:
        """The candidates with these documents, each as relevant as it is for the user's own query.

        An engine may score given documents otherwise than its list does (a host's list is its own): their scores are
        then what those of the list make likely, by a line through both. None is better than the last of the list, which
        has whatever is; one that is worse has a relevance below 0 (at 0 it would come in for nothing:
        evaluations/widening/README.md).
        """
        own = self.own.scores
        every_score = scored(self.engine, self.query, (*self.own.ids, *ids))
        known, scores = every_score[: len(own)], every_score[len(own) :]
        if np.abs(known - own).max() > SAME * np.ptp(own):
            spread = float(known.var())
            slope = float(((known - known.mean()) * (own - own.mean())).mean()) / spread if spread > 0 else 0.0
            scores = own.mean() + slope * (scores - known.mean())
        scores = np.minimum(scores, own[-1])
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
        settings = site.settings
        if not (settings.sees_groups and site.collection.groups.dimensions):
            return None
        types = TypeSource.of_collection(site.collection, graph_of(site), site.memo) if settings.types else None
        feedback = VectorFeedback.of_site(site)
        return cls(feedback, types, settings.types) if feedback or types else None

    def of(self, engine: Retriever, query: Query, own: Ranking, meter: ExposureMeter) -> Weighed:
        """The candidates by estimated relevance, and the meter as their types say.

        A dimension counts by how much it applies to the first documents, where their types say so, and several share
        the price of one; documents that cannot have a label should get what they have of the best by estimated
        relevance.
        """
        if not len(own):
            return Weighed(engine, query, own, own, meter)
        gains: list[Gain] = []
        scores, applies = own.scores, dict[str, float]()
        if self.feedback and (fed := self.feedback.of(engine, query, own)):
            gains.append(fed.gain)
            scores = scores + fed.gain(own.ids)
        if self.types:
            first, last = float(own.scores[0]), float(own.scores[-1])
            # What a difference of 1 in relevance is on the scale of the engine's scores.
            unit = first - last or 1.0
            prior = TypePrior.of(self.types, query.id, own.ids, estimated_relevance(scores, first, last), self.weight)
            gains.append(lambda ids: unit * prior.gain(ids))
            scores = scores + unit * prior.gain(own.ids)
            applies = dict(prior.importance)
        counts = [applies.get(target.dimension, 1.0) for target in meter.targets]
        meter = replace(meter, importance=tuple(count / max(1.0, sum(counts)) for count in counts))
        order = np.argsort(-scores, kind="stable")
        candidates = Ranking(tuple(own.ids[place] for place in order.tolist()), scores[order])
        if self.types:
            meter = meter.by_type(candidates, self.types.clustered)
        return Weighed(engine, query, own, candidates, meter, tuple(gains))
