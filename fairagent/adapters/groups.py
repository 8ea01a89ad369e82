"""Groups of documents that belong to another library, and a fair order of what it has found."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.collection import Collection, Groups
from fairagent.collection.targets import Given
from fairagent.errors import UsageError
from fairagent.exposure import ExposureMeter
from fairagent.measures import parse_discount
from fairagent.rerank.base import pool_of
from fairagent.rerank.exposure import ExposureReranker
from fairagent.settings import Unknown, load_settings
from fairagent.types import Document, FloatArray, Query, Ranking

Shares = Mapping[str, Mapping[str, float]]
"""Dimension -> label -> share."""


def fair_order(
    collection: Collection,
    ranking: Ranking,
    n: int,
    target: Any,
    fairness: float,
    unknown: Unknown,
    query: str = "",
) -> tuple[Ranking, ExposureMeter]:
    """The `n` of the `ranking` that `ExposureReranker` chooses, and what measures both lists."""
    settings = load_settings(overrides={"n": n, "target": target, "unknown": unknown}, environ={})
    meter = ExposureMeter.make(collection, "", settings, ranking)
    reranker = ExposureReranker(fairness, discount=parse_discount(settings.discount))
    return reranker.rerank(pool_of(Query(query), ranking, meter, n)), meter


def groups_alone(groups: Collection | Groups, population: Shares) -> Collection:
    """A collection with these groups and world shares, which are their target too; a collection stays what it is."""
    if isinstance(groups, Collection):
        return groups
    own = {dimension: Given(shares=dict(shares)) for dimension, shares in population.items()} or None
    return Collection("", {}, {}, groups, population, (), _Nowhere(), target=own)


class GroupsByPlace:
    """Groups of documents as those of the places "0", "1" ... of a list, whose documents are `ids`.

    Two passages of a document are two places.
    """

    def __init__(self, groups: Groups, ids: Sequence[str]) -> None:
        self._groups, self._ids = groups, ids
        self.dimensions, self.oracle, self.predicted = groups.dimensions, groups.oracle, groups.predicted
        self.labels, self.shares, self.missing = groups.labels, groups.shares, groups.missing

    def memberships(self, dimension: str, ids: Sequence[str], topic: str = "") -> FloatArray:
        """Those of the documents at these places, (len(ids), 1 + g)."""
        return self._groups.memberships(dimension, [self._ids[int(place)] for place in ids], topic)

    def of_type(self, dimension: str, ids: Sequence[str], topic: str = "") -> NDArray[np.bool_] | None:
        """Which of the documents at these places can have a label, (len(ids),); None where nobody says."""
        return self._groups.of_type(dimension, [self._ids[int(place)] for place in ids], topic)


class _Nowhere:
    """The source of documents that cannot be read here."""

    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Document]:
        raise UsageError("these groups came without documents, so there is nothing to read or to index")

    def count(self) -> int:
        return 0

    def fingerprint(self) -> str:
        return ""
