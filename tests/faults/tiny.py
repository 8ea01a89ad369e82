"""A collection of six documents; its population knows a group, nonbinary, that no document is in."""

from __future__ import annotations

import json
from pathlib import Path

DOCUMENTS = {
    "m1": "law court judge he",
    "m2": "law court he",
    "m3": "law bench he",
    "f1": "law she",
    "f2": "advocate she court",
    "u1": "law river",
}
COLLECTION = """\
name: tiny
documents: {path: docs.jsonl}
topics: {path: topics.jsonl}
qrels: {path: qrels.tsv}
groups: {path: groups.tsv, dimensions: {gender: {}}}
target: trec-estimated
population: {gender: {female: 0.45, male: 0.45, nonbinary: 0.1}}
"""


def write(folder: Path, collection: str = COLLECTION) -> Path:
    """The collection's files; returns its settings file."""
    genders = {"m": "male", "f": "female", "u": ""}
    files = {
        "docs.jsonl": "".join(json.dumps({"id": id, "text": text}) + "\n" for id, text in DOCUMENTS.items()),
        "groups.tsv": "id\tgender\n" + "".join(f"{id}\t{genders[id[0]]}\n" for id in DOCUMENTS),
        "topics.jsonl": '{"id": "T1", "query": "law"}\n{"id": "T2", "query": "court"}\n',
        "qrels.tsv": "T1 0 f1 1\nT1 0 m1 1\nT2 0 u1 1\n",
        "collection.yaml": collection,
    }
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder / "collection.yaml"
