"""Training re-rankers without letting them see the topics that they are judged on."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fairagent.collection import Collection
from fairagent.errors import DataError
from fairagent.exposure import ExposureMeter
from fairagent.query import as_query
from fairagent.rerank.base import Pool, Reranker, pool_of
from fairagent.retrieve.base import Retriever
from fairagent.settings import Settings
from fairagent.types import Ranking

FOLDS = 5


@dataclass(frozen=True, slots=True)
class CrossFitted:
    """One re-ranker a fold; a topic is re-ranked by the one that was fitted to the topics of the other folds."""

    rerankers: tuple[Reranker, ...]
    seed: int

    def rerank(self, pool: Pool) -> Ranking:
        """The ranking of the fold's re-ranker."""
        return self.rerankers[fold_of(pool.query.id, self.seed, len(self.rerankers))].rerank(pool)


def fold_of(topic: str, seed: int, folds: int = FOLDS) -> int:
    """The fold of a topic, from 0: it depends on `seed` and the topic's id alone, not on what else is evaluated."""
    return hashlib.sha256(f"{seed}\n{topic}".encode("utf-8", "surrogatepass")).digest()[0] % folds


def cross_fitted(pools: Mapping[str, Pool], fit: Callable[[Mapping[str, Pool]], Reranker], seed: int) -> CrossFitted:
    """`fit` called once a fold, with the pools of the topics outside of it; DataError where these are none."""
    rerankers = []
    for fold in range(FOLDS):
        others = {topic: pool for topic, pool in pools.items() if fold_of(topic, seed) != fold}
        if not others:
            raise DataError(f"{len(pools)} topics are too few to learn from some and to be judged on the others")
        rerankers.append(fit(others))
    return CrossFitted(tuple(rerankers), seed)


def training_pools(collection: Collection, retriever: Retriever, settings: Settings) -> dict[str, Pool]:
    """Topic id -> its candidates, for every topic with a relevant document that finds something.

    A topic whose target cannot be made (`target: qrels` without a labeled relevant document) teaches nothing.
    """
    pools: dict[str, Pool] = {}
    for topic in collection.topics.values():
        if not any(grade > 0 for grade in collection.qrels.get(topic.id, {}).values()):
            continue
        ranking = retriever.search(as_query(topic), settings.depth)
        try:
            meter = ExposureMeter.make(collection, topic.id, settings, ranking)
        except DataError:
            continue
        if len(ranking):
            pools[topic.id] = pool_of(as_query(topic), ranking, meter, settings.n)
    return pools
