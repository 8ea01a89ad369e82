"""An index that is brought up to date finds, scores and tells exactly what one that is built anew does."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from fairagent.retrieve.base import full_text
from fairagent.retrieve.bm25 import build
from fairagent.retrieve.bm25.build import Changes, build_index, update_index
from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.retrieve.passages import BM25Passages
from fairagent.storage.digests import differences
from fairagent.types import Document

from ..conftest import MADE, Made

LAW = next(document for document in MADE.made if document.id == "law1")


def text(chance: random.Random) -> str:
    """Words by a law like Zipf's, so that lengths and document frequencies change with every document."""
    return " ".join(f"w{int(chance.paretovariate(0.7)) % 900}" for _ in range(chance.randrange(1, 40)))


def edited(documents: list[Document], chance: random.Random, rate: float, state: str) -> Made:
    """Some removed, changed and added anywhere, and two that have changed places."""
    left = [one for one in documents if chance.random() > rate]
    left = [replace(one, text=text(chance)) if chance.random() < rate else one for one in left]
    for number in range(round(rate * len(left)) + 1):
        left.insert(chance.randrange(len(left)), Document(f"{state}-{number}", text(chance), "A title", {"n": number}))
    left[0], left[-1] = left[-1], left[0]
    return Made(left, state)


def arrays(folder: Path) -> dict[str, bytes]:
    """Every file: an index depends on its documents alone."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("rate", [0.05, 0.5])
def test_the_same_as_built_anew_after_each_of_several_updates(tmp_path: Path, rate: float) -> None:
    chance = random.Random(7)
    tied = [Document(f"tie{n * 17 % 40:02d}", "tie w1") for n in range(40)]
    collection = Made([*tied, *(Document(f"d{n:04d}", text(chance), f"Title {n}") for n in range(400))], "0")
    build_index(collection, tmp_path / "index", memory=64 * 5_000)
    for round in range(1, 4):
        before = {one.id: one for one in collection.made}
        collection = edited(list(collection.made), chance, rate, str(round))
        now = {one.id: one for one in collection.made}
        kept = sum(now[id] == before[id] for id in now.keys() & before.keys())
        expected = Changes(len(now.keys() - before.keys()), len(now.keys() & before.keys()) - kept, 0, kept)
        expected = replace(expected, removed=len(before.keys() - now.keys()))
        assert update_index(collection, tmp_path / "index") == expected
        build_index(collection, tmp_path / f"{round}")
        # All that is searched, scored and shown comes from these files.
        assert arrays(tmp_path / "index") == arrays(tmp_path / f"{round}")
        assert differences(tmp_path / "index", whole=True) == []


def test_documents_in_all_scripts_and_without_a_text(tmp_path: Path) -> None:
    first = Made([*MADE.made[::2], Document("gone", "lawyer court"), replace(MADE.made[1], title="Another")], "first")
    build_index(first, tmp_path / "index")
    assert update_index(MADE, tmp_path / "index").changed == 1
    build_index(MADE, tmp_path / "built")
    assert arrays(tmp_path / "index") == arrays(tmp_path / "built")
    retriever = BM25Retriever(tmp_path / "index", MADE)
    assert [retriever.document(document.id) for document in MADE.made] == list(MADE.made)


def test_only_what_is_new_is_analyzed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_index(MADE, tmp_path / "index")
    texts: list[str] = []
    analyzed = build.analyzed
    monkeypatch.setattr(build, "analyzed", lambda name, some: (texts.extend(some), analyzed(name, some))[1])
    changed = replace(MADE.made[3], text="another text")
    extra = replace(MADE.made[4], extra={"year": 1})
    documents = [*MADE.made[:3], changed, extra, *MADE.made[6:], Document("new", "new text")]
    done: list[int] = []
    changes = update_index(Made(documents, "edited"), tmp_path / "index", progress=done.append)
    assert texts == [full_text(changed), full_text(extra), "new text"]
    assert changes == Changes(1, 2, 1, len(MADE.made) - 3)
    assert str(changes) == f"1 document added, 2 changed, 1 removed; {len(MADE.made) - 3} kept"
    assert done[-1] == len(documents)


def test_another_order_of_the_same_documents_is_no_change(tmp_path: Path) -> None:
    build_index(MADE, tmp_path / "index")
    turned = Made(MADE.made[::-1], "turned")
    assert update_index(turned, tmp_path / "index") == Changes(0, 0, 0, len(MADE.made))
    build_index(turned, tmp_path / "built")
    assert arrays(tmp_path / "index") == arrays(tmp_path / "built")
    assert BM25Retriever(tmp_path / "index", turned).document("law1") == LAW


def test_passages_of_a_document_stay_together(tmp_path: Path) -> None:
    def passages(*texts: str) -> list[Document]:
        return [
            Document(f"{id}#{n}", part)
            for id, text in zip("abc", texts, strict=True)
            for n, part in enumerate(text.split("|"), 1)
        ]

    old = Made(passages("river|court", "law court|bank|law", "boat"), "old")
    new = Made(passages("river|court|new court", "law court|another|law", "boat court"), "new")
    build_index(old, tmp_path / "index")
    assert update_index(new, tmp_path / "index") == Changes(1, 2, 0, 4)
    build_index(new, tmp_path / "built")
    assert arrays(tmp_path / "index") == arrays(tmp_path / "built")
    one = BM25Passages(BM25Retriever(tmp_path / "index", new))
    assert one.passage_ids(["b", "a"])[0] == ["b#1", "b#2", "b#3", "a#1", "a#2", "a#3"]
