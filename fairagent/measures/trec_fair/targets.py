"""Intersectional targets: the share of attention that each cell should get for each topic.

The relevant pages' alignments are averaged with the world's shares. Of the averaged dimensions H and the others
T, every pattern of known and unknown over H (but all-unknown) is a block of cells with mass c, in which

    t(h, x) = 1/2 tm(h, x) + 1/2 c * prod_j b_j(h_j) * s(h, x),    s(h, x) = tm(h, x) / tm(h, .)

and s(h, .) is the marginal distribution m of the tails where the head h has no mass. So a head with mass only
scales its cells by 1/2 + 1/2 c b(h) / tm(h, .), and these are as few as the relevant pages' own; the heads
without are the outer product of g(h) = 1/2 c b(h) and m, which is never formed. One dimension is the special
case without tails (averaged) or without heads (others).
Source: TREC Fair Ranking 2022, Task1Alignment and Task2Alignment, background averaging.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np

from fairagent.errors import UsageError
from fairagent.measures.trec_fair.pages import IntArray, Lookup
from fairagent.measures.trec_fair.space import Amounts, Space, grouped, totals
from fairagent.types import FloatArray

MOST_DENSE = 1_000_000
"""Cells of the largest target that `dense` writes out."""


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
        values, places = self._product(keys), self._lookup.find(keys)
        found = np.flatnonzero(places >= 0)
        values[found] += self.touched.values[places[found]]
        return values

    @cached_property
    def total(self) -> FloatArray:
        """The sum of every topic's target over all cells, (t,)."""
        product: FloatArray = self.heads.sum(axis=1) * self.tails.sum(axis=1)
        return self._by_topic(self.touched.values) + product

    @cached_property
    def squares(self) -> FloatArray:
        """The sum of every topic's squared target over all cells, (t,): (a + gm)^2 = a (a + 2 gm) + g^2 m^2."""
        crossed = self.touched.values * (self.touched.values + 2.0 * self._product(self.touched.keys))
        product: FloatArray = (self.heads**2).sum(axis=1) * (self.tails**2).sum(axis=1)
        return self._by_topic(crossed) + product

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

    @cached_property
    def _lookup(self) -> Lookup:
        return Lookup(self.touched.keys)

    def _product(self, keys: IntArray) -> FloatArray:
        head, tail = np.divmod(keys, self.space.tails)
        product: FloatArray = self.heads.ravel()[head] * self.tails[head // self.space.heads, tail]
        return product

    def _by_topic(self, values: FloatArray) -> FloatArray:
        return totals(self.touched.keys // self.space.cells, values, len(self.heads))


def averaged_with_world(space: Space, alignment: Amounts, topics: int) -> Targets:
    """The targets of `topics` topics from the summed (weighted) alignments of their relevant pages.

    The mass of every block, and so the total, stay what they were. A topic without mass gets no target.

    >>> from fairagent.measures.trec_fair.dimensions import Dimension
    >>> dims = Dimension("g", ("@UNKNOWN", "f", "m"), (0.5, 0.5)), Dimension("x", ("a", "b"))
    >>> thirds = Amounts(np.array([1, 2, 3]), np.full(3, 1 / 3))  # one page each: unknown b, f a, f b
    >>> averaged_with_world(Space.of(dims), thirds, 1).dense(0).round(6).tolist()
    [0.0, 0.333333, 0.25, 0.25, 0.055556, 0.111111]
    """
    heads, tails = space.heads, space.tails
    head, tail = np.divmod(alignment.keys, tails)
    topic = head // heads
    mass = totals(head, alignment.values, topics * heads).reshape(topics, heads)
    pattern, world = _blocks(space)
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


def _blocks(space: Space) -> tuple[IntArray, FloatArray]:
    """Of every head the pattern of known dimensions as a bit mask, and the product of their world's shares."""
    averaged = [(len(dimension.labels), dimension.background) for dimension in space.dimensions if dimension.background]
    patterns = [(np.arange(labels) > 0) * 2**place for place, (labels, _) in enumerate(averaged)]
    shares = [np.array([1.0, *background]) for _, background in averaged]
    pattern = reduce(np.add.outer, patterns, np.zeros((), np.int64)).ravel()
    return pattern, reduce(np.multiply.outer, shares, np.ones(())).ravel()
