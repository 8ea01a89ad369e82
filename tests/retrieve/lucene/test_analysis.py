"""Analyzers: names, what they make of texts, and that no term is lost on the way from Java."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairagent.errors import BackendUnavailable, DataError, SettingsError
from fairagent.retrieve.java import java_class, start_java, using_java
from fairagent.retrieve.lucene import LuceneRetriever, build_index
from fairagent.retrieve.lucene.analysis import LONGEST_WORD, Analyzer
from fairagent.types import Document, Query

from ..conftest import Made

TEXT = "The Lawyers' organizations, universities' and WOMEN"
TERMS = [
    ("english", ["lawyer", "organ", "univers", "women"]),
    ("english-krovetz", ["lawyer", "organization", "university", "women"]),
    ("english-nostem", ["lawyers", "organizations", "universities", "women"]),
    ("whitespace", ["The", "Lawyers'", "organizations,", "universities'", "and", "WOMEN"]),
]


@pytest.mark.parametrize(("name", "terms"), TERMS)
def test_terms(name, terms):
    assert Analyzer(name).terms(TEXT) == terms


def test_repeated_terms_repeat_in_order():
    assert Analyzer("english").terms("court law court the law courts") == ["court", "law", "court", "law", "court"]


@pytest.mark.parametrize("text", ["", " ", "the", "\0", "?!", "the " * 100])
def test_texts_without_terms(text):
    assert Analyzer("english").terms(text) == []


@pytest.mark.parametrize("name", ["klingon", "", "English", "EN"])
def test_an_unknown_analyzer_is_refused_naming_the_known_ones(name):
    with pytest.raises(SettingsError, match=f"no analyzer '{name}'") as error:
        Analyzer(name)
    for known in ("english, english-krovetz, english-nostem, whitespace", "ar, bn, da, de", "zh"):
        assert known in str(error.value)


LANGUAGES = {
    "ar": ("المحامون في القاهرة", "محامون"),
    "de": ("Die Richter gingen", "Richtern"),
    "fi": ("Asianajajat oikeudessa", "asianajaja"),
    "fr": ("Les avocates d'Été", "avocate"),
    "hi": ("वकीलों की अदालत", "वकील"),
    "ja": ("彼女は弁護士だった", "弁護士"),
    "ko": ("그녀는 변호사였다", "변호사"),
    "pl": ("Prawniczki sądowe", "prawniczka"),
    "ru": ("адвокаты в Москве", "адвокат"),
    "tr": ("avukatlar", "avukat"),
    "zh": ("她是一位律師", "律師"),
}


@pytest.mark.parametrize("name", LANGUAGES)
def test_a_language_code_finds_a_word_in_another_form(tmp_path, name):
    text, word = LANGUAGES[name]
    build_index(Made((Document("d1", text), Document("d2", "something else"))), tmp_path / "index", name)
    retriever = LuceneRetriever(tmp_path / "index")
    assert retriever.search(Query(word), 5).ids == ("d1",)
    assert retriever.document_frequency(word) == 1


def test_an_analyzer_that_this_java_cannot_run_says_so():
    start_java()
    with using_java():
        thai = java_class("org.apache.lucene.analysis.th.ThaiTokenizer").DBBI_AVAILABLE
    if thai:
        assert "ทนายความ" in Analyzer("th").terms("เธอเป็นทนายความ")
    else:
        with pytest.raises(BackendUnavailable, match=r"'th' does not work with .*; set JAVA_HOME to a full Java 21"):
            Analyzer("th")


# --- the way from Java


@pytest.mark.parametrize(
    "text", ["a, b", ", ,, ,,, a,", "[a] [ ]", "a,b", ",", ", " * 50, "x" * 200, "[", "]" * 60 + " ,"]
)
def test_commas_and_brackets_do_not_split_terms(text):
    assert Analyzer("whitespace").terms(text) == text.split()


@given(st.text("ab,[] \t\n.é日🙂", max_size=2 * LONGEST_WORD))
@settings(max_examples=50)
def test_the_whitespace_analyzer_is_split(text):
    assert Analyzer("whitespace").terms(text) == text.split()


def test_an_index_of_terms_with_commas(tmp_path):
    build_index(
        Made((Document("d1", "one, two ,three [four]"), Document("d2", "one two"))), tmp_path / "i", "whitespace"
    )
    retriever = LuceneRetriever(tmp_path / "i")
    found = {
        word: retriever.search(Query(word), 5).ids for word in ("one,", "one", ",three", "three", "[four]", "four")
    }
    assert found == {"one,": ("d1",), "one": ("d2",), ",three": ("d1",), "three": (), "[four]": ("d1",), "four": ()}


def test_emoji_and_rare_characters_come_back_unharmed():
    text = "😀 𝔘𝔫𝔦 日本 \u200d é"
    assert Analyzer("whitespace").terms(text) == text.split()


def test_long_and_short_texts_are_analyzed_alike():
    analyzer = Analyzer("english")
    words = ["lawyers", "the", "organization's", "ANWÄLTIN", "1,000", "it's"] * 10
    assert analyzer.terms(" ".join(words)) == [term for word in words for term in analyzer.terms(word)]


def test_what_a_caller_does_with_terms_does_not_come_back():
    analyzer = Analyzer("english")
    analyzer.terms("lawyers").append("changed")
    assert analyzer.terms("lawyers") == ["lawyer"]


@pytest.mark.parametrize("text", ["\ud800", "lawyer " * 20 + "\udfff and so on"])
def test_half_a_surrogate_pair_is_no_text(text):
    with pytest.raises(DataError, match="half of a surrogate pair") as error:
        Analyzer("english").terms(text)
    assert str(error.value).isascii()
    assert len(str(error.value)) < 200
