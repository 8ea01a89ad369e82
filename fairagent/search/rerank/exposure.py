"""The exposure-aware re-ranker: relevance first, then what the groups still lack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fairagent.measures import LOG2_MAX2, Discount, min_max, parse_discount
from fairagent.retrieve.base import placed
from fairagent.retrieve.site import Site
from fairagent.search.rerank.base import Pool, UnlabeledColumns
from fairagent.settings.parts import Part
from fairagent.types import FloatArray, Ranking

SMALLEST = float(np.finfo(np.float64).tiny)

ROUNDING = 1e-9
FAIRNESS = 1.0
"""A user's choice; what others would give on public topics is in evaluations/controller/README.md."""
TOLERANCE = 0.04
"""How far the exposure of documents without a label may move from their share, whatever the fairness."""
STRICT = 4.0
"""The fairness that is tried where what is served would be less fair than the engine's own list."""


@dataclass(frozen=True, slots=True)
class ExposureReranker:
    """Greedy: at each rank the document with the best relevance and the least harm to the groups' exposure.

    With discounts w_1..w_n of sum W, exposure E so far, and R the discounts of the ranks still open, the document
    d at rank i maximizes

        w_i rel(d) / W  -  fairness * sum over dimensions of JSD((E + w_i a(d) + R t) / W', t)

    where rel is the min-max score (or the score in the pool's `unit`), a(d) the membership over the known groups, t the
    target and W' the sum of what is divided; where the pool says so, a dimension counts by its importance over the
    larger of 1 and the sum of all. The ranks still open are counted as filled on target, so a group is not forced in
    early at any price, and what is missing weighs more the fewer ranks are left. A document without a label helps no
    group: in each dimension that it has none in, its relevance is lowered by `unlabeled`. Ties go to the better-placed
    candidate.
    """

    fairness: float = FAIRNESS
    unlabeled: float = 0.0
    discount: Discount = LOG2_MAX2

    def rerank(self, pool: Pool) -> Ranking:
        """The best `pool.n` candidates; scores fall strictly from 1 at rank 1, since the order is no engine's."""
        order = ExposureOrder.of(pool, self.unlabeled, self.discount)
        return placed(pool.ranking.ids, order(self.fairness))

    def stricter(self) -> ExposureReranker:
        """The same with more weight on what the groups lack."""
        return replace(self, fairness=max(STRICT, self.fairness))

    def with_fairness(self, fairness: float) -> ExposureReranker:
        """The same at this price."""
        return replace(self, fairness=fairness)

    def relevance(self, pool: Pool) -> Ranking:
        """All candidates by the relevance that is weighed against fairness."""
        relevance = relevance_of(pool, self.unlabeled)
        order = np.argsort(-relevance, kind="stable")
        return Ranking(tuple(pool.ranking.ids[place] for place in order.tolist()), relevance[order])


def relevance_of(pool: Pool, unlabeled: float) -> FloatArray:
    """The candidates' relevance (n,), less `unlabeled` for each dimension in which they have no label."""
    scores = pool.ranking.scores
    relevance = scores / pool.unit if pool.unit else min_max(scores)
    if unlabeled:
        relevance = relevance - unlabeled * sum((of[:, 1:].sum(axis=1) == 0) for of in pool.memberships)
    return relevance


@dataclass(frozen=True, slots=True, eq=False)
class ExposureOrder:
    """What the greedy order of one pool needs, whatever the fairness: its types of documents, best first.

    Documents with the same groups differ in relevance alone: only the best of each type can be next. Columns are the
    groups of all dimensions, those without a label included where they count: `column` (columns, parts) says whose
    divergence each belongs to, `disjoint` (columns, sets) which no document can be in two of. `least` and `most`
    (columns,) bound what each gets in the end.
    """

    types: FloatArray
    queues: list[list[int]]
    relevance: FloatArray
    target: FloatArray
    column: FloatArray
    disjoint: FloatArray
    weights: FloatArray
    importance: FloatArray | None
    least: FloatArray
    most: FloatArray

    @classmethod
    def of(cls, pool: Pool, unlabeled: float, discount: Discount) -> ExposureOrder:
        """For the best `pool.n` candidates."""
        # The dimensions' columns side by side: their divergences are summed, so one pass serves all.
        counted = pool.unlabeled or (None,) * len(pool.targets)
        counts = pool.importance or (1.0,) * len(pool.targets)
        groups = zip(pool.memberships, pool.targets, counted, counts, strict=True)
        by_dimension = [list(_columns(*dimension)) for dimension in groups]
        parts = [part for dimension in by_dimension for part in dimension]
        rows = np.hstack([part.rows for part in parts])
        target, least, most = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("target", "least", "most")
        )
        column = np.repeat(np.eye(len(parts)), [len(part.target) for part in parts], axis=0)
        disjoint = _disjoint([[len(part.target) for part in dimension] for dimension in by_dimension])
        numbers: dict[bytes, int] = {}
        type_of = np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in rows], dtype=np.intp)
        types = rows[np.unique(type_of, return_index=True)[1]]
        relevance = relevance_of(pool, unlabeled)
        importance = np.array([part.importance for part in parts]) / max(1.0, sum(counts)) if pool.importance else None
        queues: list[list[int]] = [[] for _ in range(len(types))]
        for i in np.argsort(-relevance, kind="stable").tolist():
            queues[type_of[i]].append(i)
        weights = discount(min(pool.n, len(pool.ranking)))
        total = weights.sum()
        bounds = least * total, most * total
        return cls(types, queues, relevance, target, column, disjoint, weights, importance, *bounds)

    def __call__(self, fairness: float) -> list[int]:
        """The places of the chosen candidates, in their order."""
        types, target, weights = self.types, self.target, self.weights
        dimension_of, labeled = self.column.argmax(axis=1), types @ self.column
        next_of = [0] * len(self.queues)
        heads = np.array([self.relevance[queue[0]] for queue in self.queues])
        total = weights.sum()
        entropy = self._entropy(target)
        exposure, mass = np.zeros(len(target)), np.zeros(labeled.shape[1])
        supply = np.array([len(queue) for queue in self.queues]) @ types
        spent = np.zeros(len(types), dtype=bool)
        chosen: list[int] = []
        for rank, weight in enumerate(weights, start=1):
            # Summed anew: at the last rank it is exactly 0, and the last document is judged by what it is.
            left = weights[rank:].sum()
            masses = mass + weight * labeled + left
            empty = masses == 0 if left == 0 else None
            if empty is not None:
                masses[empty] = 1
            after = exposure + weight * types
            share = (after + left * target) / masses[:, dimension_of]
            # JSD = H((p + t) / 2) - H(p) / 2 - H(t) / 2, both of the first in one pass.
            entropies = self._entropy(np.concatenate(((share + target) / 2, share)))
            divergence = entropies[: len(types)] - (entropies[len(types) :] + entropy) / 2
            if empty is not None:
                # No exposure at all would come out as ln 2 / 2; it is as far from the target as can be, ln 2.
                counts = np.ones(empty.shape[1]) if self.importance is None else self.importance
                divergence += empty.astype(np.float64) @ counts * (np.log(2) / 2)
            value = weight * heads / total - fairness * divergence
            if fairness:
                value[self._broken(after, supply - types, weights[rank:], spent)] = -np.inf
            value[spent] = -np.inf
            best = min(np.flatnonzero(value == value.max()).tolist(), key=lambda one: self.queues[one][next_of[one]])
            chosen.append(self.queues[best][next_of[best]])
            next_of[best] += 1
            spent[best] = next_of[best] == len(self.queues[best])
            heads[best] = 0.0 if spent[best] else self.relevance[self.queues[best][next_of[best]]]
            supply -= types[best]
            exposure += weight * types[best]
            mass += weight * labeled[best]
        return chosen

    def _broken(
        self, after: FloatArray, supply: FloatArray, left: FloatArray, spent: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """The types after which the bounds can be met less well than after others, (types,).

        What a group still lacks of its least exposure has to be in reach of the documents that it has then, its
        `supply` (types, columns), at the next ranks, whose discounts are `left`; what disjoint groups lack has to fit
        into these.
        """
        lacking = np.maximum(self.least - after, 0)
        reach = np.interp(supply, np.arange(len(left) + 1), np.concatenate(([0.0], np.cumsum(left))))
        missed = np.maximum(lacking - reach, 0) + np.maximum(after - self.most, 0)
        excess = missed.sum(axis=1) + np.maximum(lacking @ self.disjoint - left.sum(), 0).sum(axis=1)
        return np.asarray(excess > excess[~spent].min() + ROUNDING)

    def _entropy(self, shares: FloatArray) -> FloatArray:
        """The sum over the dimensions of their entropies - sum p ln p, each by its importance; 0 ln 0 = 0."""
        products = shares * np.log(np.maximum(shares, SMALLEST))
        if self.importance is None:
            return np.asarray(-products.sum(axis=-1))
        return np.asarray(-(products @ self.column) @ self.importance)


@dataclass(frozen=True, slots=True, eq=False)
class _Columns:
    """Columns whose divergence counts by itself: `rows` (n, c) of the candidates, `target`, `least` and `most` (c,)."""

    rows: FloatArray
    target: FloatArray
    least: FloatArray
    most: FloatArray
    importance: float


def _columns(
    memberships: FloatArray, target: FloatArray, unlabeled: UnlabeledColumns | None, importance: float
) -> Iterator[_Columns]:
    """A dimension's known groups, and where the unlabeled count, these and all that have a label.

    Both count by themselves: how the known groups share what they have is not less urgent where they have little. The
    unlabeled stay near their share, and no known group falls that has less than its own.
    """
    known, nothing, free = memberships[:, 1:], np.zeros(len(target)), np.ones(len(target))
    if unlabeled is None:
        yield _Columns(known, target, nothing, free, importance)
        return
    shares, none = unlabeled.shares, float(unlabeled.shares.sum())
    yield _Columns(known, target, np.minimum(unlabeled.own[len(shares) :], (1 - none) * target), free, importance)
    # Of the documents that can have a label, the share without one stays, however many these are.
    margin = TOLERANCE if len(shares) == 1 else TOLERANCE / 2 * (1 - shares[0])
    yield _Columns(
        np.column_stack([unlabeled.rows, known.sum(axis=1)]),
        np.append(shares, 1 - none),
        np.maximum(np.append(shares, 1 - none) - margin, 0),
        np.append(shares + margin, 1),
        importance,
    )


def _disjoint(dimensions: Sequence[Sequence[int]]) -> FloatArray:
    """Sets of columns of which no document is in two, (columns, sets); each dimension has the sizes of its parts.

    Known groups and the unlabeled are such a set, and so are the unlabeled and all that have a label.
    """
    sets, start, total = [], 0, sum(map(sum, dimensions))
    places = np.arange(total)
    for known, *others in dimensions:
        end = start + known + sum(others)
        sets.append((places >= start) & (places < end - bool(others)))
        if others:
            sets.append((places >= start + known) & (places < end))
        start = end
    return np.array(sets, dtype=np.float64).T


class ExposureConfig(Part):
    """Greedy: relevance, weighed against what each group still lacks."""

    of_groups: ClassVar[bool] = True
    kind: Literal["exposure"] = "exposure"
    fairness: float = Field(FAIRNESS, ge=0)
    """What a divergence of 1 nat from the target costs, in units of mean relevance (0 to 1): larger values are fairer
    and less relevant."""
    unlabeled: float = Field(0.0, ge=0)
    """How much relevance (0 to 1) a document loses for each dimension in which it has no label. Larger values put
    labeled documents first, as far as `unknown` lets them."""

    def build(self, site: Site) -> ExposureReranker:
        """The re-ranker."""
        return ExposureReranker(self.fairness, self.unlabeled, parse_discount(site.settings.discount))
