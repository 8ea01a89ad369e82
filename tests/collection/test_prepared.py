"""What `init` makes of files that fairagent cannot read as they are: encodings, ids, topics."""

from __future__ import annotations

import bz2
import gzip
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from fairagent.collection.encodings import decoded, is_utf8
from fairagent.collection.named_datasets import write_dataset
from fairagent.collection.records import Faults
from fairagent.collection.topic_texts import has_topics, topic_records
from fairagent.errors import BackendUnavailable, UsageError

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


@pytest.mark.parametrize(
    ("encoding", "found", "how"), [("utf-16", "utf-16", "by its byte order mark"), ("cp1252", "cp1252", "guessed")]
)
@pytest.mark.parametrize("zipped", [False, True])
def test_encodings_are_guessed(tmp_path: Path, encoding: str, found: str, how: str, zipped: bool) -> None:
    path, content = tmp_path / "words.csv", WORDS.encode(encoding)
    path.write_bytes(gzip.compress(content) if zipped else content)
    assert not is_utf8(path)
    read = decoded(path)
    assert (read.text, read.encoding, read.how, read.mended) == (WORDS, found, how, ())
    assert str(read) == f"it is in {found} ({how}), not in UTF-8"


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


def row(**fields: str) -> SimpleNamespace:
    return SimpleNamespace(**fields, _asdict=lambda: dict(fields), default_text=lambda: fields["text"])


class DataSet:
    """What ir-datasets gives for a name; `away` is one whose files cannot be fetched."""

    has_docs = has_queries = has_qrels = lambda self: True

    def __init__(self, away: bool = False) -> None:
        self.away = away

    def docs_iter(self) -> list[SimpleNamespace]:
        if self.away:
            raise ConnectionError("the network is unreachable")
        return [row(doc_id="d1", text="A judge."), row(doc_id="d2", text="A court.")]

    def queries_iter(self) -> list[SimpleNamespace]:
        return [row(query_id="q1", text="local courts")]

    def qrels_iter(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(query_id="q1", doc_id="d2", relevance=1)]


def test_a_name_of_ir_datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sets, util = {"local": DataSet(), "away": DataSet(away=True)}, SimpleNamespace(home_path=lambda: tmp_path)
    monkeypatch.setitem(sys.modules, "ir_datasets", SimpleNamespace(load=sets.__getitem__, util=util))
    documents, topics, qrels = write_dataset("local", tmp_path)
    assert topics
    assert qrels
    read = [json.loads(line) for line in documents.read_text(encoding="utf-8").splitlines()]
    assert read == [{"id": "d1", "text": "A judge."}, {"id": "d2", "text": "A court."}]
    topic = {"id": "q1", "text": "local courts", "query": "local courts"}
    assert json.loads(topics.read_text(encoding="utf-8")) == topic
    assert qrels.read_text(encoding="utf-8") == "q1 0 d2 1\n"
    with pytest.raises(UsageError, match="knows no data set of that name"):
        write_dataset("no/such", tmp_path)
    with pytest.raises(BackendUnavailable, match=r"could not fetch it .*network is unreachable"):
        write_dataset("away", tmp_path)
