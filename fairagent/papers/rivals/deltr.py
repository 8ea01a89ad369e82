"""DELTR: list-wise learning to rank with a price on under-exposing a protected group (Zehlike & Castillo 2020).

For a query with features X, labels y and scores s = X w, with p = softmax(s) (the chance of being ranked first):

    L = - sum softmax(y) ln p / ln N  +  gamma max(0, E_other - E_protected)^2

where E_g is the mean of p / ln 2 over the documents of g, and N the number of documents of ALL queries. Only
under-exposure of the protected group costs; a query in which either group has no document has no such cost.
Before it stands what rivals that learn have in common: topics to learn from, and five folds where they are the same.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fairagent.collection import Collection, load_collection
from fairagent.collection.exposure import ExposureMeter
from fairagent.collection.records import listed
from fairagent.errors import DataError
from fairagent.measures import min_max, parse_discount
from fairagent.papers.rivals.fa_star_ir import ProtectedGroup, ProtectedPart, most_lacking
from fairagent.retrieve.base import as_query, searched
from fairagent.retrieve.site import Site
from fairagent.search.rerank.base import Pool, Reranker, ordered, pool_of, rerank_with
from fairagent.settings import Part
from fairagent.types import FloatArray, Ranking

FOLDS = 5


@dataclass(frozen=True, slots=True)
class CrossFitted:
    """One re-ranker a fold; a topic is re-ranked by the one that was fitted to the topics of the other folds."""

    rerankers: tuple[Reranker, ...]
    seed: int

    def rerank(self, pool: Pool) -> Ranking:
        return rerank_with(self.rerankers[fold_of(pool.query.id, self.seed)], pool)


def fold_of(topic: str, seed: int) -> int:
    """The fold of a topic, from 0: it depends on `seed` and the topic's id alone, not on what else is evaluated."""
    return hashlib.sha256(f"{seed}\n{topic}".encode("utf-8", "surrogatepass")).digest()[0] % FOLDS


def cross_fitted(pools: Mapping[str, Pool], fit: Callable[[Mapping[str, Pool]], Reranker], seed: int) -> CrossFitted:
    """`fit` called once a fold, with the pools of the topics outside of it; DataError where these are none."""
    rerankers = []
    for fold in range(FOLDS):
        others = {topic: pool for topic, pool in pools.items() if fold_of(topic, seed) != fold}
        if not others:
            raise DataError(f"{len(pools)} topics are too few to learn from some and to be judged on the others")
        rerankers.append(fit(others))
    return CrossFitted(tuple(rerankers), seed)


class LearningPart(Part):
    """A re-ranker that is fitted to judged topics: other ones (`train`), or in five folds the collection's own."""

    train: str = ""
    """The settings file of a collection of the same documents whose judged topics are learned from, e.g. the track's
    training topics; a run remembers this file, not those it names. Empty: the collection's own topics, each re-ranked
    by what the other folds taught."""

    @property
    def files(self) -> Mapping[str, Path]:
        return {"train": Path(self.train)} if self.train else {}

    def relative_to(self, folder: Path) -> Self:
        return self.model_copy(update={"train": str((folder / self.train).absolute())}) if self.train else self

    def check(self, site: Site) -> None:
        super().check(site)
        self.taught_by(site)

    def taught_by(self, site: Site) -> Collection:
        """The collection learned from; DataError where its documents are others, or its topics are to be re-ranked."""
        if not self.train:
            return site.collection
        other: Collection = site.memo.get(("collection", self.train), lambda: load_collection(self.train))
        if other.fingerprint() != site.collection.fingerprint():
            raise DataError(f"{self.kind}: {self.train} has other documents than {site.collection.name!r}")
        if both := sorted(other.topics.keys() & site.collection.topics.keys()):
            raise DataError(
                f"{self.kind}: topics of {self.train} would be re-ranked by what they taught: {listed(both)}"
            )
        return other

    def fitted(self, site: Site, fit: Callable[[Mapping[str, Pool]], Reranker]) -> Reranker:
        """What `fit` makes of every topic with a relevant document, a target and a candidate; DataError for too few."""
        collection, settings = self.taught_by(site), site.settings
        pools: dict[str, Pool] = {}
        for topic in collection.topics.values():
            if not any(grade > 0 for grade in collection.qrels.get(topic.id, {}).values()):
                continue
            ranking = searched(site.engine, as_query(topic), settings.depth)
            try:
                meter = ExposureMeter.make(collection, topic.id, settings, ranking)
            except DataError:
                continue
            if len(ranking):
                pools[topic.id] = pool_of(as_query(topic), ranking, meter, settings.n)
        if not self.train:
            return cross_fitted(pools, fit, site.seed)
        if not pools:
            raise DataError(f"{self.kind}: no topic of {self.train} has a relevant document and a candidate")
        return fit(pools)


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
        """Join the queries; DataError where a number is not finite or there are fewer than 2 documents."""
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
        labels = np.concatenate([query.labels for query in queries]).astype(np.float64)
        if not (np.isfinite(features).all() and np.isfinite(labels).all()):
            raise DataError("DELTR: a feature or label is no finite number")
        return cls(features, top_one(labels, of, starts), contrast, of, starts)


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
    `seed`. Raises DataError as `TrainingBatch.of`, and where training diverges.
    """
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
