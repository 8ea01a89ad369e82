from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.errors import DataError, UsageError
from fairagent.measures.trec_fair import (
    DIMENSIONS_2022,
    RULES_2021,
    RULES_2022,
    SUBSETS_2022,
    Dimension,
    Pages,
    Rule,
)
from fairagent.measures.trec_fair.pages import find
from fairagent.types import UNKNOWN

from ..laws import law

G = Dimension("g", (UNKNOWN, "f", "m"), (0.5, 0.5))
X = Dimension("x", ("a", "b"))


def test_pages_are_sorted_the_first_entry_counts_and_equal_rows_are_kept_once() -> None:
    pages = Pages.from_alignments(
        [G, X],
        [
            (30, {"g": {"f": 1.0}, "x": {"b": 1.0}}, "FA"),
            (4, {"g": {"f": 0.5, "m": 0.5}}, None),
            (30, {"g": {"m": 1.0}, "x": {"a": 1.0}}, "Stub"),
            (5, {"g": {UNKNOWN: 0.25, "m": 2.0}, "x": {"a": 0.0}}, "Stub"),
        ],
    )
    assert (len(pages), pages.ids.tolist(), pages.quality.tolist()) == (3, [4, 5, 30], [-1, 0, 5])
    assert pages.matrix("g").tolist() == [[0.0, 0.5, 0.5], [0.25, 0.0, 2.0], [0.0, 1.0, 0.0]]
    assert pages.matrix("x").tolist() == [[0.0, 0.0], [0.0, 0.0], [0.0, 1.0]]
    assert pages.dimension("x") is X
    pages = Pages.from_alignments([G], [(page, {"g": {"fm"[page % 2]: 1.0}}, None) for page in range(100)])
    assert len(pages.rows_of("g").counts) == 2
    assert pages.rows_of("g").plain


@pytest.mark.parametrize(
    ("page", "weights", "quality", "message"),
    [
        (7, {"x": 1.0}, None, "page 7: 'x' is no label of 'g'"),
        (7, {"f": -1.0}, None, "page 7: the weight of 'f' is -1.0, expected a finite number of 0 or more"),
        (7, {"f": 1.0}, "Great", "page 7: quality 'Great' is none of Stub, Start, C, B, GA, FA"),
        (-1, {"f": 1.0}, None, "page -1: page ids are from 0 to 2147483647"),
    ],
)
def test_what_is_no_page_is_refused(page: int, weights: dict[str, float], quality: str | None, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Pages.from_alignments([G], [(page, {"g": weights}, quality)])


RULES = {rule.dimension.name: rule for rule in RULES_2022}
GEO_2021, GENDER_2021 = RULES_2021


def aligned(rule: Rule, value: Any) -> dict[str, float]:
    return dict(rule.align(value, rule.dimension).weights)


@pytest.mark.parametrize(
    ("name", "value", "weights", "strange"),
    [
        ("sub-geo", ["Australia and New Zealand", "Melanesia", "Micronesia", "Polynesia"], {"Oceania": 1.0}, ()),
        ("src-geo", {"UNK": 1, "Melanesia": 2, "Polynesia": 1}, {UNKNOWN: 0.25, "Oceania": 0.75}, ()),
        ("gender", ["transgender male", "cisgender female"], {"male": 1.0, "female": 1.0}, ()),
        ("langs", None, {}, ()),
        ("sub-geo", ["Atlantis", "Caribbean"], {"Caribbean": 1.0}, ("Atlantis",)),
        ("src-geo", {"Atlantis": 9, "Caribbean": 1}, {"Caribbean": 1.0}, ("Atlantis",)),
        ("occ", ["alchemist", "Melanesia"], {UNKNOWN: 1.0}, ("alchemist", "Melanesia")),
    ],
)
def test_alignments_and_labels_that_are_none(
    name: str, value: Any, weights: dict[str, float], strange: tuple[str, ...]
) -> None:
    found = RULES[name].align(value, RULES[name].dimension)
    assert (found.weights, found.unrecognized) == (weights, strange)


def test_alignments_of_2021_are_not_divided_by_their_number() -> None:
    assert aligned(GEO_2021, ["Asia", "Europe"]) == {"Asia": 1.0, "Europe": 1.0}
    assert aligned(GEO_2021, None) == aligned(GENDER_2021, []) == {UNKNOWN: 1.0}
    assert aligned(GENDER_2021, ["Taira no Kiyomori", "intersex"]) == {"third": 1.0}  # a person's name in their data


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("sub-geo", "Caribbean", "expected a list of labels, not 'Caribbean'"),
        ("src-geo", ["Caribbean"], "expected region -> count"),
        ("src-geo", {"Caribbean": -1}, "expected a number of 0 or more"),
        ("alpha", ["a-d"], "expected one of a-d, e-k, l-r, s-, not"),
    ],
)
def test_values_of_another_form_are_refused(name: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        aligned(RULES[name], value)


def test_the_dimensions_have_the_track_s_sizes_order_and_shares() -> None:
    sizes = {dimension.name: len(dimension.labels) for dimension in DIMENSIONS_2022}
    assert sizes == {
        "sub-geo": 21, "src-geo": 21, "gender": 4, "occ": 33, "alpha": 4, "age": 4, "pop": 4, "langs": 3,
    }  # fmt: skip
    assert math.prod(sizes.values()) == 11_176_704
    assert [dimension.name for dimension in DIMENSIONS_2022 if dimension.averaged] == ["sub-geo", "src-geo", "gender"]
    assert {name for names in SUBSETS_2022.values() for name in names} == set(sizes)
    world = dict(zip(DIMENSIONS_2022[0].labels[1:], DIMENSIONS_2022[0].background or (), strict=True))
    assert world["Southern Asia"] == pytest.approx(0.244208, abs=5e-7)
    assert world["Antarctica"] == pytest.approx(1.544e-7, rel=1e-3)


@pytest.mark.parametrize(
    ("labels", "background", "message"),
    [
        (("a", "a"), None, "expected one or more distinct labels"),
        (("a", "b"), (0.5, 0.5), "needs @UNKNOWN first"),
        ((UNKNOWN, "a", "b"), (0.5, 0.3, 0.2), "needs @UNKNOWN first"),
        ((UNKNOWN, "a", "b"), (0.5, 0.4), "add up to 0.9"),
    ],
)
def test_a_wrong_dimension_is_refused(
    labels: tuple[str, ...], background: tuple[float, ...] | None, message: str
) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        Dimension("odd", labels, background)
    assert "'odd'" in str(caught.value)


@law
@given(st.sets(st.integers(0, 2**40)) | st.sets(st.integers(0, 300)), st.lists(st.integers(0, 2**41)))
def test_every_number_is_found_and_no_other(numbers: set[int], others: list[int]) -> None:
    ordered = sorted(numbers)
    wanted = [*ordered, *others, *(number + 1 for number in ordered)]
    expected = [ordered.index(number) if number in numbers else -1 for number in wanted]
    assert find(np.array(ordered, np.int64), np.array(wanted, np.int64)).tolist() == expected
