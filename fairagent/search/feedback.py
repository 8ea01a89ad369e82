"""Relevance feedback by vectors, for short queries: what the first documents have in common, whoever they are about.

A short query names a broad topic, whose documents are more alike than its few words say; of a long one feedback blurs
what it asks for. The figures, collection by collection: evaluations/controller/README.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairagent.retrieve.base import FusedEngine, Retriever
from fairagent.retrieve.bm25.part import words_at_hand
from fairagent.retrieve.dense import VectorEngine
from fairagent.retrieve.encoders import Embeddings
from fairagent.retrieve.relevance_model import TermSource
from fairagent.retrieve.site import Site
from fairagent.types import FloatArray, Query, Ranking


@dataclass(frozen=True, slots=True)
class VectorFeedback:
    """Rocchio's: the mean vector of the first `documents` has the share `mix` in the query's vector.

    Queries of more than `longest` words, as `words` analyzes them, are left as they are.
    """

    words: TermSource | None
    mix: float
    documents: int
    longest: int

    @classmethod
    def of_site(cls, site: Site) -> VectorFeedback | None:
        """As the settings say; None where they want none, or the engine has no vectors."""
        chosen = site.settings.feedback
        if not chosen.mix or not isinstance(site.engine, VectorEngine):
            return None
        return cls(words_at_hand(site), chosen.mix, chosen.documents, chosen.longest)

    def of(self, engine: Retriever, query: Query, own: Ranking) -> QueryFeedback | None:
        """What the engine's list `own` says of a query; None where it is too long, or the list too short."""
        length = len(self.words.analyze(query.text)) if self.words else len(query.text.split())
        if length > self.longest or len(own) < 2 or not isinstance(engine, VectorEngine):
            return None
        vectors, vector = engine.vectors(own.ids).astype(np.float64), engine.query_vector(query)
        first = vectors[: self.documents].mean(axis=0)
        toward = (1 - self.mix) * vector + self.mix * first / max(float(np.linalg.norm(first)), 1e-9)
        before, after = vectors @ vector, vectors @ toward
        spread = float(after.std())
        if spread <= 0:
            return None
        unit = _unit(engine, query, own, before)
        scale = float(before.std()) / spread
        shift = float(before.mean()) - scale * float(after.mean())
        return QueryFeedback(engine, np.asarray(unit * (scale * toward - vector)), unit * shift)


@dataclass(frozen=True, slots=True, eq=False)
class QueryFeedback:
    """What feedback adds to the engine's scores: products with `change` (d,), and `shift`.

    So the scores of the engine's vectors are those of the new vector, at the mean and the spread of the old ones.
    """

    engine: VectorEngine
    change: Embeddings
    shift: float

    def gain(self, ids: Sequence[str]) -> FloatArray:
        """What these documents gain, (n,), on the scale of the engine's scores."""
        return np.asarray(self.engine.vectors(ids).astype(np.float64) @ self.change + self.shift)


def _unit(engine: VectorEngine, query: Query, own: Ranking, products: FloatArray) -> float:
    """What a product of 1 is worth in the engine's scores, as these are spread; of a fusion in its vectors' part."""
    of_vectors, listed = own.scores, np.ones(len(own), dtype=bool)
    if isinstance(engine, FusedEngine):
        number = next((place for place, one in enumerate(engine.engines) if isinstance(one, VectorEngine)), None)
        if number is None:
            return 0.0
        parts = engine.parts(query)
        given = dict(zip(parts.ids, parts.scores[:, number].tolist(), strict=True))
        of_vectors = np.array([given.get(id, 0.0) for id in own.ids])
        listed = of_vectors > 0
    spread = float(products[listed].std()) if listed.any() else 0.0
    return float(of_vectors[listed].std()) / spread if spread > 0 else 0.0
