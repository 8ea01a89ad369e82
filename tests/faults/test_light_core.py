"""The default engine, BM25 and light vectors, through the front door: another analyzer, odd and very long texts.

Damage in every file and what cannot be is in test_damage.py.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from fairagent import build_index, open_agent
from fairagent.errors import IndexMismatch

from .tiny import write

pytestmark = [pytest.mark.vectors, pytest.mark.usefixtures("no_variables")]


def collection(folder: Path, texts: dict[str, str]) -> Path:
    """Documents of these texts, half of them in either group."""
    file = write(folder)
    lines = (json.dumps({"id": id, "text": text}) for id, text in texts.items())
    (folder / "docs.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    rows = (f"{id}\t{('female', 'male')[n % 2]}\n" for n, id in enumerate(texts))
    (folder / "groups.tsv").write_text("id\tgender\n" + "".join(rows), encoding="utf-8")
    return file


def test_light_vectors_of_an_index_by_another_analyzer_are_refused(tmp_path: Path) -> None:
    """The documents are the same, but terms have other numbers: results would be wrong without a word."""
    file, other = write(tmp_path / "files"), {"analyzer": "english-nostem"}
    build_index(file, tmp_path / "index")
    build_index(file, tmp_path / "other", engine="bm25", **other)
    shutil.copytree(tmp_path / "index" / "light", tmp_path / "other" / "light")
    with pytest.raises(IndexMismatch, match="made of another index"):
        open_agent(file, tmp_path / "other", **other)
    build_index(file, tmp_path / "other", **other)
    assert len(open_agent(file, tmp_path / "other", n=3, **other).search("judge law").ranking) == 3


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
    build_index(file, tmp_path / "index")
    for settings in ({}, {"profile": "engine"}, {"loop": "fair-qr"}):
        agent = open_agent(file, tmp_path / "index", **{"n": 3, **settings})
        result = agent.search(query)
        assert not best or best in result.ranking.ids
        assert set(result.ranking.ids) <= texts.keys()
        assert np.isfinite(result.ranking.scores).all()
        # Words that are in no text find nothing, or all documents as they come: never an error.
        assert np.isfinite(agent.search("lawyer").ranking.scores).all()
    plain = open_agent(file, tmp_path / "index", engine="bm25", profile="engine", n=3).search(query)
    assert not best or plain.ranking.ids[0] == best
