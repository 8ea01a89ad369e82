"""The protected group of re-rankers that know only two: protected and not.

Training re-rankers without letting them see the topics that they are judged on.

What learned re-rankers see of a candidate.

Learned re-rankers on disk: JSON that can be read, checked and compared.

Adam: gradient steps scaled by running moments of the gradient (Kingma & Ba 2015).
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PlainSerializer, PlainValidator

from fairagent.extend import (
    Collection,
    DataError,
    Discount,
    EmbeddingSource,
    ExposureMeter,
    FloatArray,
    Part,
    Pool,
    Ranking,
    Reranker,
    Retriever,
    Section,
    Settings,
    SettingsError,
    Site,
    UsageError,
    as_query,
    dimensions_of,
    file_text,
    group_exposure,
    known_part,
    min_max,
    most_underexposed,
    parse_json,
    pool_of,
    validate,
    write_whole,
)

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


class Features(Protocol):
    """Describes candidates: any callable with this signature will do."""

    def __call__(self, pool: Pool) -> FloatArray:
        """One row of numbers a candidate, (n, f), the same f for every pool."""
        ...


@dataclass(frozen=True, slots=True)
class ScoreFeature:
    """One column: the score that found the candidate, min-max in its pool."""

    def __call__(self, pool: Pool) -> FloatArray:
        """The scores on [0, 1], (n, 1)."""
        return min_max(pool.ranking.scores)[:, None]


SCORE = ScoreFeature()


@dataclass(frozen=True, slots=True)
class EmbeddingFeatures:
    """The candidate's embedding (DLF: Sentence-BERT)."""

    source: EmbeddingSource

    def __call__(self, pool: Pool) -> FloatArray:
        """The embeddings, (n, d)."""
        return np.asarray(self.source.vectors(pool.ranking.ids), dtype=np.float64)


LARGEST = 1 << 26
"""Bytes of a file."""

S = TypeVar("S", bound=Section)


def _finite(values: Any) -> FloatArray:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("expected numbers") from None
    if not np.isfinite(array).all():
        raise ValueError("expected finite numbers")
    return array


Array = Annotated[FloatArray, PlainValidator(_finite), PlainSerializer(lambda array: array.tolist())]
"""An array of finite numbers as a field of a model."""


def save_model(model: Section, path: Path) -> None:
    """Write `model` as JSON; numbers keep every digit."""
    write_whole(path, model.model_dump_json(indent=1) + "\n")


def load_model(kind: type[S], path: Path) -> S:
    """Read what `save_model` wrote; DataError, naming the file and every fault, where that is no model of this kind."""
    try:
        values = parse_json(file_text(path, LARGEST))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read as JSON ({error})") from None
    if not isinstance(values, dict):
        raise DataError(f"{path}: expected a JSON object, found {type(values).__name__}")
    try:
        return validate(kind, values, str(path))
    except SettingsError as error:
        raise DataError(str(error)) from None


class Adam:
    """Updates `parameters` in place; `rate` is about how far one step moves a parameter."""

    def __init__(self, parameters: Sequence[FloatArray], rate: float) -> None:
        self._parameters = parameters
        self._rate = rate
        self._mean = [np.zeros_like(parameter) for parameter in parameters]
        self._square = [np.zeros_like(parameter) for parameter in parameters]
        self._steps = 0

    def step(self, gradients: Sequence[FloatArray]) -> None:
        """One step against `gradients`, with the moments' decay .9 and .999 and their bias corrected."""
        self._steps += 1
        mean_share, square_share = 1 - 0.9**self._steps, 1 - 0.999**self._steps
        for parameter, gradient, mean, square in zip(
            self._parameters, gradients, self._mean, self._square, strict=True
        ):
            mean += 0.1 * (gradient - mean)
            square += 0.001 * (gradient**2 - square)
            parameter -= self._rate * (mean / mean_share) / (np.sqrt(square / square_share) + 1e-8)


@dataclass(frozen=True, slots=True)
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
        """Raise UsageError where there is no such group."""
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
                raise UsageError(f"group: {label!r} is no group of {dimension!r}, which has: {', '.join(labels)}")
            return ProtectedGroup(dimensions.index(dimension), labels.index(label))
        return None
