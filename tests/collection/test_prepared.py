"""What `init` makes of files that fairagent cannot read as they are: encodings, ids, topics."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from fairagent.collection.look import guessed_encoding
from fairagent.collection.qrels import has_topics, topic_records
from fairagent.collection.records import Faults
from fairagent.errors import UsageError

WORDS = "id,text,group\n1,Der Zug fährt über die Brücke,süd\n2,“Ça va” – 5 €,nord\n"
FORMS = """
<top>
<num> Number: 301
<title> International Organized Crime

<desc> Description:
Identify organizations that participate in
international criminal activity.

<narr> Narrative:
A relevant document must say so.
</top>

<top>
<head> Tipster Topic Description
<num> Number:  051
<dom> Domain:  International Economics
<title> Topic:  Airbus &amp; Subsidies
<desc> Description:
Document will discuss.
</top>
<top><num>9</num><title></title><desc>A description alone</desc></top>
"""
XML = """<?xml version="1.0"?>
<topics task="x"><topic number="1"><query>virus origin</query><question>Where from?</question></topic>
<topic number="2" type="faceted"><query>q two</query><subtopic number="1">not this</subtopic></topic></topics>"""


SMART = ".I 1\n.W\nwhat laws\n?\n.I 007\n.T\nA title\n.A\nSomebody\n"


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize(
    ("content", "found"),
    [
        (WORDS.encode(), ()),
        (WORDS.encode("utf-16"), ("utf-16",)),
        (WORDS.encode("utf-16-le"), ("utf-16-le",)),
        (WORDS.encode("cp1252"), ("utf-8", "cp1252", "latin-1")),
        (WORDS.encode() * 3 + WORDS.encode("cp1252"), ("utf-8", "cp1252", "latin-1")),
    ],
)
def test_encodings_are_guessed(
    tmp_path: Path, content: bytes, found: tuple[str, ...], pack: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "words.csv"
    path.write_bytes(pack(content))
    assert guessed_encoding(path) == found
    path.write_bytes(pack("Привет, мир".encode("koi8-r")))
    with pytest.raises(UsageError, match="--encoding"):
        guessed_encoding(path)


def test_topics_in_several_forms(tmp_path: Path) -> None:
    first, second, third = topics_of(tmp_path, FORMS)
    assert first == {
        "id": "301",
        "query": "International Organized Crime",
        "description": "Identify organizations that participate in international criminal activity.",
        "narrative": "A relevant document must say so.",
    }
    assert (second["id"], second["query"]) == ("051", "Airbus & Subsidies")
    assert (third["id"], third["query"]) == ("9", "A description alone")
    assert topics_of(tmp_path, XML, "utf-16") == [
        {"id": "1", "query": "virus origin", "description": "Where from?"},
        {"id": "2", "query": "q two"},
    ]
    assert topics_of(tmp_path, SMART) == [{"id": "1", "query": "what laws ?"}, {"id": "007", "query": "A title"}]
    for other in ("<DOC>", '{"id": 1}', '{"text": "<topic> is a tag"}', ".Index 1"):
        (tmp_path / "topics").write_text(other, encoding="utf-8")
        assert not has_topics(tmp_path / "topics")


def topics_of(folder: Path, text: str, encoding: str = "utf-8") -> list[dict[str, str]]:
    path, faults = folder / "topics", Faults()
    path.write_bytes(bz2.compress(text.encode(encoding)))
    assert has_topics(path, [encoding])
    found = [record for _, record in topic_records(path, faults, [encoding])]
    faults.check("topics")
    return found
