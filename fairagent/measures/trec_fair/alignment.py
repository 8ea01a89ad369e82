"""Page alignments: the label weights of one metadata record, dimension by dimension.

An alignment is label -> weight (> 0); what a rule does with labels it does not know is the same everywhere:
they count for nothing and are named in `unrecognized`. Each rule takes the raw value of a field, None where the
record lacks it, and raises ValueError where it has another form than the track's metadata.
Source: TREC Fair Ranking 2022 and 2021, PageAlignments and Alignments.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fairagent.measures.trec_fair.dimensions import DIMENSIONS_2021, DIMENSIONS_2022, OCEANIA, Dimension
from fairagent.types import UNKNOWN

_CIS_TRANS = re.compile(r"(?:tran|ci)sgender\s+((?:fe)?male)")

NO_GENDER_2021 = "Taira no Kiyomori"
"""A person's name that stands as a gender in the metadata of 2021; the track leaves it out."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """The weights of a page's labels in one dimension, and the labels that the dimension does not have."""

    weights: Mapping[str, float]
    unrecognized: tuple[str, ...] = field(default=())


def subject_regions(value: Any, dimension: Dimension) -> Alignment:
    """Where the subject is: each listed region counts 1, the four of Oceania together, divided by the sum.

    >>> regions = DIMENSIONS_2022[0]
    >>> subject_regions(["Melanesia", "Polynesia", "Caribbean", "Western Asia"], regions).weights
    {'Oceania': 0.5, 'Caribbean': 0.25, 'Western Asia': 0.25}
    >>> subject_regions([], regions).weights
    {'@UNKNOWN': 1.0}
    """
    return _shares(dict.fromkeys(_labels(value), 1.0), dimension)


def source_regions(value: Any, dimension: Dimension) -> Alignment:
    """Where the sources are: region -> count, `UNK` being unknown, divided by the sum; no source is unknown.

    >>> source_regions({"UNK": 1, "Western Asia": 3}, DIMENSIONS_2022[1]).weights
    {'@UNKNOWN': 0.25, 'Western Asia': 0.75}
    """
    counts = {} if value is None else value
    if not isinstance(counts, Mapping):
        raise ValueError(f"expected region -> count, found {value!r}")
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


def occupations(value: Any, dimension: Dimension) -> Alignment:
    """Occupations, 1 / k each for k of them.

    >>> occupations(["chemist", "jurist", "chemist", "alchemist"], DIMENSIONS_2022[3])
    Alignment(weights={'chemist': 0.5, 'jurist': 0.5}, unrecognized=('alchemist',))
    """
    return _shares(dict.fromkeys(_labels(value), 1.0), dimension)


def category(value: Any, dimension: Dimension) -> Alignment:
    """One of a dimension's labels, with weight 1. A page without one has no weight at all in this dimension.

    >>> category("s-", DIMENSIONS_2022[4]).weights, category(None, DIMENSIONS_2022[4]).weights
    ({'s-': 1.0}, {})
    """
    if value is None:
        return Alignment({})
    if not isinstance(value, str):
        raise ValueError(f"expected one of {', '.join(dimension.labels)}, found {value!r}")
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


RULES_2022 = tuple(
    Rule(dimension, field, align)
    for dimension, (field, align) in zip(
        DIMENSIONS_2022,
        (
            ("page_subcont_regions", subject_regions),
            ("source_subcont_regions", source_regions),
            ("gender", genders),
            ("occupations", occupations),
            ("first_letter_category", category),
            ("creation_date_category", category),
            ("relative_pageviews_category", category),
            ("num_sitelinks_category", category),
        ),
        strict=True,
    )
)
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
        raise ValueError(f"expected a list of labels, found {value!r}")
    return tuple(dict.fromkeys(value))
