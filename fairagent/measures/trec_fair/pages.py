"""Pages as arrays: ids, one alignment row per dimension, and quality classes; and the track's dimensions.

Millions of pages share few alignment rows, so a dimension keeps its distinct rows once, and each page the
number of its row. An alignment is label -> weight (> 0), made of the raw value of a metadata field (None where the
record lacks it) by a rule, which raises ValueError for another form than the track's.
Source: TREC Fair Ranking 2022 and 2021, PageAlignments and Alignments.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairagent.errors import DataError, UsageError
from fairagent.settings.faults import no_such
from fairagent.types import UNKNOWN, FloatArray

TOLERANCE = 1e-6
"""How far from 1 a background may add up; the track's own of 2021 is off by 4e-10, and used as it is."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """One fairness dimension: its `labels` in column order, with `UNKNOWN`, where it has one, first.

    `background` are the world's shares of the known labels (all but the first), in their order; a dimension that has
    one is averaged with it in targets. Raises UsageError where the labels are not distinct, `UNKNOWN` is not first, or
    the background has no share for each known label or does not add up to 1 (within 1e-6).
    """

    name: str
    labels: tuple[str, ...]
    background: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if not self.labels or len(set(self.labels)) < len(self.labels):
            raise UsageError(f"dimension {self.name!r}: expected one or more distinct labels, got {self.labels}")
        if UNKNOWN in self.labels[1:]:
            raise UsageError(f"dimension {self.name!r}: {UNKNOWN} has to be the first label")
        if self.background is None:
            return
        if self.labels[0] != UNKNOWN or len(self.background) != len(self.labels) - 1:
            raise UsageError(
                f"dimension {self.name!r}: a background needs {UNKNOWN} first, and a share for each other label"
            )
        total = math.fsum(self.background)
        if not (min(self.background) >= 0.0 and abs(total - 1.0) <= TOLERANCE):
            raise UsageError(f"dimension {self.name!r}: the background's shares add up to {total:g}, expected 1")

    @property
    def averaged(self) -> bool:
        """Whether targets are averaged with the world's shares in this dimension."""
        return self.background is not None


QUALITIES = ("Stub", "Start", "C", "B", "GA", "FA")
"""The quality classes of articles, the one that needs most work first (Task 2)."""

OCEANIA = frozenset(("Australia and New Zealand", "Melanesia", "Micronesia", "Polynesia"))
"""Regions of the metadata that the track counts as Oceania."""

INHABITANTS = {
    "Antarctica": 1_106,
    "Caribbean": 42_517_000,
    "Central America": 167_387_000,
    "Central Asia": 64_370_000,
    "Eastern Africa": 373_202_000,
    "Eastern Asia": 1_620_807_000,
    "Eastern Europe": 294_162_000,
    "Middle Africa": 135_750_000,
    "Northern Africa": 210_002_000,
    "Northern America": 355_361_000,
    "Northern Europe": 100_404_000,
    "Oceania": 38_304_000,
    "South America": 406_740_000,
    "South-eastern Asia": 618_793_000,
    "Southern Africa": 60_425_000,
    "Southern Asia": 1_749_046_000,
    "Southern Europe": 155_827_000,
    "Western Africa": 331_255_000,
    "Western Asia": 245_707_000,
    "Western Europe": 192_060_000,
}
"""The people of the 20 regions of the world (the track's world-pop.csv of 2022)."""

OCCUPATIONS = (
    *("activist", "agricultural worker", "artist", "athlete", "biologist", "businessperson", "chemist"),
    *("civil servant", "clergyperson", "computer scientist", "designer", "earth scientist", "educator", "engineer"),
    *("health professional", "humanities scholar", "information professional", "journalist", "jurist", "linguist"),
    *("mathematician", "media professional", "military personnel", "musician", "performing artist", "physicist"),
    *("politician", "scientist", "social scientist", "sportsperson (non-athlete)", "transportation occupation"),
    "writer",
)
_REGIONS = (UNKNOWN, *INHABITANTS)
_WORLD = tuple(people / sum(INHABITANTS.values()) for people in INHABITANTS.values())

DIMENSIONS_2022 = (
    Dimension("sub-geo", _REGIONS, _WORLD),
    Dimension("src-geo", _REGIONS, _WORLD),
    Dimension("gender", (UNKNOWN, "female", "male", "NB"), (0.495, 0.495, 0.01)),
    Dimension("occ", (UNKNOWN, *OCCUPATIONS)),
    Dimension("alpha", ("a-d", "e-k", "l-r", "s-")),
    Dimension("age", ("2001-2006", "2007-2011", "2012-2016", "2017-2022")),
    Dimension("pop", ("High", "Low", "Medium-High", "Medium-Low")),
    Dimension("langs", ("2-4 languages", "5+ languages", "English only")),
)
"""The eight dimensions that the public evaluation of 2022 uses, in its order; those with a background first.

Geography of the subject and of the sources, gender, occupation, first letter, age of the article, page views,
and number of languages.
"""

SUBSETS_2022 = {
    "2021": ("sub-geo", "gender"),
    "internal": ("alpha", "age", "pop", "langs"),
    "demographic": ("sub-geo", "src-geo", "gender", "occ"),
}
"""The combinations of dimensions that the official evaluation reports beside all eight and each alone."""

CONTINENTS = {
    "Africa": 0.155070563,
    "Antarctica": 1.54424e-07,
    "Asia": 0.600202585,
    "Europe": 0.103663858,
    "Latin America and the Caribbean": 0.08609797,
    "Northern America": 0.049616733,
    "Oceania": 0.005348137,
}
DIMENSIONS_2021 = (
    Dimension("geo", (UNKNOWN, *CONTINENTS), tuple(CONTINENTS.values())),
    Dimension("gender", (UNKNOWN, "female", "male", "third"), (0.495, 0.495, 0.01)),
)
"""The dimensions of 2021: continents, and the gender that was not disclosed before the evaluation."""


IntArray = NDArray[np.int64]


def find(numbers: IntArray, wanted: IntArray) -> IntArray:
    """The place of each of `wanted` (n,) among `numbers` (p,), which are distinct and rising; -1 where it is not there.

    >>> find(np.array([3, 7, 8]), np.array([8, 4, 3])).tolist()
    [2, -1, 0]
    """
    places = numbers.searchsorted(wanted)
    there = places < numbers.size
    there[there] = numbers[places[there]] == wanted[there]
    return np.where(there, places, -1)


LARGEST_ID = 2**31 - 1
"""The track keeps page ids as 32-bit integers."""


@dataclass(frozen=True, slots=True, eq=False)
class AlignmentRows:
    """The alignment rows of one dimension: page p has row `of_page[p]`.

    Row r holds the labels `codes[starts[r] : starts[r] + counts[r]]`, each once, with these `weights` (> 0). `widest`
    is the largest count; `plain`: each row is one label with the weight 1.
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

    `rows` has one entry a dimension; `quality` (p,) is the place of a page's class in `QUALITIES`, -1 where not known.
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
        """Pages from (id, dimension -> label -> weight, quality); of several entries of one page the first counts.

        Raises DataError for a label that a dimension does not have, a weight that is negative, nan or infinite, an
        unknown quality and an id outside 0 .. 2^31 - 1.

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
            raise UsageError(no_such("dimension", name, names))
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


_CIS_TRANS = re.compile(r"(?:tran|ci)sgender\s+((?:fe)?male)")

NO_GENDER_2021 = "Taira no Kiyomori"
"""A person's name that stands as a gender in the metadata of 2021; the track leaves it out."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """The weights of a page's labels in one dimension, and the labels that the dimension does not have."""

    weights: Mapping[str, float]
    unrecognized: tuple[str, ...] = ()


def shared_out(value: Any, dimension: Dimension) -> Alignment:
    """Occupations, or where the subject is: each counts 1, regions of Oceania together, divided by the sum.

    >>> regions, occupations = DIMENSIONS_2022[0], DIMENSIONS_2022[3]
    >>> shared_out(["Melanesia", "Polynesia", "Caribbean", "Western Asia"], regions).weights
    {'Oceania': 0.5, 'Caribbean': 0.25, 'Western Asia': 0.25}
    >>> shared_out(["chemist", "jurist", "chemist", "alchemist"], occupations)
    Alignment(weights={'chemist': 0.5, 'jurist': 0.5}, unrecognized=('alchemist',))
    """
    return _shares(dict.fromkeys(_labels(value), 1.0), dimension)


def source_regions(value: Any, dimension: Dimension) -> Alignment:
    """Where the sources are: region -> count, `UNK` being unknown, divided by the sum; no source is unknown.

    >>> source_regions({"UNK": 1, "Western Asia": 3}, DIMENSIONS_2022[1]).weights
    {'@UNKNOWN': 0.25, 'Western Asia': 0.75}
    """
    counts = {} if value is None else value
    if not isinstance(counts, Mapping):
        raise ValueError(f"expected region -> count, not {value!r}")
    for region, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int | float) or not 0 <= count < math.inf:
            raise ValueError(f"the count of {region!r} is {count!r}, expected a number of 0 or more")
    return _shares(
        {UNKNOWN if region == "UNK" else region: float(count) for region, count in counts.items()}, dimension
    )


def genders(value: Any, dimension: Dimension) -> Alignment:
    """The genders of the people a page is about, each with weight 1: a page with two has a row that sums to 2.

    Transgender and cisgender men and women are men and women; whatever else is named is the last label.

    >>> genders(["transgender female", "non-binary"], DIMENSIONS_2022[2]).weights
    {'female': 1.0, 'NB': 1.0}
    """
    listed = _labels(value)
    if not listed:
        return Alignment({UNKNOWN: 1.0})
    plain = [_CIS_TRANS.sub(r"\1", gender) for gender in listed if gender != NO_GENDER_2021]
    return Alignment({gender if gender in dimension.labels else dimension.labels[-1]: 1.0 for gender in plain})


def category(value: Any, dimension: Dimension) -> Alignment:
    """One of a dimension's labels, with weight 1. A page without one has no weight at all in this dimension.

    >>> category("s-", DIMENSIONS_2022[4]).weights, category(None, DIMENSIONS_2022[4]).weights
    ({'s-': 1.0}, {})
    """
    if value is None:
        return Alignment({})
    if not isinstance(value, str):
        raise ValueError(f"expected one of {', '.join(dimension.labels)}, not {value!r}")
    return Alignment({value: 1.0}) if value in dimension.labels else Alignment({}, (value,))


def continents(value: Any, dimension: Dimension) -> Alignment:
    """The continents of 2021, each with weight 1 and NOT divided by their number; none is unknown.

    >>> continents(["Asia", "Europe"], DIMENSIONS_2021[0]).weights
    {'Asia': 1.0, 'Europe': 1.0}
    """
    listed = _labels(value)
    weights = {label: 1.0 for label in listed if label in dimension.labels}
    return Alignment(weights or {UNKNOWN: 1.0}, _unrecognized(listed, dimension))


@dataclass(frozen=True, slots=True)
class Rule:
    """How one dimension is read: from which field of a record, and by which function."""

    dimension: Dimension
    field: str
    align: Callable[[Any, Dimension], Alignment]


_FIELDS_2022: dict[str, Callable[[Any, Dimension], Alignment]] = {
    "page_subcont_regions": shared_out,
    "source_subcont_regions": source_regions,
    "gender": genders,
    "occupations": shared_out,
    "first_letter_category": category,
    "creation_date_category": category,
    "relative_pageviews_category": category,
    "num_sitelinks_category": category,
}
RULES_2022 = tuple(map(Rule, DIMENSIONS_2022, _FIELDS_2022, _FIELDS_2022.values()))
RULES_2021 = (Rule(DIMENSIONS_2021[0], "geographic_locations", continents), Rule(DIMENSIONS_2021[1], "gender", genders))
QUALITY_FIELD = {2021: "quality_score_disc", 2022: "qual_cat"}
"""The field with a page's quality class, by year."""


def _shares(counts: Mapping[str, float], dimension: Dimension) -> Alignment:
    merged: dict[str, float] = {}
    for label, count in counts.items():
        label = "Oceania" if label in OCEANIA else label
        if label in dimension.labels and count:
            merged[label] = merged.get(label, 0.0) + count
    total = math.fsum(merged.values())
    shares = {label: count / total for label, count in merged.items()} if merged else {UNKNOWN: 1.0}
    return Alignment(shares, _unrecognized(counts, dimension))


def _unrecognized(labels: Mapping[str, float] | tuple[str, ...], dimension: Dimension) -> tuple[str, ...]:
    regions = "Oceania" in dimension.labels
    return tuple(x for x in labels if x not in dimension.labels and not (regions and x in OCEANIA))


def _labels(value: Any) -> tuple[str, ...]:
    """The distinct labels of a list, in order; none for None."""
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or not all(isinstance(label, str) for label in value):
        raise ValueError(f"expected a list of labels, not {value!r}")
    return tuple(dict.fromkeys(value))
