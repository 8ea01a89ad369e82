"""Several engines as one: their lists on a common scale, added up.

The default engine: BM25 and vector search fused, where the vectors are made, else BM25 alone.
"""

from collections.abc import Callable, Mapping, Sequence
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
from fairagent.retrieve.dense import VectorEngine
from fairagent.retrieve.encoded import DenseManifest
from fairagent.retrieve.encoders import Embeddings
from fairagent.retrieve.light.encoder import LIGHT
from fairagent.retrieve.site import Site
from fairagent.retrieve.vectors import DenseConfig, folder
from fairagent.settings.parts import Engine, Part, Progress
from fairagent.types import Document, FloatArray, Query, Ranking

Scale = Literal["min-max", "z", "rrf"]
RRF = 60
"""The constant of reciprocal rank fusion (Cormack et al. 2009)."""
BESIDES = {
    TextSource | PassageSource: ("document", "documents", "passages"),
    Vocabulary: ("document_frequency",),
    VectorEngine: ("vectors", "query_vector"),
}
"""What an engine may offer beside lists and scores -> by which methods; the first engine that does so lends them."""


class FusedRetriever:
    """`engines`, each with a weight: a document's score is the weighted sum of its scaled scores in their lists.

    Of each engine the best `depth` documents count. `scale` puts a list on a common scale: min-max on [0, 1]; z, in
    standard deviations above its lowest; rrf, 1 / (60 + rank). A document that a list lacks gets nothing from it. Ties
    are ordered by id. An engine that fails is left out, and `failures` says so, unless all do. What else an engine may
    offer (texts, words, embeddings) comes from the first one that has it. Threads may share it.
    """

    document: Callable[[str], Document]
    document_frequency: Callable[[str], int]
    vectors: Callable[[Sequence[str]], Embeddings]

    def __init__(
        self,
        engines: Sequence[Retriever],
        names: Sequence[str],
        weights: Sequence[float] = (),
        scale: Scale = "min-max",
        depth: int = 1000,
    ) -> None:
        self.engines, self.names, self.scale, self.depth = tuple(engines), tuple(names), scale, depth
        self.weights = tuple(weights) or (1.0,) * len(self.engines)
        self._failed: dict[Query, dict[str, str]] = {}
        # The query of a search is often scored again afterwards.
        self._parts = lru_cache(maxsize=64)(self._searched)
        for protocol, methods in BESIDES.items():
            if able := next((engine for engine in self.engines if isinstance(engine, protocol)), None):
                lend(self, able, *methods)

    def with_each(self, change: Callable[[Retriever], Retriever]) -> "FusedRetriever":
        """The fusion of the engines after a change of each."""
        return FusedRetriever(list(map(change, self.engines)), self.names, self.weights, self.scale, self.depth)

    def parts(self, query: Query) -> EngineScores:
        """What each engine gives the documents in any of their lists, weights included."""
        return self._parts(query)

    def failures(self, query: Query) -> Mapping[str, str]:
        """Name of each engine that failed at the last search for `query` -> its error."""
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
        ids = dict.fromkeys(id for ranking in lists.values() for id in ranking.ids)
        place = dict(zip(ids, range(len(ids)), strict=True))
        scores = np.zeros((len(place), len(self.engines)))
        for number, ranking in lists.items():
            rows = [place[id] for id in ranking.ids]
            scores[rows, number] = self.weights[number] * scaled(ranking.scores, self.scale)
        return EngineScores(tuple(place), scores)

    @engine_time("fusion")
    def search(self, query: Query, n: int) -> Ranking:
        """The best `n` documents by the sum of their parts."""
        check_length(n)
        if self._failed.pop(query, None):
            # The engine may be there again.
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


def scaled(scores: FloatArray, scale: Scale) -> FloatArray:
    """The scores (n,) of a list, best first, on a common scale.

    >>> scaled(np.array([5.0, 3.0, 1.0]), "min-max").tolist()
    [1.0, 0.5, 0.0]
    >>> scaled(np.array([5.0, 3.0]), "rrf").round(4).tolist()
    [0.0164, 0.0161]
    """
    if scale == "min-max":
        return min_max(scores)
    if scale == "rrf":
        return 1 / (RRF + np.arange(1, len(scores) + 1, dtype=np.float64))
    deviation = scores.std() if len(scores) else 0.0
    above = (scores - scores.mean()) / deviation if deviation > 0 else np.zeros(len(scores))
    # The lowest is what a document that the list lacks has: 0.
    return np.asarray(above - above.min() if len(above) else above)


class FusedConfig(Part):
    """Several engines as one."""

    kind: Literal["fused"] = "fused"
    engines: tuple[Engine, ...] = Field(default=(), validate_default=True)
    """The engines that are searched, two or more; empty: BM25 and vector search."""
    weights: tuple[float, ...] = ()
    """A weight above 0 for each engine, in their order: the larger, the more its scores count. Empty: all weigh 1."""
    scale: Scale = "min-max"
    """How the scores of different engines are made comparable: min-max (0 to 1), z (standard deviations above the
    lowest), or rrf (1 / (60 + rank), whatever the scores)."""
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
        """The engines, those that are meant where none is named included."""
        return self.engines or (BM25Config(), DenseConfig())

    def __str__(self) -> str:
        return f"fused ({' + '.join(map(str, self.inner))})"

    def build(self, site: Site) -> FusedRetriever:
        """The engine."""
        engines = tuple(part.build(site) for part in self.inner)
        return FusedRetriever(engines, tuple(map(str, self.inner)), self.weights, self.scale, self.depth)


LIGHT_WEIGHT = 0.5
"""The weight of the light vectors beside BM25: chosen over public topics (evaluations/controller/constants.py)."""


class AutoConfig(Part):
    """BM25 and vector search fused (`encoder` says with which vectors), where the vectors are made; else BM25."""

    kind: Literal["auto"] = "auto"

    def resolved(self, site: Site, preparing: bool = False) -> Part:
        """What it comes to here; `preparing`: the vectors will be made if they can be."""
        encoder = site.settings.encoder
        vectors = folder(site, encoder)
        # Damaged ones are there too: to go without them would be another ranking, silently.
        if not (DenseManifest.exists(vectors) or vectors.is_dir() or preparing):
            return BM25Config()
        weights = (1.0, LIGHT_WEIGHT) if encoder == LIGHT else ()
        return FusedConfig(engines=(BM25Config(), DenseConfig(encoder=encoder)), weights=weights)

    def check(self, site: Site) -> None:
        """As the engine that it comes to."""
        self.resolved(site).check(site)

    def prepare(self, site: Site, progress: Progress) -> None:
        """As the engine that it comes to once all is made."""
        self.resolved(site, preparing=True).prepare(site, progress)

    def build(self, site: Site) -> object:
        """The engine that it comes to."""
        return self.resolved(site).build(site)
