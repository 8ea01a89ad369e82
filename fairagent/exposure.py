"""`ExposureMeter`: the group exposure of a ranking, and its divergence from the targets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np

from fairagent import measures
from fairagent.collection import Collection, Target
from fairagent.collection.target_choice import make_targets
from fairagent.collection.targets import ESTIMATE_FROM
from fairagent.errors import UsageError
from fairagent.measures import DIVERGENCES, Discount, Divergence, group_exposure, parse_discount
from fairagent.measures.gap import SMOOTHING
from fairagent.settings import Settings
from fairagent.types import Exposure, FloatArray, Group, Ranking

NOTHING_SHOWN = float(-np.log(SMOOTHING))
"""What counts as the divergence of a dimension in which nothing labeled is shown, beside those of the others."""


@dataclass(frozen=True, slots=True, eq=False)
class KnownGroups:
    """The groups of documents, `memberships` (n, 1 + g) a dimension, and the `place` of each document in them."""

    place: Mapping[str, int]
    memberships: tuple[FloatArray, ...]

    def rows(self, ids: Sequence[str]) -> tuple[FloatArray, ...] | None:
        """Those of these documents, copied; None where one is not among them."""
        try:
            places = np.array([self.place[id] for id in ids], dtype=np.intp)
        except KeyError:
            return None
        return tuple(rows[places] for rows in self.memberships)


@dataclass(frozen=True, slots=True, eq=False)
class ExposureMeter:
    """Measures rankings for one topic, at cut-off `n`, against one target a dimension.

    Documents without a label are left out of the shares and reported beside them; so are those with `synthetic_ids`,
    which are none of the collection's. `known` are the groups of documents that are measured often.
    """

    collection: Collection
    topic: str
    targets: tuple[Target, ...]
    n: int
    discount: Discount
    divergence: Divergence
    synthetic_ids: frozenset[str] = frozenset()
    importance: tuple[float, ...] = ()
    known: KnownGroups | None = None

    @classmethod
    def make(cls, collection: Collection, topic: str, settings: Settings, ranking: Ranking) -> ExposureMeter:
        """The meter that `settings` describe; `ranking` serves the targets that estimate.

        Where the collection has no groups and nothing in the settings looks at any, it measures nothing.
        Raises UsageError for a dimension or target that there is not, or a target that nobody chose; DataError for one
        that cannot be made.
        """
        dimensions = dimensions_of(collection, settings) if collection.groups.dimensions or settings.sees_groups else ()
        targets = make_targets(settings.target, dimensions, collection, topic, ranking.top(ESTIMATE_FROM))
        discount, divergence = parse_discount(settings.discount), DIVERGENCES[settings.divergence]
        return cls(collection, topic, targets, settings.n, discount, divergence)

    @property
    def oracle(self) -> bool:
        """Whether a target, or the groups of the documents themselves, were taken from the judgments."""
        judged = self.collection.groups.oracle
        return any(target.oracle or target.dimension in judged for target in self.targets)

    def memberships(self, ids: Sequence[str]) -> tuple[FloatArray, ...]:
        """The groups of these documents, (len(ids), 1 + g) a dimension."""
        if self.known and not self.synthetic_ids and (rows := self.known.rows(ids)) is not None:
            return rows
        return tuple(self._memberships(target, ids) for target in self.targets)

    def knowing(self, ids: Sequence[str]) -> ExposureMeter:
        """The meter that has looked up the groups of these documents, and takes them from there."""
        return replace(self, known=KnownGroups(dict(zip(ids, range(len(ids)), strict=True)), self.memberships(ids)))

    def _memberships(self, target: Target, ids: Sequence[str]) -> FloatArray:
        groups = self.collection.groups
        if not self.synthetic_ids:
            return groups.memberships(target.dimension, ids, self.topic)
        own = [id not in self.synthetic_ids for id in ids]
        rows = np.zeros((len(ids), 1 + len(target.labels)))
        rows[:, 0] = 1
        rows[own] = groups.memberships(target.dimension, list(compress(ids, own)), self.topic)
        return rows

    def measure(self, ranking: Ranking) -> tuple[Exposure, ...]:
        """The exposure of every group in the first `n` documents."""
        top = ranking.top(self.n)
        return self.weigh(top.ids, self.discount(len(top)))

    def weigh(self, ids: Sequence[str], weights: FloatArray) -> tuple[Exposure, ...]:
        """The exposure of every group in these documents, which count by `weights` (n,), 0 or more."""
        counts = self.importance or (1.0,) * len(self.targets)
        measured = zip(self.targets, self.memberships(ids), counts, strict=True)
        return tuple(
            replace(self._exposure(target, rows, weights), importance=count) for target, rows, count in measured
        )

    def _exposure(self, target: Target, memberships: FloatArray, weights: FloatArray) -> Exposure:
        shares = group_exposure(memberships, weights)
        known = shares[1:].sum()
        if known <= 0:
            # Nothing labeled is shown: as far from any target as can be, and any labeled document is a gain.
            return Exposure(
                target.dimension, target.labels, np.zeros(len(target.labels)), target.shares, float(shares[0]), math.inf
            )
        of_known = shares[1:] / known
        divergence = self.divergence(of_known, target.shares, SMOOTHING)
        return Exposure(target.dimension, target.labels, of_known, target.shares, float(shares[0]), divergence)


def dimensions_of(collection: Collection, settings: Settings) -> tuple[str, ...]:
    """The dimensions to be fair in: those of the settings, or all; UsageError where the collection has none."""
    if not collection.groups.dimensions:
        raise UsageError(f"collection {collection.name!r} has no groups, so there is nothing to be fair to")
    return settings.dimensions or collection.groups.dimensions


def total_gap(exposures: Sequence[Exposure]) -> float:
    """The sum of the dimensions' divergences, each by its importance; infinite where one shows no labeled document."""
    return sum(one.importance * one.divergence for one in exposures if one.importance)


def finite_gaps(exposures: Sequence[Exposure]) -> list[float]:
    """What each dimension counts for in the gap, finite also where it shows no labeled document."""
    return [one.importance * min(one.divergence, NOTHING_SHOWN) for one in exposures]


def finite_gap(exposures: Sequence[Exposure]) -> float:
    """`total_gap`, but a dimension in which nothing labeled is shown does not drown the others."""
    return sum(finite_gaps(exposures))


def most_underexposed(exposures: Sequence[Exposure]) -> Group | None:
    """The group of `measures.most_underexposed`, over all dimensions; None where no group lacks anything."""
    shares, targets = [one.shares for one in exposures], [one.target for one in exposures]
    if (place := measures.most_underexposed(shares, targets)) is None:
        return None
    exposure = exposures[place[0]]
    return Group(exposure.dimension, exposure.labels[place[1]])
