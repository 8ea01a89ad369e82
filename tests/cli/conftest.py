"""A small collection with an index for all tests of the command line, and a way to call it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from fairagent.cli import app
from fairagent.collection import load_collection
from fairagent.guests.testing import LoopbackServer
from fairagent.retrieve.bm25.build import build_index

COLLECTION = """\
name: small
documents: {path: docs.jsonl, id: id, title: title, text: text}
topics: {path: topics.jsonl, id: id, query: title}
qrels: {path: qrels.tsv, format: trec}
groups:
  path: groups.tsv
  id: id
  dimensions:
    gender: {column: gender, labels: [female, male]}
    era: {column: era}
target: trec-estimated
population:
  gender: {female: 0.5, male: 0.5}
"""
FAIR_QR = [
    part
    for one in ("loop=fair-qr", "expansion.documents=50", "rerank={kind: exposure, fairness: 0.5, unlabeled: 1}")
    for part in ("--set", one)
]
"""FAIR-QR's loop with topic words and without a model: it reaches the women of the small collection."""


def documents() -> list[dict[str, str]]:
    """24 lawyers (the last 8, with one mention of the word each, are women) and 6 gardens."""
    men = [f"A lawyer and again a lawyer of court number {n}. He pleaded, he won." for n in range(16)]
    women = [f"She was a lawyer in town {n}, where she pleaded before judges and she won her case." for n in range(8)]
    gardens = [f"A garden of roses, number {n}." for n in range(6)]
    texts = [*men, *women, *gardens]
    return [{"id": f"d{n:02d}", "title": f"Page {n}", "text": text} for n, text in enumerate(texts)]


def write_collection(folder: Path) -> Path:
    """Write the small collection; return its settings file."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = documents()
    genders = ["male"] * 16 + ["female"] * 8 + [""] * 6
    files = {
        "collection.yaml": COLLECTION,
        "docs.jsonl": "".join(json.dumps(page) + "\n" for page in pages),
        "topics.jsonl": '{"id": "T1", "title": "lawyer"}\n{"id": "T2", "title": "roses"}\n',
        "qrels.tsv": "".join(f"T1 0 d{n:02d} 1\n" for n in range(24)) + "T2 0 d24 1\n",
        "groups.tsv": "id\tgender\tera\n"
        + "".join(
            f"{page['id']}\t{gender}\t{'old' if n % 2 else 'new'}\n"
            for n, (page, gender) in enumerate(zip(pages, genders, strict=True))
        ),
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder / "collection.yaml"


@dataclass(frozen=True)
class Small:
    """The collection's settings file and its index."""

    file: Path
    index: Path

    @property
    def options(self) -> list[str]:
        return ["--collection", str(self.file), "--index", str(self.index)]


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    """The collection with its index; not to be changed."""
    folder = tmp_path_factory.mktemp("small")
    file = write_collection(folder)
    build_index(load_collection(file), folder / "index")
    return Small(file, folder / "index")


class Call:
    """The program, called in a process of the tests."""

    def __call__(self, *arguments: str) -> Result:
        return CliRunner().invoke(app, list(arguments))

    def well(self, *arguments: str) -> Result:
        """A call that ends with 0."""
        result = self(*arguments)
        assert result.exit_code == 0, result.output
        return result

    def record(self, *arguments: str) -> Any:
        """What a call that ends with 0 prints as JSON."""
        printed = self.well(*arguments, "--json").stdout
        assert printed.isascii()
        return json.loads(printed, parse_constant=pytest.fail)

    def refused(self, code: int, *arguments: str) -> str:
        """What a call that ends with this exit code says on standard error, in one line."""
        result = self(*arguments)
        assert result.exit_code == code, result.output
        return " ".join(result.stderr.split())


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Call the program in an empty folder, in lines of 100 characters, without the user's environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    for name in os.environ:
        if name.startswith(("FAIRAGENT_", "OPENAI_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    return Call()


@pytest.fixture
def server(call: Call, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    """The model's server that the environment names; a test sets its `script`."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with LoopbackServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server
