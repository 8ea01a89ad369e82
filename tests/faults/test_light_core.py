"""The default engine, BM25 and light vectors, through the front door: damaged files, full disks, odd texts and queries.

The extras are in test_indexing.py (Lucene), the server's vectors in test_embeddings.py, damage in every file and what
cannot be in test_damage.py.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from fairagent import open_agent
from fairagent.cli import app
from fairagent.errors import IndexMismatch
from fairagent.retrieve.encoded import DenseManifest

from .tiny import write

pytestmark = [pytest.mark.vectors, pytest.mark.usefixtures("no_variables")]

FUSED = "engine={kind: fused, engines: [bm25, dense]}"
"""What `auto` comes to, by name: fixtures of a module are not marked."""


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def said(result: Result) -> str:
    """What a command has complained of, which is no traceback."""
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return " ".join(result.stderr.split())


def indexed(file: Path, index: Path, *more: str) -> None:
    """Let the command make the index and the light vectors."""
    done = call("index", "-c", str(file), "--index", str(index), *more)
    assert done.exit_code == 0, done.output


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tiny collection, its index, and the light vectors beside it."""
    folder = tmp_path_factory.mktemp("light")
    file = write(folder / "files")
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith("FAIRAGENT_"):
                patch.delenv(name)
        indexed(file, folder / "index", "--set", FUSED)
    assert (folder / "index-light" / DenseManifest.FILE).is_file()
    return folder


@pytest.fixture
def copy(built: Path, tmp_path: Path) -> Path:
    shutil.copytree(built, tmp_path, dirs_exist_ok=True)
    return tmp_path


def search(folder: Path, text: str = "law") -> Result:
    return call("search", text, "-c", str(folder / "files" / "collection.yaml"), "--index", str(folder / "index"))


# --- files ------------------------------------------------------------------------------------------------------


def test_light_vectors_of_an_index_by_another_analyzer_are_refused_and_made_again(copy: Path) -> None:
    """The documents are the same, but terms have other numbers: results would be wrong without a word."""
    file, index = copy / "files" / "collection.yaml", copy / "index"
    options = ["-c", str(file), "--index", str(index), "--set", "analyzer=english-nostem"]
    before = content(copy / "index-light")
    made = call("index", *options, "--force", "--set", "engine=bm25")
    assert made.exit_code == 0, made.output
    refused = call("search", "judge", *options)
    assert refused.exit_code == 4
    assert "index-light were made of another index than" in said(refused)
    assert "`fairagent index` makes them again" in said(refused)
    with pytest.raises(IndexMismatch, match="made of another index"):
        open_agent(file, index, analyzer="english-nostem")
    assert content(copy / "index-light") == before
    again = call("index", *options)
    assert again.exit_code == 0, again.output
    assert content(copy / "index-light") != before
    assert call("search", "judge", *options).exit_code == 0


# --- texts and queries ------------------------------------------------------------------------------------------


def collection(folder: Path, texts: dict[str, str]) -> Path:
    """Documents of these texts, half of them in either group."""
    file = write(folder)
    lines = (json.dumps({"id": id, "text": text}) for id, text in texts.items())
    (folder / "docs.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    rows = (f"{id}\t{('female', 'male')[n % 2]}\n" for n, id in enumerate(texts))
    (folder / "groups.tsv").write_text("id\tgender\n" + "".join(rows), encoding="utf-8")
    return file


@pytest.mark.slow
def test_a_text_of_ten_megabytes(tmp_path: Path) -> None:
    kinds = {
        "words": " ".join(f"law word{n % 50_000}" for n in range(770_000)),
        "one word": "y" * 10_000_000,
        "one line of signs": "!? " * 3_300_000 + "law",
    }
    for kind, long in kinds.items():
        index = tmp_path / kind
        file = collection(tmp_path / "files", {"long": long, "short": "law court", "other": "river"})
        indexed(file, index)
        agent = open_agent(file, index, profile="engine", n=3)
        assert agent.retriever.documents(["long"])[0].text == long
        assert set(agent.search("law").ranking.ids) == ({"short"} if kind == "one word" else {"long", "short"})
        assert agent.search("river").ranking.ids == ("other",)


@pytest.mark.parametrize(
    ("texts", "query", "best"),
    [
        ({"t1": "ทนายความในศาล", "t2": "แม่น้ำเงียบสงบ", "t3": "ผู้พิพากษา"}, "ทนายความในศาล", "t1"),
        ({"e1": "😀 🚀", "e2": "🚀 🌍 🌍", "e3": "👩‍⚖️"}, "🌍", "e2"),
        ({"e1": "😀😀😀", "e2": "", "e3": "!!!"}, "😀", ""),
    ],
    ids=["Thai", "emoji", "emoji without a space"],
)
def test_texts_in_thai_or_emoji_only(tmp_path: Path, texts: dict[str, str], query: str, best: str) -> None:
    file = collection(tmp_path / "files", texts)
    indexed(file, tmp_path / "index")
    for settings in ({}, {"profile": "engine"}, {"loop": "fair-qr"}):
        agent = open_agent(file, tmp_path / "index", **{"n": 3, **settings})
        result = agent.search(query)
        if best:
            assert best in result.ranking.ids
            assert agent.retriever.documents([best])[0].text == texts[best]
        assert set(result.ranking.ids) <= texts.keys()
        assert np.isfinite(result.ranking.scores).all()
        # Words that are in no text find nothing, or all documents as they come: never an error.
        assert np.isfinite(agent.search("lawyer").ranking.scores).all()
    plain = open_agent(file, tmp_path / "index", engine="bm25", profile="engine", n=3).search(query)
    if best:
        assert plain.ranking.ids[0] == best
