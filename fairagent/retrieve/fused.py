"""Several engines as one: their lists on a common scale, added up; by default BM25 and vector search."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Literal, Self

import numpy as np
from pydantic import Field, model_validator

from fairagent.errors import BackendUnavailable, DataError, FairAgentError
from fairagent.measures.exposure import min_max
from fairagent.retrieve.base import (
    EngineScores,
    PassageSource,
    Retriever,
    TextSource,
    Vocabulary,
    check_length,
    engine_time,
    lend,
    searched,
)
from fairagent.retrieve.bm25.part import BM25Config
from fairagent.retrieve.dense import DenseManifest, VectorEngine
from fairagent.retrieve.light import LIGHT
from fairagent.retrieve.site import Site
from fairagent.retrieve.vectors import DenseConfig, dense_parts, folder
from fairagent.settings.parts import Engine, Part
from fairagent.types import FloatArray, Query, Ranking

MOST, MOST_LIGHT = 2.5, 0.5
"""What vectors, and light ones, weigh beside BM25 where it explains nothing of a query."""


class FusedRetriever:
    """`engines`, each with a weight: a document's score is the weighted sum of its scores in their lists, from 0 to 1.

    Of each engine the best `depth` documents count, the best one as 1, the last as 0 (where all are equal, as 1). A
    document that a list lacks gets nothing from it. Ties are ordered by id. An engine that fails is left out, and
    `failures` says so, unless all do. What else an engine may offer (texts, words, embeddings) comes from the first one
    that has it. Threads may share it.

    With `most` in the place of weights the first engine weighs 1, and the second `weight_of`, if the first has a
    `bound`: what no score for a query is above.
    """

    def __init__(
        self,
        engines: Sequence[Retriever],
        names: Sequence[str],
        weights: Sequence[float] = (),
        depth: int = 1000,
        most: float = 0.0,
    ) -> None:
        self.engines, self.names, self.depth, self.most = tuple(engines), tuple(names), depth, most
        self.weights = tuple(weights) or (1.0,) * len(self.engines)
        self._failed: dict[Query, dict[str, str]] = {}
        # The query of a search is often scored again afterwards.
        self._parts = lru_cache(maxsize=64)(self._searched)
        for protocol, methods in (
            (TextSource | PassageSource, ("document", "documents", "passages")),
            (Vocabulary, ("document_frequency",)),
            (VectorEngine, ("vectors", "query_vector")),
        ):
            if able := next((engine for engine in self.engines if isinstance(engine, protocol)), None):
                lend(self, able, *methods)

    def of(self, engines: Sequence[Retriever]) -> "FusedRetriever":
        """The fusion of other engines in the place of these."""
        return FusedRetriever(engines, self.names, self.weights, self.depth, self.most)

    def parts(self, query: Query) -> EngineScores:
        return self._parts(query)

    def failures(self, query: Query) -> Mapping[str, str]:
        return self._failed.get(query, {})

    def _searched(self, query: Query) -> EngineScores:
        lists: dict[int, Ranking] = {}
        errors: dict[str, FairAgentError] = {}
        for number, engine in enumerate(self.engines):
            try:
                lists[number] = searched(engine, query, self.depth)
            except (BackendUnavailable, DataError) as error:
                errors[self.names[number]] = error
        if not lists:
            raise next(iter(errors.values()))
        if errors:
            self._failed[query] = {name: str(error) for name, error in errors.items()}
        weights, bound = self.weights, getattr(self.engines[0], "bound", None)
        if self.most and bound:
            weights = 1.0, weight_of(lists[0].scores if 0 in lists else np.zeros(0), bound(query), self.most)
        ids = dict.fromkeys(id for ranking in lists.values() for id in ranking.ids)
        place = dict(zip(ids, range(len(ids)), strict=True))
        scores = np.zeros((len(place), len(self.engines)))
        for number, ranking in lists.items():
            scores[[place[id] for id in ranking.ids], number] = weights[number] * min_max(ranking.scores)
        return EngineScores(tuple(place), scores)

    @engine_time("fusion")
    def search(self, query: Query, n: int) -> Ranking:
        check_length(n)
        if self._failed.pop(query, None):
            # The engine that failed may be back by now.
            self._parts.cache_clear()
        parts = self.parts(query)
        total = parts.scores.sum(axis=1)
        order = np.lexsort((np.array(parts.ids, dtype=str), -total))[:n] if len(total) else np.zeros(0, dtype=np.intp)
        return Ranking(tuple(parts.ids[place] for place in order.tolist()), total[order])

    @engine_time("fusion")
    def score(self, query: Query, ids: Sequence[str]) -> FloatArray:
        """The fused scores of the given documents, (n,); 0 for one that no list has."""
        parts = self.parts(query)
        total = dict(zip(parts.ids, parts.scores.sum(axis=1).tolist(), strict=True))
        return np.array([total.get(id, 0.0) for id in ids])


def weight_of(scores: FloatArray, bound: float, most: float) -> float:
    """What vectors weigh beside BM25's 1, from 0 to `most`: most * (1 - e), the less the more BM25 explains.

    e is the mean of BM25's first five `scores` (n,), best first, over the `bound` of its scores for the query. Chosen
    leaving one collection out, among fixed weights and other features of queries: evaluations/retrieval/README.md.

    >>> weight_of(np.array([6.0, 4.0]), bound=10.0, most=2.0)
    1.0
    """
    explained = float(scores[:5].mean()) / bound if len(scores) and bound > 0 else 0.0
    return most * (1 - min(explained, 1.0))


class FusedConfig(Part):
    """Several engines as one."""

    kind: Literal["fused"] = "fused"
    engines: tuple[Engine, ...] = Field(default=(), validate_default=True)
    """The engines that are searched, two or more; empty: BM25 and vector search."""
    weights: tuple[float, ...] = ()
    """A weight above 0 for each engine, in their order: the larger, the more its scores count. Empty: all weigh 1, but
    vector search beside BM25 alone the more, query by query, the less of the query BM25 explains."""
    depth: int = Field(1000, ge=1)
    """How many documents of each engine's list are fused. More find documents that one engine ranks low, and take
    longer."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len(self.engines) == 1:
            raise ValueError("a fusion is of two engines or more")
        if self.weights and len(self.weights) != len(self.inner):
            raise ValueError(f"{len(self.weights)} weights for {len(self.inner)} engines")
        if any(weight <= 0 for weight in self.weights):
            raise ValueError("every weight is above 0")
        return self

    @property
    def inner(self) -> tuple[Part, ...]:
        """The engines, including the default ones where none is named."""
        return self.engines or (BM25Config(), DenseConfig())

    def __str__(self) -> str:
        return f"fused ({' + '.join(map(str, self.inner))})"

    def build(self, site: Site) -> FusedRetriever:
        engines, most = tuple(part.build(site) for part in self.inner), 0.0
        if not self.weights and len(engines) == 2 and isinstance(engines[1], VectorEngine):
            most = MOST_LIGHT if LIGHT in (part.named(site) for part in dense_parts(self)) else MOST
        return FusedRetriever(engines, tuple(map(str, self.inner)), self.weights, self.depth, most)


class AutoConfig(Part):
    """BM25 and vector search fused (`encoder` says with which vectors), where the vectors are made; else BM25."""

    kind: Literal["auto"] = "auto"

    def resolved(self, site: Site, preparing: bool = False) -> Part:
        """The engine that this comes to here; `preparing`: as if the vectors were made, where they can be."""
        encoder = site.settings.encoder
        vectors = folder(site, encoder)
        # Damaged vectors count as there: to leave them out would silently give another ranking.
        if not (DenseManifest.exists(vectors) or vectors.is_dir() or preparing):
            return BM25Config()
        return FusedConfig(engines=(BM25Config(), DenseConfig(encoder=encoder)))
