"""`ExposureMeter`: the group exposure of a ranking, and its divergence from the targets."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Self

import numpy as np
from numpy.typing import NDArray

from fairagent import measures
from fairagent.collection import Collection, Target
from fairagent.collection.labels import under_error
from fairagent.collection.targets import ESTIMATE_FROM, make_targets
from fairagent.errors import UsageError
from fairagent.measures import Discount, group_exposure, parse_discount
from fairagent.measures.objective import GapColumns, GapTarget, gap_rows
from fairagent.settings import Settings
from fairagent.types import Exposure, FloatArray, Group, Ranking, exposure_rows
from fairagent.types.change import seen_change

Rows = tuple[tuple[FloatArray, ...], tuple[NDArray[np.bool_] | None, ...]]
"""Memberships (n, 1 + g) a dimension; and which documents (n,) can have a label, None where nothing declares it."""


@dataclass(frozen=True, slots=True, eq=False)
class UnlabeledTarget:
    """What documents without a label should get in a dimension: `shares` (u,), a column each (`ExposureMeter.columns`).

    `own` (u + g,) is the exposure of all groups in the engine's own list. Where they are ignored (`counts` is False),
    they have no part in the gap, and a re-ranker leaves them about where they are.
    """

    shares: FloatArray
    own: FloatArray
    counts: bool = True

    def by_type(self, shares: FloatArray, clustered: bool) -> Self:
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
    that are measured often: a row, and whether there can be a label, for each dimension.
    """

    collection: Collection
    topic: str
    targets: tuple[Target, ...]
    n: int
    discount: Discount
    divergence: str
    synthetic_ids: frozenset[str] = frozenset()
    importance: tuple[float, ...] = ()
    cache: dict[str, tuple[tuple[FloatArray, bool | None], ...]] = field(default_factory=dict)
    unlabeled: tuple[UnlabeledTarget, ...] = ()

    @classmethod
    def make(cls, collection: Collection, topic: str, settings: Settings, ranking: Ranking) -> Self:
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
        unlabeled, unknown = list[UnlabeledTarget](), settings.unknown
        for own, target in zip(meter._shares(ranking), targets, strict=True):
            shares = own[: len(own) - len(target.labels)].copy()
            if not isinstance(unknown, str):
                # Documents that cannot have a label keep the engine's share.
                shares[-1] = unknown * (1 - shares[:-1].sum())
            unlabeled.append(UnlabeledTarget(shares, own, unknown != "ignore"))
        return replace(meter, unlabeled=tuple(unlabeled))

    def by_type(self, ranking: Ranking, clustered: frozenset[str] = frozenset()) -> Self:
        """The meter in which documents that cannot have a label should get what they have in `ranking`.

        Where nothing declares which these are, but missing labels are `clustered`, that is all without a label.
        """
        unlabeled = (
            due.by_type(shares[: len(due.shares)], target.dimension in clustered)
            for due, shares, target in zip(self.unlabeled, self._shares(ranking), self.targets, strict=False)
        )
        return replace(self, unlabeled=tuple(unlabeled))

    def as_adjusted(self, before: Self, after: Self) -> Self:
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

    def with_cached(self, ids: Sequence[str]) -> Self:
        """The meter, which has looked up the groups of these documents now, and takes them from there."""
        new = [id for id in ids if id not in self.cache]
        rows, types = self._looked_up(new)
        for place, id in enumerate(new):
            pairs = zip(rows, types, strict=True)
            self.cache[id] = tuple((of[place], None if typed is None else bool(typed[place])) for of, typed in pairs)
        return self

    def _groups(self, ids: Sequence[str]) -> Rows:
        if not ids or self.synthetic_ids or any(id not in self.cache for id in ids):
            return self._looked_up(ids)
        rows, types = list[FloatArray](), list[NDArray[np.bool_] | None]()
        for place in range(len(self.targets)):
            of_all, typed = zip(*(self.cache[id][place] for id in ids), strict=True)
            rows.append(np.array(of_all))
            types.append(None if None in typed else np.array(typed, np.bool_))
        return tuple(rows), tuple(types)

    def _looked_up(self, ids: Sequence[str]) -> Rows:
        """From the collection; documents with `synthetic_ids` are unknown, and cannot have a label."""
        groups, rows, types = self.collection.groups, list[FloatArray](), list[NDArray[np.bool_] | None]()
        real = np.array([id not in self.synthetic_ids for id in ids], dtype=np.bool_)
        real_ids = list(compress(ids, real))
        for target in self.targets:
            of_all, typed = np.zeros((len(ids), 1 + len(target.labels))), np.zeros(len(ids), dtype=np.bool_)
            of_all[:, 0] = 1
            of_all[real] = groups.memberships(target.dimension, real_ids, self.topic)
            rows.append(of_all)
            if (of_type := groups.of_type(target.dimension, real_ids, self.topic)) is not None:
                typed[real] = of_type
            types.append(None if of_type is None else typed)
        return tuple(rows), tuple(types)

    def measure(self, ranking: Ranking) -> tuple[Exposure, ...]:
        """The exposure of every group in the first `n` documents."""
        top = ranking.top(self.n)
        return self.weigh(top.ids, self.discount(len(top)))

    def measure_served(self, ranking: Ranking) -> tuple[Exposure, ...]:
        """`measure`, with what label errors make of AWRF in dimensions whose labels were made."""
        top, exposures = ranking.top(self.n), self.measure(ranking)
        likely = {
            target.dimension: under_error(self.collection, self.topic, target, top.ids, self.discount(len(top)))
            for target in self.targets
            if target.dimension in self.collection.label_errors and len(top)
        }
        return tuple(replace(one, likely=likely.get(one.dimension)) for one in exposures)

    def weigh(self, ids: Sequence[str], weights: FloatArray) -> tuple[Exposure, ...]:
        """The exposure of every group in these documents, which count by `weights` (n,), 0 or more."""
        return self.exposures(self.columns(ids), weights)

    def exposures(self, columns: Sequence[FloatArray], weights: FloatArray) -> tuple[Exposure, ...]:
        """As `weigh`, of documents whose groups `columns` has, (n, u + g) a dimension."""
        exposures = []
        for target, rows, aim in zip(self.targets, columns, self._aims(), strict=True):
            first = rows.shape[1] - len(target.labels)
            shares = group_exposure(rows, weights)
            none, known = shares[:first], shares[first:]
            total = float(known.sum())
            unlabeled = aim.unlabeled if aim.unlabeled.shape == (first,) else np.zeros(first)
            gap = GapColumns([GapTarget(aim.target, unlabeled, aim.counts)], self.divergence)
            exposure = Exposure(
                dimension=target.dimension,
                labels=target.labels,
                shares=known / total if total > 0 else np.zeros(len(target.labels)),
                target=target.shares,
                unknown=float(none.sum()),
                divergence=float(gap.gaps(gap_rows((known[None], none[None]))[0])),
                unknown_target=float(unlabeled.sum()) if aim.counts else None,
                importance=aim.importance,
            )
            exposures.append(exposure)
        return tuple(exposures)

    def _aims(self) -> Iterator[GapTarget]:
        """What each dimension should get, by its importance."""
        counts = self.importance or (1.0,) * len(self.targets)
        for place, (target, count) in enumerate(zip(self.targets, counts, strict=True)):
            if self.unlabeled:
                due = self.unlabeled[place]
                yield GapTarget(target.shares, due.shares, due.counts, count)
            else:
                yield GapTarget(target.shares, np.zeros(1), counts=False, importance=count)

    def due(self) -> tuple[FloatArray, ...]:
        """What each column of `columns` should get, (u + g,) a dimension; nan for the unlabeled where they are ignored.

        So one target holds for whatever is measured: a ranking, a context, citations.
        """
        return tuple(
            np.concatenate(
                [aim.unlabeled if aim.counts else [np.nan], (1 - aim.unlabeled.sum() * aim.counts) * aim.target]
            )
            for aim in self._aims()
        )

    def _shares(self, ranking: Ranking) -> list[FloatArray]:
        """The exposure of all groups, those without a label included, in the first `n` documents: (u + g,) each."""
        top = ranking.top(self.n)
        return [group_exposure(rows, self.discount(len(top))) for rows in self.columns(top.ids)]


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
