"""`ExposureMeter`: the group exposure of a ranking, and its divergence from the targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from fairagent import measures
from fairagent.collection import Collection, Target
from fairagent.collection.label_errors import under_error
from fairagent.collection.target_choice import make_targets
from fairagent.collection.targets import ESTIMATE_FROM
from fairagent.errors import UsageError
from fairagent.measures import Discount, group_exposure, parse_discount
from fairagent.measures.objective import GapColumns, GapTarget, gap_rows
from fairagent.settings import Settings, Unknown
from fairagent.types import Exposure, FloatArray, Group, Ranking, exposure_rows
from fairagent.types.change import seen_change

Rows = tuple[tuple[FloatArray, ...], tuple[NDArray[np.bool_] | None, ...]]
"""Memberships (n, 1 + g) a dimension; and which documents (n,) can have a label, None where nothing declares it."""


class GroupCache:
    """The groups of documents that were looked up."""

    def __init__(self) -> None:
        self._place: dict[str, int] = {}
        self._rows: Rows = (), ()

    def rows(self, ids: Sequence[str]) -> Rows | None:
        """The rows of these documents; None where one was not looked up."""
        try:
            places = np.array([self._place[id] for id in ids], dtype=np.intp)
        except KeyError:
            return None
        memberships, types = self._rows
        return tuple(one[places] for one in memberships), tuple(one if one is None else one[places] for one in types)

    def add(self, ids: Sequence[str], meter: ExposureMeter) -> None:
        """Look up those of these documents that were not."""
        new = [id for id in ids if id not in self._place]
        rows, types = meter.looked_up(new)
        if self._place:
            rows = tuple(np.vstack(pair) for pair in zip(self._rows[0], rows, strict=True))
            pairs = zip(self._rows[1], types, strict=True)
            types = tuple(None if a is None or b is None else np.concatenate([a, b]) for a, b in pairs)
        self._place |= dict(zip(new, range(len(self._place), len(self._place) + len(new)), strict=True))
        self._rows = rows, types


@dataclass(frozen=True, slots=True, eq=False)
class UnlabeledTarget:
    """What documents without a label should get in a dimension: `shares` (u,), a column each (`ExposureMeter.columns`).

    `own` (u + g,) is the exposure of all groups in the engine's own list. Where they are ignored (`counts` is False),
    they have no part in the gap, and a re-ranker leaves them about where they are.
    """

    shares: FloatArray
    own: FloatArray
    counts: bool = True

    @classmethod
    def of(cls, own: FloatArray, groups: int, unknown: Unknown) -> UnlabeledTarget:
        """The engine's `own` shares, or a number in their place; documents that cannot have a label have theirs."""
        first = len(own) - groups
        shares = own[:first].copy()
        if not isinstance(unknown, str):
            shares[-1] = unknown * (1 - shares[:-1].sum())
        return cls(shares, own, unknown != "ignore")

    def by_type(self, shares: FloatArray, clustered: bool) -> UnlabeledTarget:
        """The target where the prior on document types has changed the `shares` (u,): within a type they stay."""
        if len(shares) == 1:
            return replace(self, shares=shares) if clustered else self
        none, before = float(shares[0]), float(self.shares[0])
        within = float(self.shares[1]) / (1 - before) if before < 1 else 0.0
        return replace(self, shares=np.array([none, (1 - none) * within]))


@dataclass(frozen=True, slots=True, eq=False)
class ExposureMeter:
    """Measures rankings for one topic, at cut-off `n`, against one target a dimension.

    Documents without a label are left out of the shares and reported separately; so are those with `synthetic_ids`,
    which are none of the collection's. `unlabeled` is what they should get (empty: they are ignored), `divergence` a
    name of `TERMS`: `fairagent.measures.objective` says how these make the gap. `cache` has the groups of documents
    that are measured often.
    """

    collection: Collection
    topic: str
    targets: tuple[Target, ...]
    n: int
    discount: Discount
    divergence: str
    synthetic_ids: frozenset[str] = frozenset()
    importance: tuple[float, ...] = ()
    cache: GroupCache | None = None
    unlabeled: tuple[UnlabeledTarget, ...] = ()

    @classmethod
    def make(cls, collection: Collection, topic: str, settings: Settings, ranking: Ranking) -> ExposureMeter:
        """The meter that `settings` describe; `ranking` serves the targets that estimate.

        So does what documents without a label should get: by default their share of its first `n`. Where the
        collection has no groups and nothing in the settings looks at any, it measures nothing.
        Raises UsageError for an unknown dimension or target, or a target that nobody chose; DataError for one that
        cannot be made.
        """
        dimensions = dimensions_of(collection, settings) if collection.groups.dimensions or settings.sees_groups else ()
        targets = make_targets(settings.target, dimensions, collection, topic, ranking.top(ESTIMATE_FROM))
        meter = cls(collection, topic, targets, settings.n, parse_discount(settings.discount), settings.divergence)
        if not len(ranking):
            return meter
        pairs = zip(meter._shares(ranking), targets, strict=True)
        due = tuple(UnlabeledTarget.of(shares, len(target.labels), settings.unknown) for shares, target in pairs)
        return replace(meter, unlabeled=due)

    def by_type(self, ranking: Ranking, clustered: frozenset[str] = frozenset()) -> ExposureMeter:
        """The meter in which documents that cannot have a label should get what they have in `ranking`.

        Where nothing declares which these are, but missing labels are `clustered`, that is all without a label.
        """
        unlabeled = (
            due.by_type(shares[: len(due.shares)], target.dimension in clustered)
            for due, shares, target in zip(self.unlabeled, self._shares(ranking), self.targets, strict=False)
        )
        return replace(self, unlabeled=tuple(unlabeled))

    def as_adjusted(self, before: ExposureMeter, after: ExposureMeter) -> ExposureMeter:
        """The meter with what a loop made of `before`: how much dimensions count, what types of documents get."""
        if len(after.unlabeled) != len(self.unlabeled) or len(before.unlabeled) != len(self.unlabeled):
            return replace(self, importance=after.importance)
        unlabeled = tuple(
            due.by_type(then.shares, bool((was.shares != then.shares).any()))
            for due, was, then in zip(self.unlabeled, before.unlabeled, after.unlabeled, strict=True)
        )
        return replace(self, importance=after.importance, unlabeled=unlabeled)

    @property
    def oracle(self) -> bool:
        """Whether a target, or the groups of the documents themselves, were taken from the judgments."""
        judged = self.collection.groups.oracle
        return any(target.oracle or target.dimension in judged for target in self.targets)

    def memberships(self, ids: Sequence[str]) -> tuple[FloatArray, ...]:
        """The groups of these documents, (len(ids), 1 + g) a dimension."""
        return self._groups(ids)[0]

    def columns(self, ids: Sequence[str]) -> tuple[FloatArray, ...]:
        """The groups of these documents, those without a label being a group, (len(ids), u + g) a dimension.

        u is 1; where the collection says which documents can have a label it is 2: those that cannot, those that can.
        """
        return tuple(
            rows if types is None else np.column_stack([rows[:, 0] * ~types, rows[:, 0] * types, rows[:, 1:]])
            for rows, types in zip(*self._groups(ids), strict=True)
        )

    def with_cached(self, ids: Sequence[str]) -> ExposureMeter:
        """The meter that has looked up the groups of these documents, and takes them from there."""
        cache = self.cache or GroupCache()
        cache.add(ids, self)
        return replace(self, cache=cache)

    def _groups(self, ids: Sequence[str]) -> Rows:
        cached = self.cache.rows(ids) if self.cache and not self.synthetic_ids else None
        return cached or self.looked_up(ids)

    def looked_up(self, ids: Sequence[str]) -> Rows:
        """From the collection; documents with `synthetic_ids` are unknown, and cannot have a label."""
        groups, rows, types = self.collection.groups, list[FloatArray](), list[NDArray[np.bool_] | None]()
        own = np.array([id not in self.synthetic_ids for id in ids], dtype=np.bool_)
        theirs = list(compress(ids, own))
        for target in self.targets:
            of_all = np.zeros((len(ids), 1 + len(target.labels)))
            of_all[:, 0] = 1
            of_all[own] = groups.memberships(target.dimension, theirs, self.topic)
            rows.append(of_all)
            of_type = groups.of_type(target.dimension, theirs, self.topic)
            if of_type is not None:
                typed = np.zeros(len(ids), dtype=np.bool_)
                typed[own] = of_type
                of_type = typed
            types.append(of_type)
        return tuple(rows), tuple(types)

    def measure(self, ranking: Ranking) -> tuple[Exposure, ...]:
        """The exposure of every group in the first `n` documents."""
        top = ranking.top(self.n)
        return self.weigh(top.ids, self.discount(len(top)))

    def measure_served(self, ranking: Ranking) -> tuple[Exposure, ...]:
        """`measure`, with what label errors make of AWRF in dimensions whose labels were made."""
        top, exposures = ranking.top(self.n), self.measure(ranking)
        made = self.collection.label_errors
        if not made or not len(top):
            return exposures
        weights = self.discount(len(top))
        return tuple(
            replace(one, likely=under_error(self.collection, self.topic, target, top.ids, weights))
            if target.dimension in made
            else one
            for one, target in zip(exposures, self.targets, strict=True)
        )

    def weigh(self, ids: Sequence[str], weights: FloatArray) -> tuple[Exposure, ...]:
        """The exposure of every group in these documents, which count by `weights` (n,), 0 or more."""
        return self.exposures(self.columns(ids), weights)

    def exposures(self, columns: Sequence[FloatArray], weights: FloatArray) -> tuple[Exposure, ...]:
        """As `weigh`, of documents whose groups `columns` has, (n, u + g) a dimension."""
        counts = self.importance or (1.0,) * len(self.targets)
        measured = zip(self.targets, columns, self.aims(), counts, strict=True)
        return tuple(
            replace(self._exposure(target, rows, aim, weights), importance=count)
            for target, rows, aim, count in measured
        )

    def aims(self) -> tuple[GapTarget, ...]:
        """What each dimension should get, by its importance."""
        counts = self.importance or (1.0,) * len(self.targets)
        if not self.unlabeled:
            return tuple(
                GapTarget(target.shares, np.zeros(1), counts=False, importance=count)
                for target, count in zip(self.targets, counts, strict=True)
            )
        return tuple(
            GapTarget(target.shares, due.shares, due.counts, count)
            for target, due, count in zip(self.targets, self.unlabeled, counts, strict=True)
        )

    def due(self) -> tuple[FloatArray, ...]:
        """What each column of `columns` should get, (u + g,) a dimension; nan for the unlabeled where they are ignored.

        So one target holds for whatever is measured: a ranking, a context, citations.
        """
        return tuple(
            np.concatenate(
                [aim.unlabeled if aim.counts else [np.nan], (1 - aim.unlabeled.sum() * aim.counts) * aim.target]
            )
            for aim in self.aims()
        )

    def _shares(self, ranking: Ranking) -> list[FloatArray]:
        """The exposure of all groups, those without a label included, in the first `n` documents: (u + g,) each."""
        top = ranking.top(self.n)
        return [group_exposure(rows, self.discount(len(top))) for rows in self.columns(top.ids)]

    def _exposure(self, target: Target, rows: FloatArray, aim: GapTarget, weights: FloatArray) -> Exposure:
        """What documents with these `rows` (n, u + g) give the groups."""
        first = rows.shape[1] - len(target.labels)
        shares = group_exposure(rows, weights)
        if aim.unlabeled.shape != (first,):
            aim = replace(aim, unlabeled=np.zeros(first))
        unknown, known = float(shares[:first].sum()), float(shares[first:].sum())
        of_known = shares[first:] / known if known > 0 else np.zeros(len(target.labels))
        gap = GapColumns([replace(aim, importance=1.0)], self.divergence)
        divergence = float(gap.gaps(gap_rows((shares[None, first:], shares[None, :first]))[0]))
        due = float(aim.unlabeled.sum()) if aim.counts else None
        return Exposure(
            target.dimension, target.labels, of_known, target.shares, unknown, divergence, unknown_target=due
        )


def dimensions_of(collection: Collection, settings: Settings) -> tuple[str, ...]:
    """The dimensions to be fair in: those of the settings, or all; UsageError where the collection has none."""
    if not collection.groups.dimensions:
        raise UsageError(f"collection {collection.name!r} has no groups, so there is nothing to be fair to")
    return settings.dimensions or collection.groups.dimensions


def total_gap(exposures: Sequence[Exposure]) -> float:
    """The gap of a list: the sum of its dimensions' divergences, each by its importance."""
    return sum(one.importance * one.divergence for one in exposures)


def worse_dimensions(before: Sequence[Exposure], after: Sequence[Exposure]) -> tuple[str, ...]:
    """The dimensions that count and are less fair in `after` (`seen_change`)."""
    return tuple(
        now.dimension
        for was, now in zip(before, after, strict=True)
        if now.importance
        and seen_change(exposure_rows(was), exposure_rows(now), now.divergence - was.divergence) == "less fair"
    )


def most_underexposed(exposures: Sequence[Exposure]) -> Group | None:
    """The group of `measures.most_underexposed`, over all dimensions; None where no group lacks anything."""
    shares, targets = [one.shares for one in exposures], [one.target for one in exposures]
    if (place := measures.most_underexposed(shares, targets)) is None:
        return None
    exposure = exposures[place[0]]
    return Group(exposure.dimension, exposure.labels[place[1]])
