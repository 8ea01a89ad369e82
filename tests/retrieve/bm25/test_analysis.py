"""Analyzers without Java: Lucene's terms by a golden file, stems, case, stop words, names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.errors import DataError, SettingsError
from fairagent.retrieve.bm25.analysis import NAMES, WordAnalyzer, lower, open_analyzer

GOLDEN = [json.loads(line) for line in Path(__file__).with_name("lucene_terms.jsonl").read_text("ascii").splitlines()]
"""What Lucene's analyzers make of texts (benchmarks/analysis.py golden)."""


@pytest.mark.parametrize("name", ["english", "english-nostem", "whitespace"])
def test_terms_are_those_of_lucene(name):
    analyzer = open_analyzer(name)
    cases = [case for case in GOLDEN if case["analyzer"] == name]
    assert len(cases) >= 100
    for case in cases:
        assert analyzer.terms(case["text"]) == case["terms"], ascii(case["text"])


STEMS = [
    # Two rules that Porter added, as Lucene has them; what has no vowel and consonant before, or another rule's ending.
    ("possibly", "possibl"),
    ("sociologiness", "sociologi"),
    ("trekked", "trek"),
    ("ahhing", "ah"),
    # Words of two letters stay.
    ("us", "us"),
    ("ox's", "ox"),
    ("naïvely", "naïv"),
    ("Skies", "ski"),
    ("It’S", ""),
    ("o'clock's", "o'clock"),
]


@pytest.mark.parametrize(("word", "term"), STEMS)
def test_the_term_of_a_word(word, term):
    assert open_analyzer("english").term(word) == term


def test_lower_case_is_by_character():
    assert [lower(word) for word in ("İstanbul", "ΟΔΟΣ", "ẞ", "ǅ", "ABC")] == ["istanbul", "οδοσ", "ß", "ǆ", "abc"]


@given(st.text(), st.sampled_from(NAMES))
def test_terms_are_the_terms_of_the_words(text, name):
    analyzer = open_analyzer(name)
    assert isinstance(analyzer, WordAnalyzer)
    assert analyzer.name == name
    assert analyzer.terms(text) == [term for term in map(analyzer.term, analyzer.split(text)) if term]


def test_white_space_is_what_java_holds_for_it():
    assert open_analyzer("whitespace").terms("a\u00a0b\x85c\x1cd\u2007e\u3000f\u180eg") == [
        "a\u00a0b\x85c",
        "d\u2007e",
        "f\u180eg",
    ]


@pytest.mark.parametrize("name", ["english"])
def test_half_of_a_surrogate_pair_is_refused(name):
    with pytest.raises(DataError, match=r"half of a surrogate pair .* near 'x.ud800y'"):
        open_analyzer(name).terms("x\ud800y")


@pytest.mark.parametrize("name", ["klingon", "English"])
def test_an_unknown_analyzer_is_refused_naming_the_known_ones(name):
    with pytest.raises(SettingsError, match=f"no analyzer '{name}'") as error:
        open_analyzer(name)
    for known in ("english, english-nostem, whitespace", "snowball-german", "english-krovetz"):
        assert known in str(error.value)
