"""Word breaks: the rules one by one, the same words from every pattern, long words, time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairagent.retrieve.bm25 import analysis as words
from fairagent.retrieve.bm25.analysis import ASCII, LONGEST, NOT_WESTERN, WESTERN, split_words

FAMILY, SCOTLAND = "👨\u200d👩\u200d👧", "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"
# What Lucene's StandardTokenizer gives.
CASES = [
    ("", []),
    (" \t\n\0?!", []),
    ("U.S. can't", ["U.S", "can't"]),
    ("3,000.5 3;5 3:5 v1.2 1.a a.1", ["3,000.5", "3;5", "3", "5", "v1.2", "1", "a", "a", "1"]),
    ("a_b _a __ a__ _1_", ["a_b", "_a", "a__", "_1_"]),
    ("foo:bar foo: foo::bar", ["foo:bar", "foo", "foo", "bar"]),
    ("rock'n'roll l’été ’tis 'a' a''b", ["rock'n'roll", "l’été", "tis", "a", "a", "b"]),
    ("self-taught A&B 50% $3", ["self", "taught", "A", "B", "50", "3"]),
    ("cafe\u0301s soft\u00adhyphen \u0301x", ["cafe\u0301s", "soft\u00adhyphen", "x"]),
    ("col·lecció x×y ©2020 ªº", ["col·lecció", "x", "y", "©", "2020", "ªº"]),
    ("กาลครั้งหนึ่ง ລາວ ខ្មែរ", ["กาลครั้งหนึ่ง", "ລາວ", "ខ្មែរ"]),
    ("漢字かなカタカナ_ー한국어", ["漢", "字", "か", "な", "カタカナ_ー", "한국어"]),
    ("カナa カナ_a １２３", ["カナ", "a", "カナ_a", "１２３"]),
    ('צה"ל ג\'ורג\' א"ב"ג', ['צה"ל', "ג'ורג'", 'א"ב', "ג"]),
    (f"{FAMILY} 🇩🇪🇫🇷 🇩 1️⃣ #️⃣ # 👍🏽 {SCOTLAND}", [FAMILY, "🇩🇪", "🇫🇷", "1️⃣", "#️⃣", "👍🏽", SCOTLAND]),
    ("😀😀a ❤️", ["😀", "😀", "a", "❤️"]),
    ("ℹabc Ⓜ️\u200d😀 Ⓜ️\u200dⓂ️abc", ["ℹabc", "Ⓜ️\u200d😀", "Ⓜ️\u200dⓂ️abc"]),
    ("𝐚𝐛 𝟏,𝟐", ["𝐚𝐛", "𝟏,𝟐"]),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_words_of_a_text(text, expected):
    assert split_words(text) == expected


WESTERN_TEXTS = st.text("aAé1 _.,:;'’‘-ß“…")


@given(st.text("aZ09 _.,:;'\"-#*\n"))
def test_the_fast_pattern_of_ascii_gives_what_the_general_one_does(text):
    assert ASCII.findall(text) == words._pattern(True, True).findall(text)


@given(WESTERN_TEXTS)
def test_the_fast_pattern_of_western_texts_gives_what_the_general_one_does(text):
    assert not NOT_WESTERN.search(text)
    assert WESTERN.findall(text) == words._pattern(True, True).findall(text)


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
    assert split_words(text) == [letter * LONGEST, letter * LONGEST, letter]
    assert split_words(letter * LONGEST + " " + letter) == [letter * LONGEST, letter]


def test_a_long_word_is_cut_by_utf16_units():
    # 255 units end within the 128th pair.
    assert split_words("𝐚" * 128) == ["𝐚" * 127, "𝐚"]
    assert split_words("a" + "𝐚" * 128) == ["a" + "𝐚" * 127, "𝐚"]


def test_what_a_cut_word_leaves_begins_anew():
    assert split_words("a" * 254 + "'b") == ["a" * 254, "b"]
    assert split_words("_" * 300 + "a") == ["_" * 254 + "a"]
    assert split_words("_" * 600) == []
