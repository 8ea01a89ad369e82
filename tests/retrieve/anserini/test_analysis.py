"""Lucene's analyzers by name."""

from __future__ import annotations

import pytest

from fairagent.errors import BackendUnavailable, DataError, SettingsError
from fairagent.guests.lucene.bm25 import LuceneAnalyzer
from fairagent.retrieve.bm25.analysis import open_analyzer


@pytest.mark.parametrize(
    ("name", "text", "terms"),
    [
        ("english", "The lawyers' fees, lawyers", ["lawyer", "fee", "lawyer"]),
        ("english-krovetz", "lawyers and the cities", ["lawyer", "city"]),
        ("english-nostem", "The Lawyers", ["lawyers"]),
        ("whitespace", "The Lawyers,", ["The", "Lawyers,"]),
        ("de", "Die Häuser der Stadt", ["haus", "stadt"]),
        ("zh", "我爱北京", ["我爱", "爱北", "北京"]),
        ("fr", "les avocats", ["avocat"]),
        ("english", "the of", []),
        ("english", "words " * 20, ["word"] * 20),
    ],
)
def test_terms(name, text, terms):
    assert LuceneAnalyzer(name).terms(text) == terms
    assert open_analyzer(name).terms(text) == terms


def test_what_is_no_text_is_named():
    with pytest.raises(DataError, match="half of a surrogate pair"):
        LuceneAnalyzer("english").terms("a \ud800 b")


def test_names_that_are_none():
    with pytest.raises(SettingsError, match=r"no analyzer 'klingon'; known: english, .* codes ar, bn"):
        LuceneAnalyzer("klingon")
    with pytest.raises(BackendUnavailable, match="'th' does not work with this Java"):
        LuceneAnalyzer("th")
