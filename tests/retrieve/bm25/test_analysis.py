"""Analyzers without Java, and word breaks: Lucene's terms by a golden file, stems, case, rules, long words."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.errors import DataError, SettingsError
from fairagent.retrieve.bm25 import analysis as words
from fairagent.retrieve.bm25.analysis import (
    ASCII,
    LONGEST,
    NOT_WESTERN,
    WESTERN,
    lower,
    open_analyzer,
    split_words,
)

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


def test_half_of_a_surrogate_pair_and_unknown_analyzers_are_refused():
    with pytest.raises(DataError, match=r"half of a surrogate pair .* near 'x.ud800y'"):
        open_analyzer("english").terms("x\ud800y")
    for name in ("klingon", "English"):
        with pytest.raises(SettingsError, match=f"no analyzer '{name}'; known: english, english-nostem, whitespace"):
            open_analyzer(name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # What Lucene's StandardTokenizer gives, beside the golden texts.
        ("3,000.5 3;5 3:5 v1.2 1.a a.1", ["3,000.5", "3;5", "3", "5", "v1.2", "1", "a", "a", "1"]),
        ("a_b _a __ a__ _1_ foo::bar", ["a_b", "_a", "a__", "_1_", "foo", "bar"]),
        ('צה"ל ג\'ורג\' א"ב"ג', ['צה"ל', "ג'ורג'", 'א"ב', "ג"]),
        ("ℹabc Ⓜ️\u200d😀 Ⓜ️\u200dⓂ️abc", ["ℹabc", "Ⓜ️\u200d😀", "Ⓜ️\u200dⓂ️abc"]),
        ("𝐚𝐛 𝟏,𝟐 \t\n\0?!", ["𝐚𝐛", "𝟏,𝟐"]),
    ],
)
def test_words_of_a_text(text, expected):
    assert split_words(text) == expected


@pytest.mark.parametrize("fast", [ASCII, WESTERN])
@given(st.data())
def test_the_fast_patterns_give_what_the_general_one_does(fast, data):
    text = data.draw(st.text("aZ09 _.,:;'\"-#*\n" if fast is ASCII else "aAé1 _.,:;'’‘-ß“…"))
    assert not NOT_WESTERN.search(text)
    assert fast.findall(text) == words._pattern(True, True).findall(text)


def test_every_western_character_is_of_one_class_in_both_patterns():
    for character in map(chr, range(0x3000)):
        if not NOT_WESTERN.search(character):
            for text in (f"a{character}a", f"1{character}1", character, f"{character}a", f"a{character}"):
                assert WESTERN.findall(text) == words._pattern(False, False).findall(text), ascii(text)


@given(st.text("aב'\".1_ ×カ\u0301\u200d\ufe0f☝Ⓜ漢ก"))
def test_texts_without_characters_beyond_the_first_plane_have_one_set_of_words(text):
    general = words._pattern(True, True).findall(text)
    assert words._pattern(False, True).findall(text) == general
    if "ב" not in text:
        assert words._pattern(False, False).findall(text) == words._pattern(True, False).findall(text) == general


@pytest.mark.parametrize("letter", ["a", "א"])
def test_a_long_word_is_cut(letter):
    text = letter * (2 * LONGEST + 1)
    assert split_words(text + " " + letter) == [letter * LONGEST, letter * LONGEST, letter, letter]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # 255 UTF-16 units end within the 128th pair; what a cut word leaves begins anew.
        ("𝐚" * 128, ["𝐚" * 127, "𝐚"]),
        ("a" + "𝐚" * 128, ["a" + "𝐚" * 127, "𝐚"]),
        ("a" * 254 + "'b", ["a" * 254, "b"]),
        ("_" * 300 + "a", ["_" * 254 + "a"]),
        ("_" * 600, []),
    ],
)
def test_a_long_word_is_cut_by_utf16_units(text, expected):
    assert split_words(text) == expected
