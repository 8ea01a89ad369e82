"""Pages as arrays: ids, one alignment row per dimension, and quality classes.

Millions of pages share few alignment rows, so a dimension keeps its distinct rows once, and each page the
number of its row: four bytes a page and dimension.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import DataError, UsageError
from fairagent.measures.trec_fair.dimensions import QUALITIES, Dimension
from fairagent.measures.trec_fair.lookup import IntArray
from fairagent.types import FloatArray

LARGEST_ID = 2**31 - 1
"""The track keeps page ids as 32-bit integers."""


@dataclass(frozen=True, slots=True, eq=False)
class AlignmentRows:
    """The alignment rows of one dimension.

    Page p has row `of_page[p]`; row r holds the labels `codes[starts[r] : starts[r] + counts[r]]`, each once, with
    these `weights` (> 0). `widest` is the largest count.
    """

    of_page: NDArray[np.int32]
    starts: IntArray
    counts: IntArray
    codes: IntArray
    weights: FloatArray
    widest: int
    plain: bool


@dataclass(frozen=True, slots=True, eq=False)
class Pages:
    """The pages with metadata: distinct `ids` (p,) in rising order, and what each is aligned with.

    `rows` has one entry a dimension, in the order of `dimensions`; `quality` (p,) is the place of a page's class
    in `QUALITIES`, -1 where it is not known.
    """

    dimensions: tuple[Dimension, ...]
    ids: IntArray
    rows: tuple[AlignmentRows, ...]
    quality: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def from_alignments(
        cls,
        dimensions: Sequence[Dimension],
        alignments: Iterable[tuple[int, Mapping[str, Mapping[str, float]], str | None]],
    ) -> Pages:
        """Pages from (id, dimension -> label -> weight, quality); weights are used as given.

        Of several entries of one page the first counts. Raises DataError for a label that a dimension does not
        have, a weight that is negative, nan or infinite, an unknown quality and an id outside 0 .. 2^31 - 1.

        >>> gender = Dimension("gender", ("@UNKNOWN", "female", "male"), (0.5, 0.5))
        >>> pages = Pages.from_alignments([gender], [(12, {"gender": {"male": 1.0}}, "Stub"), (7, {}, None)])
        >>> pages.ids.tolist(), pages.quality.tolist(), pages.matrix("gender").tolist()
        ([7, 12], [-1, 0], [[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
        """
        builder = PagesBuilder(dimensions)
        for id, weights, quality in alignments:
            if quality is not None and quality not in QUALITIES:
                raise DataError(f"page {id}: quality {quality!r} is none of {', '.join(QUALITIES)}")
            try:
                rows = [builder.row(place, weights.get(dim.name, {})) for place, dim in enumerate(dimensions)]
                builder.add(id, rows, -1 if quality is None else QUALITIES.index(quality))
            except ValueError as error:
                raise DataError(f"page {id}: {error}") from None
        return builder.finish()

    def dimension(self, name: str) -> Dimension:
        """The dimension of that name; raises UsageError, naming those there are."""
        return self.dimensions[self._place(name)]

    def rows_of(self, name: str) -> AlignmentRows:
        """The alignment rows of one dimension."""
        return self.rows[self._place(name)]

    def matrix(self, name: str) -> FloatArray:
        """The alignments of all pages in one dimension, shape (p, g): for looking at small collections."""
        rows = self.rows_of(name)
        distinct = np.zeros((len(rows.counts), len(self.dimension(name).labels)))
        distinct[np.repeat(np.arange(len(rows.counts)), rows.counts), rows.codes] = rows.weights
        return distinct[rows.of_page]

    def _place(self, name: str) -> int:
        names = [dimension.name for dimension in self.dimensions]
        if name not in names:
            raise UsageError(f"no dimension {name!r}; there are: {', '.join(names)}")
        return names.index(name)


class PagesBuilder:
    """Collects pages one by one in compact buffers."""

    def __init__(self, dimensions: Sequence[Dimension]) -> None:
        self.dimensions = tuple(dimensions)
        self._codes = [{label: code for code, label in enumerate(dim.labels)} for dim in dimensions]
        self._numbers: list[dict[tuple[tuple[int, float], ...], int]] = [{} for _ in dimensions]
        self._of_page = [array("i") for _ in dimensions]
        self._ids = array("q")
        self._quality = array("b")

    def row(self, place: int, weights: Mapping[str, float]) -> int:
        """The number of an alignment row of the dimension in that place; ValueError for what is no such row."""
        dimension, codes = self.dimensions[place], self._codes[place]
        entries = []
        for label, weight in weights.items():
            if label not in codes:
                raise ValueError(f"{label!r} is no label of {dimension.name!r}")
            if not 0.0 <= weight < np.inf:
                raise ValueError(f"the weight of {label!r} is {weight}, expected a finite number of 0 or more")
            if weight:
                entries.append((codes[label], float(weight)))
        numbers = self._numbers[place]
        return numbers.setdefault(tuple(sorted(entries)), len(numbers))

    def add(self, id: int, rows: Sequence[int], quality: int) -> None:
        """Append one page: its row in each dimension and the place of its quality (-1: unknown)."""
        if not 0 <= id <= LARGEST_ID:
            raise ValueError(f"page ids are from 0 to {LARGEST_ID}")
        self._ids.append(id)
        self._quality.append(quality)
        for of_page, row in zip(self._of_page, rows, strict=True):
            of_page.append(row)

    def finish(self) -> Pages:
        """All pages in the order of their ids; the first of those with the same id."""
        ids, first = np.unique(np.frombuffer(self._ids, np.int64), return_index=True)
        rows = tuple(
            _rows(np.frombuffer(of_page, np.int32)[first], list(numbers))
            for of_page, numbers in zip(self._of_page, self._numbers, strict=True)
        )
        return Pages(self.dimensions, ids, rows, np.frombuffer(self._quality, np.int8)[first])


def _rows(of_page: NDArray[np.int32], distinct: Sequence[tuple[tuple[int, float], ...]]) -> AlignmentRows:
    counts = np.array([len(row) for row in distinct], np.int64)
    entries = [entry for row in distinct for entry in row]
    return AlignmentRows(
        of_page=of_page,
        starts=np.cumsum(counts) - counts,
        counts=counts,
        codes=np.array([code for code, _ in entries], np.int64),
        weights=np.array([weight for _, weight in entries], np.float64),
        widest=int(counts.max(initial=0)),
        plain=all(len(row) == 1 and row[0][1] == 1.0 for row in distinct),
    )
