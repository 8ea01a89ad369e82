"""Stored documents of several forms."""

from __future__ import annotations

import pytest

from fairagent.guests.lucene.bm25 import parsed
from fairagent.guests.lucene.java import start_java


@pytest.mark.parametrize(
    ("stored", "title", "text"),
    [
        ('{"id": "1", "contents": "A city."}', "", "A city."),
        ('{"_id": "1", "title": "Bonn", "text": "A city."}', "Bonn", "A city."),
        ("A city.", "", "A city."),
        ("<DOC><DOCNO> 1 </DOCNO><TEXT>A <b>city</b>.</TEXT></DOC>", "", "1 A city."),
    ],
)
def test_title_and_text(stored, title, text):
    start_java()
    found = parsed("1", stored)
    assert (found.id, found.title, found.text) == ("1", title, text)


def test_other_fields_are_kept_but_for_ids_and_vectors():
    stored = '{"id": "1", "contents": "A city.", "vector": {"city": 3}, "url": "x"}'
    assert parsed("1", stored).extra == {"url": "x"}
