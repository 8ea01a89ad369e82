"""What `init` makes of files that fairagent cannot read as they are: encodings, ids, topics."""

from __future__ import annotations

import bz2
import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest

from fairagent.collection.encodings import decoded, is_utf8
from fairagent.collection.named_datasets import write_dataset
from fairagent.collection.records import Faults
from fairagent.collection.repair import mend_ids
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


def test_ids_are_mended_by_name(tmp_path: Path) -> None:
    """The first with an id keeps it; no new name is that of a later record."""
    rows = ["a", "", "a", "a-2", "b c", None, "x" * 300, 7, True, "row-2", "b_c"]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps({"id": id, "n": n}) + "\n" for n, id in enumerate(rows)), encoding="utf-8")
    made = mend_ids(path, None, "id", tmp_path / "mended.jsonl")
    written = [json.loads(line) for line in (tmp_path / "mended.jsonl").read_text(encoding="utf-8").splitlines()]
    ids = [row["id"] for row in written]
    long = "x" * 215
    assert ids == ["a", "row-2-2", "a-3", "a-2", "b_c-2", "row-6", long, "7", "row-9", "row-2", "b_c"]
    assert [row["n"] for row in written] == list(range(11))
    assert [str(one) for one in made][:3] == [
        "row 2 (line 2): no id, now row-2-2",
        "row 3 (line 3): a, now a-3",
        "row 5 (line 5): b c, now b_c-2",
    ]
    assert len(made) == 6


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
    assert topics_of(tmp_path, XML) == [
        {"id": "1", "query": "virus origin", "description": "Where from?"},
        {"id": "2", "query": "q two"},
    ]
    assert topics_of(tmp_path, SMART) == [{"id": "1", "query": "what laws ?"}, {"id": "007", "query": "A title"}]
    for other in ("<DOC>", '{"id": 1}', '{"text": "<topic> is a tag"}', ".Index 1"):
        (tmp_path / "topics").write_text(other, encoding="utf-8")
        assert not has_topics(tmp_path / "topics")


def topics_of(folder: Path, text: str) -> list[dict[str, str]]:
    path, faults = folder / "topics", Faults()
    path.write_bytes(bz2.compress(text.encode()))
    assert has_topics(path)
    found = [record for _, record in topic_records(path, faults)]
    faults.check("topics")
    return found


@dataclass
class Local:
    """A file that is there already, as ir-datasets takes those that it fetches."""

    file: Path

    def path(self, force: bool = True) -> Path:
        return self.file

    @contextmanager
    def stream(self) -> Iterator[IO[bytes]]:
        if not self.file.is_file():
            raise ConnectionError("the network is unreachable")
        with self.file.open("rb") as stream:
            yield stream


def registered(ir_datasets: Any, name: str, folder: Path, documents: str) -> None:
    """A data set of that name, made of ir-datasets' own classes over local files."""
    (folder / "queries").write_text("q1\tlocal courts\n", encoding="utf-8")
    (folder / "qrels").write_text("q1 0 d2 1\n", encoding="utf-8")
    formats = ir_datasets.formats
    parts = [
        formats.TsvDocs(Local(folder / documents)),
        formats.TsvQueries(Local(folder / "queries")),
        formats.TrecQrels(Local(folder / "qrels"), {1: "relevant"}),
    ]
    ir_datasets.registry.register(name, ir_datasets.Dataset(*parts))


def test_a_name_of_ir_datasets(tmp_path: Path) -> None:
    ir_datasets: Any = pytest.importorskip("ir_datasets", reason="the package ir-datasets is not installed")
    (tmp_path / "docs").write_text("d1\tA judge.\nd2\tA court.\n", encoding="utf-8")
    registered(ir_datasets, "local", tmp_path, "docs")
    documents, topics, qrels = write_dataset("local", tmp_path)
    assert [json.loads(line) for line in documents.read_text(encoding="utf-8").splitlines()] == [
        {"id": "d1", "text": "A judge."},
        {"id": "d2", "text": "A court."},
    ]
    assert topics
    assert qrels
    assert json.loads(topics.read_text(encoding="utf-8")) == {
        "id": "q1",
        "text": "local courts",
        "query": "local courts",
    }
    assert qrels.read_text(encoding="utf-8") == "q1 0 d2 1\n"
    with pytest.raises(UsageError, match="knows no data set of that name"):
        write_dataset("no/such", tmp_path)
    registered(ir_datasets, "away", tmp_path, "nowhere")
    with pytest.raises(
        BackendUnavailable, match=r"could not fetch it .* without a network only those work whose files"
    ):
        write_dataset("away", tmp_path)
