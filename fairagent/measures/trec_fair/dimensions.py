"""The fairness dimensions of the TREC Fair Ranking track: their labels in column order, and the world's shares."""

import math
from dataclasses import dataclass

from fairagent.errors import UsageError
from fairagent.types import UNKNOWN

TOLERANCE = 1e-6
"""How far from 1 a background may add up; the track's own of 2021 is off by 4e-10, and used as it is."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """One fairness dimension: its `labels` in column order, with `UNKNOWN`, where it has one, first.

    `background` are the world's shares of the known labels (all but the first), in their order; a dimension
    that has one is averaged with it in targets. Raises UsageError where the labels are not distinct, `UNKNOWN`
    is not first, or the background has no share for each known label or does not add up to 1 (within 1e-6).

    >>> Dimension("gender", ("@UNKNOWN", "female", "male"), (0.5, 0.5)).averaged
    True
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
                f"dimension {self.name!r}: a background needs {UNKNOWN} as first label and a share for each of the "
                f"others; there are {len(self.labels)} labels and {len(self.background)} shares"
            )
        total = math.fsum(self.background)
        if not (min(self.background) >= 0.0 and abs(total - 1.0) <= TOLERANCE):
            raise UsageError(
                f"dimension {self.name!r}: background shares of 0 or more that add up to 1 are expected, "
                f"these add up to {total:g}"
            )

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

DIMENSIONS_2021 = (
    Dimension(
        "geo",
        (
            UNKNOWN,
            "Africa",
            "Antarctica",
            "Asia",
            "Europe",
            "Latin America and the Caribbean",
            "Northern America",
            "Oceania",
        ),
        (0.155070563, 1.54424e-07, 0.600202585, 0.103663858, 0.08609797, 0.049616733, 0.005348137),
    ),
    Dimension("gender", (UNKNOWN, "female", "male", "third"), (0.495, 0.495, 0.01)),
)
"""The dimensions of 2021: continents, and the gender that was not disclosed before the evaluation."""
