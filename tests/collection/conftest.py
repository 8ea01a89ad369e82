"""A small complete collection on disk, whose files a test may replace one by one."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

FILES = {
    "collection.yaml": """
name: small
documents: {path: docs.jsonl, id: id, title: title, text: text}
topics: {path: topics.jsonl, id: n, query: title}
qrels: {path: qrels.tsv, format: trec, relevant: 1}
groups:
  path: groups.tsv
  id: id
  dimensions:
    gender: {column: gender}
    region: {column: regions, separator: "|"}
target: trec-estimated
population: world.json
""",
    "docs.jsonl": """{"id": "d1", "title": "One", "text": "first text", "year": 1901}
{"id": "d2", "title": "Two", "text": "second text"}
{"id": "d3", "title": "Three", "text": "third text"}
{"id": "d4", "title": "Four", "text": "fourth text"}
""",
    "topics.jsonl": """{"n": "T1", "title": "one or two", "keywords": "first second"}
{"n": "T2", "title": "three"}
""",
    "qrels.tsv": "T1\t0\td1\t1\nT1\t0\td2\t2\nT1\t0\td4\t0\nT2\t0\td3\t1\n",
    "groups.tsv": ("id\tgender\tregions\nd1\tfemale\tAsia|Europe\nd2\tmale\tEurope\nd3\t\t\nd4\tmale\tAfrica\n"),
    "world.json": """{"gender": {"female": 0.5, "male": 0.5},
 "region": {"Africa": 0.25, "Asia": 0.5, "Europe": 0.25}}
""",
}

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write the small collection with some files replaced (None leaves one out); return its settings file.

    Text becomes UTF-8, gzipped where the name ends so; bytes are written as they are.
    """

    def write(files: dict[str, str | bytes | None] | None = None) -> Path:
        for name, content in (FILES | (files or {})).items():
            if content is None:
                continue
            raw = content.encode() if isinstance(content, str) else content
            if name.endswith(".gz") and isinstance(content, str):
                raw = gzip.compress(raw, mtime=0)
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(raw)
        return tmp_path / "collection.yaml"

    return write


@pytest.fixture
def settings() -> Callable[..., str]:
    """The settings of the small collection, with pieces of the text replaced."""

    def settings(*replacements: tuple[str, str]) -> str:
        text = FILES["collection.yaml"]
        for old, new in replacements:
            assert old in text
            text = text.replace(old, new)
        return text

    return settings
