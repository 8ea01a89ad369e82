"""What rivals that learn, or that know one protected group, have in common."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fairagent.collection import Collection, load_collection
from fairagent.collection.exposure import ExposureMeter, dimensions_of
from fairagent.collection.records import listed
from fairagent.errors import DataError, UsageError
from fairagent.measures import Discount, group_exposure, known_part, most_underexposed
from fairagent.retrieve.base import as_query, searched
from fairagent.retrieve.site import Site
from fairagent.search.rerank.base import Pool, Reranker, pool_of, rerank_with
from fairagent.settings import Part
from fairagent.settings.faults import no_such
from fairagent.types import Ranking

FOLDS = 5


@dataclass(frozen=True, slots=True)
class CrossFitted:
    """One re-ranker a fold; a topic is re-ranked by the one that was fitted to the topics of the other folds."""

    rerankers: tuple[Reranker, ...]
    seed: int

    def rerank(self, pool: Pool) -> Ranking:
        """The ranking of the fold's re-ranker."""
        return rerank_with(self.rerankers[fold_of(pool.query.id, self.seed, len(self.rerankers))], pool)


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
        """The collection whose judged topics are learned from.

        DataError where its documents are others, or a topic of it is to be re-ranked.
        """
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
        """What `fit` makes of the training pools; DataError where there are too few."""
        pools = training_pools(replace(site, collection=self.taught_by(site)))
        if not self.train:
            return cross_fitted(pools, fit, site.seed)
        if not pools:
            raise DataError(f"{self.kind}: no topic of {self.train} has a relevant document and a candidate")
        return fit(pools)


def training_pools(site: Site) -> dict[str, Pool]:
    """Topic id -> its candidates, for every topic with a relevant document, a target and a candidate."""
    collection, settings, engine = site.collection, site.settings, site.engine
    pools: dict[str, Pool] = {}
    for topic in collection.topics.values():
        if not any(grade > 0 for grade in collection.qrels.get(topic.id, {}).values()):
            continue
        ranking = searched(engine, as_query(topic), settings.depth)
        try:
            meter = ExposureMeter.make(collection, topic.id, settings, ranking)
        except DataError:
            continue
        if len(ranking):
            pools[topic.id] = pool_of(as_query(topic), ranking, meter, settings.n)
    return pools


@dataclass(frozen=True, slots=True, order=True)
class ProtectedGroup:
    """A group by its place in a pool: the dimension, and the group among its known ones, both counted from 0.

    With the labels ("female", "male") of the first dimension, `ProtectedGroup(0, 1)` is male.
    """

    dimension: int
    group: int

    def share(self, pool: Pool) -> float:
        """The group's target share; UsageError where the pool has no such place."""
        self._check(pool)
        return float(pool.targets[self.dimension][self.group])

    def members(self, pool: Pool) -> NDArray[np.bool_]:
        """Which candidates belong to the group, with whatever share, (n,); UsageError as `share`."""
        self._check(pool)
        return pool.memberships[self.dimension][:, 1 + self.group] > 0

    def _check(self, pool: Pool) -> None:
        sizes = [len(target) for target in pool.targets]
        if not (0 <= self.dimension < len(sizes) and 0 <= self.group < sizes[self.dimension]):
            raise UsageError(f"{self} is in none of the pool's dimensions, which have {sizes} known groups")


def most_lacking(pool: Pool, discount: Discount) -> ProtectedGroup | None:
    """The group of `measures.most_underexposed` in the first `pool.n` candidates; None where none lacks anything."""
    top = pool.ranking.top(pool.n)
    weights = discount(len(top))
    shares = [known_part(group_exposure(rows[: len(top)], weights)) for rows in pool.memberships]
    place = most_underexposed(shares, pool.targets)
    return ProtectedGroup(*place) if place else None


class ProtectedPart(Part):
    """A re-ranker that knows one protected group."""

    of_groups: ClassVar[bool] = True
    group: dict[str, str] = Field(default={}, max_length=1)
    """The protected group, e.g. {gender: female}. Empty: the one that lacks most exposure among the first n candidates;
    for `deltr`, in most of the topics that it learns from."""

    def check(self, site: Site) -> None:
        self.place(site)

    def place(self, site: Site) -> ProtectedGroup | None:
        """The group's place in a pool, None where none is named; UsageError where there is no such group."""
        collection = site.collection
        for dimension, label in self.group.items():
            dimensions = dimensions_of(collection, site.settings)
            if dimension not in dimensions:
                raise UsageError(f"group: {dimension!r} is none of the system's dimensions ({', '.join(dimensions)})")
            labels = collection.groups.labels(dimension)
            if label not in labels:
                raise UsageError(f"{dimension!r} has {no_such('group', label, labels)}")
            return ProtectedGroup(dimensions.index(dimension), labels.index(label))
        return None
