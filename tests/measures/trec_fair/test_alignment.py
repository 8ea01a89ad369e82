from __future__ import annotations

from typing import Any

import pytest

from fairagent.measures.trec_fair import RULES_2021, RULES_2022, Rule
from fairagent.types import UNKNOWN

RULES = {rule.dimension.name: rule for rule in RULES_2022}
GEO_2021, GENDER_2021 = RULES_2021


def aligned(rule: Rule, value: Any) -> dict[str, float]:
    return dict(rule.align(value, rule.dimension).weights)


@pytest.mark.parametrize(
    ("name", "value", "weights"),
    [
        ("sub-geo", None, {UNKNOWN: 1.0}),
        ("sub-geo", ["Australia and New Zealand", "Melanesia", "Micronesia", "Polynesia"], {"Oceania": 1.0}),
        ("sub-geo", ["Polynesia", "Micronesia", "Caribbean"], {"Oceania": 2 / 3, "Caribbean": 1 / 3}),
        ("src-geo", {"UNK": 5}, {UNKNOWN: 1.0}),
        ("src-geo", {"UNK": 1, "Melanesia": 2, "Polynesia": 1}, {UNKNOWN: 0.25, "Oceania": 0.75}),
        ("gender", [], {UNKNOWN: 1.0}),
        ("gender", ["transgender male", "cisgender female"], {"male": 1.0, "female": 1.0}),
        ("gender", ["non-binary", "genderfluid"], {"NB": 1.0}),
        ("occ", ["jurist", "writer", "jurist"], {"jurist": 0.5, "writer": 0.5}),
        ("langs", None, {}),
    ],
)  # fmt: skip
def test_alignments_of_2022(name: str, value: Any, weights: dict[str, float]) -> None:
    assert aligned(RULES[name], value) == weights


def test_alignments_of_2021_are_not_divided_by_their_number() -> None:
    assert aligned(GEO_2021, ["Asia", "Europe"]) == {"Asia": 1.0, "Europe": 1.0}
    assert aligned(GEO_2021, None) == aligned(GEO_2021, []) == {UNKNOWN: 1.0}
    assert aligned(GENDER_2021, None) == {UNKNOWN: 1.0}
    assert aligned(GENDER_2021, ["transgender female", "intersex"]) == {"female": 1.0, "third": 1.0}
    assert aligned(GENDER_2021, ["Taira no Kiyomori"]) == {}  # a person's name in the track's data


@pytest.mark.parametrize(
    ("name", "value", "weights", "strange"),
    [
        ("sub-geo", ["Atlantis", "Caribbean"], {"Caribbean": 1.0}, ("Atlantis",)),
        ("src-geo", {"Atlantis": 9, "Caribbean": 1}, {"Caribbean": 1.0}, ("Atlantis",)),
        ("occ", ["alchemist", "Melanesia"], {UNKNOWN: 1.0}, ("alchemist", "Melanesia")),
    ],
)
def test_labels_that_are_none_are_named_and_count_for_nothing(
    name: str, value: Any, weights: dict[str, float], strange: tuple[str, ...]
) -> None:
    found = RULES[name].align(value, RULES[name].dimension)
    assert (found.weights, found.unrecognized) == (weights, strange)


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
