"""Label combinations of several dimensions as numbered cells, and sparse amounts on them.

All eight dimensions of 2022 have 11,176,704 cells, of which a ranking touches a few hundred: amounts are kept
for the touched cells only.

The rules of TREC Fair Ranking 2021 that differ from 2022.

Task 1 leaves the cell in which everything is unknown out of exposure and target (2022 keeps it), and a ranking
that shows nothing else counts as showing all other cells alike. Task 2 counts the exposure of every listed page
(2022: of the relevant ones). The rankings are longer: 1000 instead of 500 in Task 1, 50 instead of 20 in Task 2.
Source: TREC Fair Ranking 2021, Alignments and metrics.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from fairagent.errors import UsageError
from fairagent.measures.trec_fair.dimensions import Dimension
from fairagent.measures.trec_fair.pages import IntArray, Pages
from fairagent.types import FloatArray

FEW = 4
"""Up to so many possible keys an entry, a place for each is faster than sorting."""


@dataclass(frozen=True, slots=True, eq=False)
class Amounts:
    """Amounts on cells of several topics: `keys` (m,) are distinct and rising, topic * cells + cell."""

    keys: IntArray
    values: FloatArray


@dataclass(frozen=True, slots=True)
class Space:
    """The cells of some dimensions: row-major numbers, the averaged dimensions before the others.

    A cell is a head (its labels in the averaged dimensions) and a tail (those in the others): cell =
    head * tails + tail. Cell 0 is the one with every first label.
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

    @property
    def heads(self) -> int:
        """The number of label combinations of the averaged dimensions (1 where there is none)."""
        return math.prod(len(dimension.labels) for dimension in self.dimensions if dimension.averaged)

    @property
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
        >>> found = Space.of([gender, size]).amounts(pages, np.array([0, 0]), np.array([0, 0]), np.array([1, 0.5]))
        >>> found.keys.tolist(), found.values.tolist()
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
    starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    return keys[starts], np.add.reduceat(values[order], starts), np.diff(starts, append=keys.size)


def totals(places: IntArray, values: FloatArray, count: int) -> FloatArray:
    """The sum of the values of each place, (count,) or more where a place is beyond.

    >>> totals(np.array([2, 0, 2]), np.array([1.0, 2.0, 3.0]), 4).tolist()
    [2.0, 0.0, 4.0, 0.0]
    """
    return np.bincount(places, values, minlength=count).astype(np.float64)


def without_unknown(amounts: Amounts, space: Space) -> Amounts:
    """The amounts without cell 0, in which every dimension is unknown.

    >>> from fairagent.measures.trec_fair.dimensions import DIMENSIONS_2021
    >>> space = Space.of(DIMENSIONS_2021[1:])  # 4 genders
    >>> without_unknown(Amounts(np.array([0, 2, 4]), np.ones(3)), space).keys.tolist()
    [2]
    """
    known = amounts.keys % space.cells > 0
    return Amounts(amounts.keys[known], amounts.values[known])


def or_uniform(exposure: Amounts, space: Space, topics: int) -> Amounts:
    """The exposure of every topic, (t,), and one on every cell but 0 for the topics that have none.

    >>> from fairagent.measures.trec_fair.dimensions import DIMENSIONS_2021
    >>> space = Space.of(DIMENSIONS_2021[1:])
    >>> or_uniform(Amounts(np.array([5]), np.array([2.0])), space, 2).values.tolist()
    [1.0, 1.0, 1.0, 2.0]
    """
    empty = np.setdiff1d(np.arange(topics), exposure.keys // space.cells)
    added = (empty[:, None] * space.cells + np.arange(1, space.cells)).ravel()
    keys = np.concatenate((exposure.keys, added))
    order = keys.argsort()
    return Amounts(keys[order], np.concatenate((exposure.values, np.ones(added.size)))[order])
