"""Label combinations of several dimensions as numbered cells, sparse amounts on them, and intersectional targets.

All eight dimensions of 2022 have 11,176,704 cells, of which a ranking touches a few hundred: amounts are kept for the
touched cells only.

A target is the share of attention that each cell should get for a topic: the relevant pages' alignments, averaged with
the world's shares. Of the averaged dimensions H and the others T, every pattern of known and unknown over H (but
all-unknown) is a block of cells with mass c, in which

    t(h, x) = 1/2 tm(h, x) + 1/2 c * prod_j b_j(h_j) * s(h, x),    s(h, x) = tm(h, x) / tm(h, .)

and s(h, .) is the marginal distribution m of the tails where the head h has no mass. So a head with mass only scales
its cells by 1/2 + 1/2 c b(h) / tm(h, .), and these are as few as the relevant pages' own; the heads without are the
outer product of g(h) = 1/2 c b(h) and m, which is never formed. One dimension is the special case without tails
(averaged) or without heads (others).
Source: TREC Fair Ranking 2022, Task1Alignment and Task2Alignment, background averaging.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np

from fairagent.errors import UsageError
from fairagent.measures.trec_fair.pages import Dimension, IntArray, Pages, find
from fairagent.types import FloatArray

MOST_DENSE = 1_000_000
"""Cells of the largest target that `dense` writes out."""
FEW = 4
"""Up to so many possible keys an entry, a place for each is faster than sorting."""


@dataclass(frozen=True, slots=True, eq=False)
class Amounts:
    """Amounts on cells of several topics: `keys` (m,) are distinct and rising, topic * cells + cell."""

    keys: IntArray
    values: FloatArray


@dataclass(frozen=True)
class Space:
    """The cells of some dimensions: row-major numbers, the averaged dimensions before the others.

    cell = head * tails + tail: a head is a combination of the averaged dimensions' labels, a tail one of the others'.
    Cell 0 is the one with every first label.
    """

    dimensions: tuple[Dimension, ...]

    @classmethod
    def of(cls, dimensions: Sequence[Dimension]) -> Space:
        """The space of these dimensions; UsageError where there is none or one twice."""
        names = [dimension.name for dimension in dimensions]
        if not names or len(set(names)) < len(names):
            raise UsageError(f"expected one or more distinct dimensions, got {names}")
        return cls(tuple(sorted(dimensions, key=lambda dimension: not dimension.averaged)))

    def only(self, names: Collection[str]) -> Space:
        """The space of the dimensions of these names, in the same order."""
        return Space.of([dimension for dimension in self.dimensions if dimension.name in names])

    @cached_property
    def heads(self) -> int:
        """The number of label combinations of the averaged dimensions (1 where there is none)."""
        return math.prod(len(dimension.labels) for dimension in self.dimensions if dimension.averaged)

    @cached_property
    def tails(self) -> int:
        """The number of label combinations of the other dimensions (1 where there is none)."""
        return math.prod(len(dimension.labels) for dimension in self.dimensions if not dimension.averaged)

    @property
    def cells(self) -> int:
        """The number of all label combinations."""
        return self.heads * self.tails

    def amounts(self, pages: Pages, rows: IntArray, topics: IntArray, weights: FloatArray) -> Amounts:
        """For each topic the sum of w * (outer product of a page's alignments) over entries (page, topic, w).

        `rows` (n,) are places in `pages`, `topics` (n,) topic numbers, `weights` (n,) the weights.

        >>> gender = Dimension("gender", ("@UNKNOWN", "female", "male"), (0.5, 0.5))
        >>> size = Dimension("size", ("small", "large"))
        >>> alignments = {"gender": {"female": 1.0, "male": 1.0}, "size": {"large": 1.0}}
        >>> pages = Pages.from_alignments([gender, size], [(7, alignments, None)])
        >>> amounts = Space.of([gender, size]).amounts(pages, np.array([0, 0]), np.array([0, 0]), np.array([1, 0.5]))
        >>> amounts.keys.tolist(), amounts.values.tolist()
        ([3, 5], [1.5, 1.5])
        """
        keys, stride = topics * self.cells, self.cells
        parts = []
        for dimension in self.dimensions:
            stride //= len(dimension.labels)
            parts.append((pages.rows_of(dimension.name), stride))
        # Dimensions with few labels a page first, as long as there are few entries.
        for part, stride in sorted(parts, key=lambda part: part[0].widest):
            entries = part.of_page[rows].astype(np.int64)
            if not part.plain:
                counts, entries = part.counts[entries], part.starts[entries]
                if not (counts == 1).all():
                    ends = counts.cumsum()
                    entries = np.repeat(entries - ends + counts, counts) + np.arange(counts.sum())
                    keys, weights, rows = np.repeat(keys, counts), np.repeat(weights, counts), np.repeat(rows, counts)
                weights = weights * part.weights[entries]
            keys = keys + (part.codes * stride)[entries]
        keys, sums, _ = grouped(keys, weights)
        return Amounts(keys, sums)

    def projected(self, keys: IntArray, onto: Space) -> IntArray:
        """The keys in a space of some of these dimensions of the cells that `keys` are summed into."""
        codes = {}
        for dimension in reversed(self.dimensions):
            keys, codes[dimension.name] = np.divmod(keys, len(dimension.labels))
        for dimension in onto.dimensions:  # what is left of the keys are the topics
            keys = keys * len(dimension.labels) + codes[dimension.name]
        return keys


def grouped(keys: IntArray, values: FloatArray) -> tuple[IntArray, FloatArray, IntArray]:
    """The distinct keys in rising order, the sum of each one's values, and how many it has.

    >>> keys, sums, counts = grouped(np.array([5, 2, 5]), np.array([1.0, 2.0, 3.0]))
    >>> keys.tolist(), sums.tolist(), counts.tolist()
    ([2, 5], [2.0, 4.0], [1, 2])
    """
    if not keys.size:
        return keys, values, np.zeros(0, np.int64)
    least = int(keys.min())
    if int(keys.max()) - least < FEW * keys.size:
        counts = np.bincount(keys - least).astype(np.int64)
        present = np.flatnonzero(counts)
        return present + least, totals(keys - least, values, 0)[present], counts[present]
    order = keys.argsort()
    keys = keys[order]
    starts = np.flatnonzero(np.diff(keys, prepend=keys[0] - 1))
    return keys[starts], np.add.reduceat(values[order], starts), np.diff(starts, append=keys.size)


def totals(places: IntArray, values: FloatArray, count: int) -> FloatArray:
    """The sum of the values of each place, (count,) or more where a place is beyond."""
    return np.bincount(places, values, minlength=count).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Targets:
    """The targets of t topics: some cells one by one, plus an outer product of heads (t, h) and tails (t, x).

    `touched` and the product may overlap; a cell's target is the sum of both. Nothing here is divided by a sum.
    """

    space: Space
    touched: Amounts
    heads: FloatArray
    tails: FloatArray

    def at(self, keys: IntArray) -> FloatArray:
        """The target of each of these cells, (m,); `keys` are topic * cells + cell."""
        values, places = self._product(keys), find(self.touched.keys, keys)
        touched = np.flatnonzero(places >= 0)
        values[touched] += self.touched.values[places[touched]]
        return values

    @cached_property
    def total(self) -> FloatArray:
        """The sum of every topic's target over all cells, (t,)."""
        product: FloatArray = self.heads.sum(axis=1) * self.tails.sum(axis=1)
        return self.by_topic(self.touched.keys, self.touched.values) + product

    @cached_property
    def squares(self) -> FloatArray:
        """The sum of every topic's squared target over all cells, (t,): (a + gm)^2 = a (a + 2 gm) + g^2 m^2."""
        crossed = self.touched.values * (self.touched.values + 2.0 * self._product(self.touched.keys))
        product: FloatArray = (self.heads**2).sum(axis=1) * (self.tails**2).sum(axis=1)
        return self.by_topic(self.touched.keys, crossed) + product

    def by_topic(self, keys: IntArray, values: FloatArray) -> FloatArray:
        """The sum of the values of each topic's cells, (t,)."""
        return totals(keys // self.space.cells, values, len(self.heads))

    def dense(self, topic: int) -> FloatArray:
        """One topic's target over all cells, (cells,); UsageError where these are more than a million."""
        if self.space.cells > MOST_DENSE:
            raise UsageError(f"{self.space.cells:,} cells are too many to write out; sum over some dimensions first")
        return self.at(topic * self.space.cells + np.arange(self.space.cells))

    def scaled(self, factors: FloatArray) -> Targets:
        """The same with each topic's target times its factor, (t,)."""
        values = self.touched.values * factors[self.touched.keys // self.space.cells]
        return replace(self, touched=Amounts(self.touched.keys, values), heads=self.heads * factors[:, None])

    def over(self, names: Collection[str]) -> Targets:
        """The targets over the dimensions of these names, summed over the others."""
        onto = self.space.only(names)
        sides = []
        for averaged, side in ((True, self.heads), (False, self.tails)):
            present = [dimension for dimension in self.space.dimensions if dimension.averaged == averaged]
            grid = side.reshape(-1, *(len(dimension.labels) for dimension in present))
            others = tuple(axis for axis, dimension in enumerate(present, start=1) if dimension.name not in names)
            sides.append(grid.sum(axis=others).reshape(len(side), -1))
        keys, sums, _ = grouped(self.space.projected(self.touched.keys, onto), self.touched.values)
        return Targets(onto, Amounts(keys, sums), *sides)

    def _product(self, keys: IntArray) -> FloatArray:
        head, tail = np.divmod(keys, self.space.tails)
        product: FloatArray = self.heads.ravel()[head] * self.tails[head // self.space.heads, tail]
        return product


def averaged_with_world(space: Space, alignment: Amounts, topics: int) -> Targets:
    """The targets of `topics` topics from the summed (weighted) alignments of their relevant pages.

    A topic without mass gets no target.

    >>> dims = Dimension("g", ("@UNKNOWN", "f", "m"), (0.5, 0.5)), Dimension("x", ("a", "b"))
    >>> thirds = Amounts(np.array([1, 2, 3]), np.full(3, 1 / 3))  # one page each: unknown b, f a, f b
    >>> averaged_with_world(Space.of(dims), thirds, 1).dense(0).round(6).tolist()
    [0.0, 0.333333, 0.25, 0.25, 0.055556, 0.111111]
    """
    heads, tails = space.heads, space.tails
    head, tail = np.divmod(alignment.keys, tails)
    topic = head // heads
    mass = totals(head, alignment.values, topics * heads).reshape(topics, heads)
    # Of every head the pattern of known dimensions as a bit mask, and the product of their world's shares.
    backgrounds = [dimension.background for dimension in space.dimensions if dimension.background]
    patterns = [(np.arange(1 + len(shares)) > 0) * 2**place for place, shares in enumerate(backgrounds)]
    pattern = reduce(np.add.outer, patterns, np.zeros((), np.int64)).ravel()
    world = reduce(np.multiply.outer, [np.array([1.0, *shares]) for shares in backgrounds], np.ones(())).ravel()
    known = pattern > 0
    blocks = mass @ (pattern[:, None] == np.arange(1 + pattern.max()))
    added = 0.5 * blocks[:, pattern] * world * known
    factor = np.divide(added, mass, out=np.zeros_like(mass), where=mass > 0.0) + np.where(known, 0.5, 1.0)
    marginal = totals(topic * tails + tail, alignment.values, topics * tails).reshape(topics, tails)
    total = marginal.sum(axis=1, keepdims=True)
    return Targets(
        space,
        Amounts(alignment.keys, alignment.values * factor.ravel()[head]),
        np.where(mass > 0.0, 0.0, added),
        np.divide(marginal, total, out=np.zeros_like(marginal), where=total > 0.0),
    )
