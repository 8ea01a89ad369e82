"""`join_spellings`: which values of a column are the same label, and which say that there is none."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.collection.labels import join_spellings

WORDS = ["non-binary", "non binary", "Nonbinary", "DE", "A B", "AB", "C++", "c", "18-25", "ß", "US", "U.S.", "us", "h"]
WORDS += ["female", "male", "m", "f", "w", "d", "weiblich", "divers", "NA", "N/A", "na", "none", "unknown", "-", "+"]
WORDS += ["woman", "Man", "Mujer", "?"]
VALUES = st.one_of(
    st.sampled_from(WORDS),
    st.sampled_from(WORDS).map(lambda word: f" {word.upper()}."),
    st.sampled_from(WORDS).map(str.title),
    st.text("aAfFmM.-_ 1ßſ\u0301É/", min_size=1, max_size=5),
)
COLUMNS = st.dictionaries(VALUES, st.integers(1, 9), max_size=12)


def joined(values: dict[str, int], map: dict[str, tuple[str, ...]]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for value, count in values.items():
        for label in map.get(value, (value,)):
            counts[label] += count
    return dict(counts)


@given(COLUMNS, st.lists(VALUES, max_size=6))
def test_joined_labels_are_joined_no_further(values: dict[str, int], known: list[str]) -> None:
    for names in ((), known):
        once = joined(values, join_spellings(values, names).map)
        assert join_spellings(once, names).map == {}


@given(COLUMNS, st.lists(VALUES, max_size=6))
def test_two_known_names_are_never_joined(values: dict[str, int], known: list[str]) -> None:
    values = dict.fromkeys(known, 1) | values
    map = join_spellings(values, known).map
    assert not map.keys() & set(known)
    assert all(len(labels) <= 1 for labels in map.values())
    # Nothing is joined to a label that is neither in the column nor known.
    assert {label for labels in map.values() for label in labels} <= values.keys() | set(known)


def test_a_dirty_column() -> None:
    values = {"M": 4, "male": 9, "Male ": 2, "MALE": 1, "Female": 7, "female": 7, "f": 1}
    values |= {"N/A": 3, "unknown": 2, "prefer not to say": 2, "Prefer-not-to-say": 1, "-": 1, "other": 2}
    assert joined(values, join_spellings(values).map) == {"male": 16, "female": 15, "other": 2}


@pytest.mark.parametrize(
    ("values", "groups"),
    [
        ({"M": 9, "Male": 4, "Man": 2, "männlich": 1, "F": 7, "Woman": 3, "divers": 1}, ("Male", "Woman", "divers")),
        ({"w": 3, "weiblich": 2, "m": 4, "Mann": 1, "d": 1, "divers": 1}, ("weiblich", "Mann", "divers")),
        ({"H": 3, "M": 2, "Hombre": 4, "Mujer": 5}, ("Hombre", "Mujer")),
        ({"M": 3, "F": 2}, ("M", "F")),
        ({"M": 3, "Mujer": 2, "Hombre": 1}, ("M", "Mujer", "Hombre")),  # M may be masculino
        ({"female": 3, "woman": 2, "trans woman": 1}, ("female", "trans woman")),
    ],
)
def test_words_for_one_gender_are_one_label(values: dict[str, int], groups: tuple[str, ...]) -> None:
    assert set(joined(values, join_spellings(values).map)) == set(groups)


@pytest.mark.parametrize(
    "values",
    [
        {"Jersey": 9, "Man": 3, "Wales": 4, "woman": 1},  # no column of genders
        {"C": 3, "C++": 2, "C#": 1},
        {"AB": 3, "A B": 1},
        {"NA": 3, "DE": 2, "US": 4},  # Namibia
        {"+": 3, "-": 2},  # results of a test
        {"Nan": 1, "Na": 2, "Ada": 2},  # names
    ],
)
def test_what_stays_apart(values: dict[str, int]) -> None:
    assert join_spellings(values).map == {}


def test_what_is_in_doubt_is_said() -> None:
    for values, word in (
        ({"m": 3, "male": 2, "mixed": 2}, "'M' could be short for 'male' or 'mixed'"),
        ({"NA": 3, "DE": 2, "US": 4}, "'NA' stays a label"),
        ({"none": 3, "Jewish": 2}, "'none' is taken for no label"),
    ):
        (doubt,) = join_spellings(values).doubts
        assert word in doubt
