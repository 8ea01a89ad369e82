"""DELTR: list-wise learning to rank with a price on under-exposing a protected group (Zehlike & Castillo 2020).

For a query with features X, labels y and scores s = X w, with p = softmax(s) (the chance of being ranked first):

    L = - sum softmax(y) ln p / ln N  +  gamma max(0, E_other - E_protected)^2

where E_g is the mean of p / ln 2 over the documents of g, and N the number of documents of ALL queries. Only
under-exposure of the protected group costs; a query in which either group has no document has no such cost.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fairagent.errors import DataError, UsageError
from fairagent.measures import min_max, parse_discount
from fairagent.papers.rivals.training import (
    LearningPart,
    ProtectedGroup,
    ProtectedPart,
    most_lacking,
)
from fairagent.retrieve.site import Site
from fairagent.search.rerank.base import Pool, Reranker, ordered
from fairagent.types import FloatArray, Ranking


@dataclass(frozen=True, slots=True, eq=False)
class JudgedQuery:
    """The training documents of one query: `features` (n, f), relevance `labels` (n,), `protected` (n,)."""

    features: FloatArray
    labels: FloatArray
    protected: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class TrainingBatch:
    """All queries in a row, so that a step costs the same few array operations however many there are.

    `features` (N, 1 + f) with the protected attribute (0 or 1) in column 0, `ideal` (N,) the softmax of the labels,
    `contrast` (N,) what a document's p adds to E_other - E_protected; `query` (N,) is the query of each document and
    `starts` (q,) the first document of each.
    """

    features: FloatArray
    ideal: FloatArray
    contrast: FloatArray
    query: NDArray[np.intp]
    starts: NDArray[np.intp]

    @classmethod
    def of(cls, queries: Sequence[JudgedQuery]) -> TrainingBatch:
        """Join the queries; DataError where shapes do not fit, a number is not finite or there are < 2 documents."""
        for number, one in enumerate(queries):
            n, shapes = len(one.labels), (one.features.shape, one.labels.shape, one.protected.shape)
            if not n or shapes != ((n, *queries[0].features.shape[1:2]), (n,), (n,)):
                expected = "(n, f), (n,) and (n,) with n >= 1 and one f for all queries"
                raise DataError(f"training query {number}: expected shapes {expected}, not {shapes}")
            if not (np.isfinite(one.features).all() and np.isfinite(one.labels).all()):
                raise DataError(f"training query {number}: a feature or label is no finite number")
        sizes = np.array([len(query.labels) for query in queries], dtype=np.intp)
        if sizes.sum() < 2:
            raise DataError(f"DELTR learns from 2 documents or more, not {sizes.sum()}")
        starts = np.cumsum(sizes) - sizes
        of = np.repeat(np.arange(len(sizes)), sizes)
        protected = np.concatenate([query.protected for query in queries]).astype(np.float64)
        inside = np.add.reduceat(protected, starts)
        outside = sizes - inside
        both = (inside > 0) & (outside > 0)
        per_inside = np.where(both, -1 / np.maximum(inside, 1), 0) / math.log(2)
        per_outside = np.where(both, 1 / np.maximum(outside, 1), 0) / math.log(2)
        contrast = np.where(protected > 0, per_inside[of], per_outside[of])
        features = np.column_stack([protected, np.concatenate([query.features for query in queries])])
        ideal = top_one(np.concatenate([query.labels for query in queries]).astype(np.float64), of, starts)
        return cls(features, ideal, contrast, of, starts)


def deltr_loss(weights: FloatArray, batch: TrainingBatch, gamma: float) -> FloatArray:
    """The loss L of each query, (q,), at `weights` (1 + f,)."""
    log_p = _log_softmax(batch.features @ weights, batch.query, batch.starts)
    listwise = -np.add.reduceat(batch.ideal * log_p, batch.starts) / math.log(len(log_p))
    under = np.maximum(exposure_gap(np.exp(log_p), batch), 0)
    return np.asarray(listwise + gamma * under**2)


def deltr_gradient(
    weights: FloatArray, batch: TrainingBatch, gamma: float, per_query: FloatArray | None = None
) -> FloatArray:
    """The gradient of the summed loss in `weights`, (1 + f,); each query counts `per_query` (q,) times (once if None).

    >>> query = JudgedQuery(np.array([[0.2], [0.9]]), np.array([0.0, 1.0]), np.array([True, False]))
    >>> deltr_gradient(np.zeros(2), TrainingBatch.of([query]), gamma=0).round(4).tolist()
    [0.3333, -0.2333]
    """
    p = top_one(batch.features @ weights, batch.query, batch.starts)
    # sum softmax(y) = 1, so the list-wise part is (p - softmax(y)) / ln N.
    of_scores = (p - batch.ideal) / math.log(len(p))
    if gamma:
        gap = exposure_gap(p, batch)
        under = np.maximum(gap, 0)
        of_scores += gamma * 2 * under[batch.query] * p * (batch.contrast - gap[batch.query])
    if per_query is not None:
        of_scores *= per_query[batch.query]
    return np.asarray(of_scores @ batch.features)


def exposure_gap(p: FloatArray, batch: TrainingBatch) -> FloatArray:
    """E_other - E_protected of each query, (q,): positive where the protected group is under-exposed."""
    return np.add.reduceat(p * batch.contrast, batch.starts)


def top_one(scores: FloatArray, query: NDArray[np.intp], starts: NDArray[np.intp]) -> FloatArray:
    """The softmax of `scores` (N,) within each query, (N,)."""
    return np.asarray(np.exp(_log_softmax(scores, query, starts)))


def _log_softmax(scores: FloatArray, query: NDArray[np.intp], starts: NDArray[np.intp]) -> FloatArray:
    shifted = scores - np.maximum.reduceat(scores, starts)[query]
    return np.asarray(shifted - np.log(np.add.reduceat(np.exp(shifted), starts))[query])


@dataclass(frozen=True, slots=True, eq=False)
class DELTRModel:
    """A fitted linear model: `weights` (1 + f,) of the protected attribute, then of the features.

    `mean` and `deviation` (f,) are those of each feature in training (1 where it was constant).
    """

    weights: FloatArray
    mean: FloatArray
    deviation: FloatArray

    def score(self, features: FloatArray, protected: FloatArray) -> FloatArray:
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

    `gamma` >= 0 is the price of under-exposure: 0 is plain list-wise learning. Features are standardized one by one
    over all documents; the protected attribute stays 0 or 1. The weights start uniformly in [0, 0.01], drawn with
    `seed`. Raises UsageError for numbers out of range, DataError as `TrainingBatch.of` and where training diverges.
    """
    if gamma < 0 or iterations < 0 or rate <= 0 or l2 < 0:
        given = f"not {gamma:g}, {iterations}, {rate:g} and {l2:g}"
        raise UsageError(f"DELTR needs gamma >= 0, iterations >= 0, rate > 0 and l2 >= 0, {given}")
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
    return DELTRModel(weights, mean, deviation)


def judged_query(pool: Pool, grades: Mapping[str, int], group: ProtectedGroup) -> JudgedQuery:
    """A pool as a training query: its only feature is the engine's score, min-max in the pool."""
    labels = np.array([grades.get(id, 0) for id in pool.ranking.ids], dtype=np.float64)
    return JudgedQuery(min_max(pool.ranking.scores)[:, None], labels, group.members(pool))


@dataclass(frozen=True, slots=True)
class DELTRReranker:
    """By the score of a fitted model; `group` is the one that it was fitted with."""

    model: DELTRModel
    group: ProtectedGroup

    def rerank(self, pool: Pool) -> Ranking:
        if not len(pool.ranking):
            return pool.ranking
        documents = judged_query(pool, {}, self.group)
        scores = self.model.score(documents.features, documents.protected.astype(np.float64))
        return ordered(pool.ranking.ids, scores, pool.n)


class DELTRConfig(LearningPart, ProtectedPart):
    """DELTR, fitted to judged topics: those of `train`, or in five folds the collection's own."""

    kind: Literal["deltr"] = "deltr"
    gamma: float = Field(1.0, ge=0)
    """The price of under-exposing the protected group; 0 learns relevance alone. Of n candidates it matters from about
    n^2 on."""
    iterations: int = Field(3000, ge=1)
    """Steps of gradient descent. More fit the training topics more closely, and take longer."""

    def build(self, site: Site) -> Reranker:
        named, discount, qrels = self.place(site), parse_discount(site.settings.discount), self.taught_by(site).qrels

        def fit(pools: Mapping[str, Pool]) -> DELTRReranker:
            group = named
            if group is None:
                # The group that lacks most in most pools, on a tie the first.
                lacking = Counter(place for pool in pools.values() if (place := most_lacking(pool, discount)))
                if not lacking:
                    wanted = "name one with `group: {...}`"
                    raise DataError(f"DELTR: no group lacks exposure in any training topic; {wanted}")
                group = min(lacking, key=lambda place: (-lacking[place], place))
            queries = [judged_query(pool, qrels[topic], group) for topic, pool in pools.items()]
            return DELTRReranker(fit_deltr(queries, self.gamma, self.iterations, seed=site.seed), group)

        return self.fitted(site, fit)
