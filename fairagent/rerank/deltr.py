"""DELTR: learning to rank that also pays for under-exposing a protected group (Zehlike & Castillo 2020)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from pydantic import Field

from fairagent.errors import DataError, UsageError
from fairagent.measures import parse_discount
from fairagent.rerank.base import Pool, ordered
from fairagent.rerank.deltr_loss import JudgedQuery, TrainingBatch, deltr_gradient
from fairagent.rerank.features import SCORE, Features
from fairagent.rerank.model_file import Array
from fairagent.rerank.protected import ProtectedGroup, ProtectedPart, most_lacking
from fairagent.rerank.training import CrossFitted, cross_fitted, training_pools
from fairagent.retrieve.bm25.part import engine_of
from fairagent.settings import Section, Settings
from fairagent.site import Site
from fairagent.types import FloatArray, Ranking


class DELTRModel(Section):
    """A fitted linear model; `save_model` and `load_model` of `fairagent.rerank.model_file` keep it as JSON."""

    gamma: float
    """What exposure counted for in training."""
    weights: Array
    """Of the protected attribute, then of the features, (1 + f,)."""
    mean: Array
    """Of each feature in training, (f,)."""
    deviation: Array
    """Standard deviation of each feature in training (1 where it was constant), (f,)."""

    def score(self, features: FloatArray, protected: FloatArray) -> FloatArray:
        """The scores (n,) of documents with `features` (n, f) and `protected` (n,); DataError for another f."""
        if features.ndim != 2 or features.shape[1] != len(self.mean):
            raise DataError(f"the DELTR model was fitted to {len(self.mean)} feature(s), not {features.shape[1:]}")
        return np.asarray(self.weights[0] * protected + (features - self.mean) / self.deviation @ self.weights[1:])


def fit_deltr(
    queries: Sequence[JudgedQuery],
    gamma: float,
    iterations: int = 3000,
    rate: float = 0.001,
    l2: float = 0.001,
    seed: int = 0,
) -> DELTRModel:
    """Fit by gradient descent on the sum of the queries' losses plus `l2` |weights|^2.

    `gamma` >= 0 is the price of under-exposure: 0 is plain list-wise learning. Exposures are chances of the order 1 / n
    and enter squared, so among n documents gamma matters from about n^2 on. Features are standardized one by one
    over all documents; the protected attribute stays 0 or 1. The weights start uniformly in [0, 0.01], drawn with
    `seed`. Raises UsageError for numbers out of range, DataError as `TrainingBatch.of` and where training diverges.
    """
    if gamma < 0 or iterations < 0 or rate <= 0 or l2 < 0:
        raise UsageError(
            f"DELTR needs gamma >= 0, iterations >= 0, rate > 0 and l2 >= 0, "
            f"not {gamma:g}, {iterations}, {rate:g} and {l2:g}"
        )
    batch = TrainingBatch.of(queries)
    # A view: the batch, which is this call's own, is standardized in place.
    features = batch.features[:, 1:]
    mean, deviation = features.mean(axis=0), features.std(axis=0)
    deviation[deviation == 0] = 1.0
    features -= mean
    features /= deviation
    weights = np.random.default_rng(seed).uniform(0, 0.01, 1 + len(mean))
    for _ in range(iterations):
        weights -= rate * (deltr_gradient(weights, batch, gamma) + 2 * l2 * weights)
    if not np.isfinite(weights).all():
        raise DataError(f"DELTR's training diverges with a learning rate of {rate:g}; take a smaller one")
    return DELTRModel(gamma=gamma, weights=weights, mean=mean, deviation=deviation)


@dataclass(frozen=True, slots=True)
class DELTRReranker:
    """By the score of a fitted model; `group` and `features` are those that it was fitted with."""

    model: DELTRModel = field(repr=False)
    group: ProtectedGroup
    features: Features = SCORE

    def rerank(self, pool: Pool) -> Ranking:
        """The best `pool.n` candidates, ties by id."""
        if not len(pool.ranking):
            return pool.ranking
        protected = self.group.members(pool).astype(np.float64)
        return ordered(pool.ranking.ids, self.model.score(self.features(pool), protected), pool.n)


def judged_query(
    pool: Pool, grades: Mapping[str, int], group: ProtectedGroup, features: Features = SCORE
) -> JudgedQuery:
    """A pool of candidates as a training query: `grades` are the topic's judgments, 0 for a document without one."""
    labels = np.array([grades.get(id, 0) for id in pool.ranking.ids], dtype=np.float64)
    return JudgedQuery(features(pool), labels, group.members(pool))


class DELTRConfig(ProtectedPart):
    """DELTR, fitted to the collection's judged topics: each topic is re-ranked by what the other folds taught."""

    kind: Literal["deltr"] = "deltr"
    gamma: float = Field(1.0, ge=0)
    """The price of under-exposing the protected group; 0 learns relevance alone. Of n candidates it matters from about
    n^2 on."""
    iterations: int = Field(3000, ge=1)
    """Steps of gradient descent. More fit the training topics more closely, and take longer."""

    def build(self, site: Site) -> CrossFitted:
        """The re-ranker; it is fitted now. DataError where there are too few judged topics."""
        named, settings = self.place(site), site.settings

        def fit(pools: Mapping[str, Pool]) -> DELTRReranker:
            group = named or _usually_lacking(pools.values(), settings)
            queries = [judged_query(pool, site.collection.qrels[topic], group) for topic, pool in pools.items()]
            return DELTRReranker(fit_deltr(queries, self.gamma, self.iterations, seed=site.seed), group)

        return cross_fitted(training_pools(site.collection, engine_of(site), settings), fit, site.seed)


def _usually_lacking(pools: Iterable[Pool], settings: Settings) -> ProtectedGroup:
    """The group that lacks most in most pools, on a tie the first; DataError where none ever lacks anything."""
    discount = parse_discount(settings.discount)
    found = Counter(place for pool in pools if (place := most_lacking(pool, discount)))
    if not found:
        raise DataError("DELTR: no group lacks exposure in any training topic; name one with `group: {...}`")
    return min(found, key=lambda place: (-found[place], place.dimension, place.group))
