"""Cases 176 to 184 of docs/reliability.md: an index that is brought up to date, and what may come in between."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from retrieve.conftest import Made
from retrieve.test_dense import Words

from fairagent import BackendUnavailable, Query, load_collection
from fairagent.errors import DataError, FairAgentError, IndexMismatch
from fairagent.retrieve import encoded
from fairagent.retrieve.bm25.build import Changes, build_index, update_index
from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.retrieve.encoded import build_dense_index
from fairagent.storage.digests import RECORD
from fairagent.types import Document

from .damage import trials
from .tiny import write

OLD = Made(tuple(Document(f"d{n}", f"a river and a lawyer {n} {'court ' * (n % 4)}") for n in range(40)), "old")
CHANGED = tuple(replace(one, text="a court at the river") if n % 9 == 0 else one for n, one in enumerate(OLD.made[3:]))
NEW = Made((Document("new1", "a court of lawyers"), *CHANGED, Document("new2", "river boat")), "new")
CHANGES = Changes(2, 5, 3, 32)


def files(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def answers(folder: Path) -> list[object]:
    """What an index finds and counts."""
    retriever = BM25Retriever(folder)
    found = retriever.search(Query("lawyer court river"), 60)
    counted = [retriever.document_frequency(word) for word in ("lawyer", "court", "river", "boat")]
    return [found.ids, found.scores.tolist(), counted, retriever.postings(found.ids[:5]).count.tolist()]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """An index of the documents as they were."""
    build_index(OLD, tmp_path / "index", memory=1)
    return tmp_path / "index"


@pytest.fixture
def new(tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    """What one of the documents as they are now, built anew, answers."""
    folder = tmp_path_factory.mktemp("anew") / "index"
    build_index(NEW, folder)
    return answers(folder)


# Case 177


class Watched(Made):
    """Documents that tell when they are read."""

    def documents(self) -> Iterator[Document]:
        for number, document in enumerate(self.made):
            if number == 30:
                self.watch()
            yield document

    def watch(self) -> None:
        """To be replaced."""


def test_177_who_searches_in_the_meantime_has_the_old_index_and_then_the_new_one(old: Path, new: list[object]) -> None:
    before, seen = answers(old), []
    opened = BM25Retriever(old, OLD)

    def search() -> list[object]:
        found = opened.search(Query("lawyer court river"), 60)
        return [found.ids, found.scores.tolist(), opened.document("d0").text, opened.document("d39").text]

    expected, watched = search(), Watched(NEW.made, "new")
    object.__setattr__(watched, "watch", lambda: seen.append(answers(old)))
    update_index(watched, old)
    assert seen == [before]
    # The one that was open all the time is whole, also now that its files are gone.
    assert search() == expected
    assert answers(old) == new
    with pytest.raises(IndexMismatch, match="index new, now old"):
        BM25Retriever(old, OLD)


# Case 178


# Cases 179 and 180

OTHERS: list[tuple[Made, str, type[FairAgentError], str]] = [
    (Made((), "wrong"), "english", DataError, "no documents"),
    (Made((*NEW.made, NEW.made[4]), "wrong"), "english", DataError, f"'{NEW.made[4].id}' first"),
    (Made((*NEW.made, Document("", "text")), "wrong"), "english", DataError, "document id"),
    (Made(NEW.made, "new", "another"), "english", IndexMismatch, "'another'.*fingerprint: index old, now"),
    (NEW, "english-nostem", IndexMismatch, "analyzer: index english, now english-nostem"),
    (Made(tuple(Document(f"x{n}", "law") for n in range(9)), "x"), "english", IndexMismatch, "none of the documents"),
]


@pytest.mark.parametrize(("collection", "analyzer", "kind", "said"), OTHERS)
def test_180_and_179_what_is_no_update_of_it_leaves_an_index_as_it_was(
    old: Path, collection: Made, analyzer: str, kind: type[FairAgentError], said: str
) -> None:
    before = files(old)
    with pytest.raises(kind, match=said):
        update_index(collection, old, analyzer)
    assert files(old) == before
    assert [path.name for path in old.parent.iterdir()] == ["index"]


def test_179_faults_of_the_documents_leave_the_index_as_it_was(tmp_path: Path) -> None:
    file = write(tmp_path / "files")
    build_index(load_collection(file), tmp_path / "index")
    before, whole = files(tmp_path / "index"), (tmp_path / "files" / "docs.jsonl").read_text(encoding="utf-8")
    for line in ('{"id": "f1", "text": "law"}\n', '{"id": "m9", "title": "no text"}\n', '{"id": "m9"\n'):
        (tmp_path / "files" / "docs.jsonl").write_text(whole + line, encoding="utf-8")
        with pytest.raises(DataError, match=r"docs\.jsonl:7: "):
            update_index(load_collection(file), tmp_path / "index")
        assert files(tmp_path / "index") == before
        assert not (tmp_path / "index.partial").exists()


# Case 181


def test_181_damage_is_found_before_it_becomes_part_of_the_new_index(old: Path) -> None:
    """Also where a search would not notice: new checksums over damaged bytes would hide it for good."""
    chance, paths = random.Random(181), sorted(path for path in old.rglob("*") if path.stat().st_size > 40)
    for _ in range(trials(8)):
        path = chance.choice([path for path in paths if path.is_file() and path.name != RECORD])
        whole = path.read_bytes()
        place = chance.randrange(len(whole))
        path.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << chance.randrange(8))]) + whole[place + 1 :])
        before = files(old)
        with pytest.raises((IndexMismatch, BackendUnavailable)):
            update_index(NEW, old)
        assert files(old) == before
        path.write_bytes(whole)
    assert update_index(NEW, old) == CHANGES


# Case 183


def test_183_embeddings_of_new_texts_go_on_where_they_were_broken_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoded, "CHUNK", 2)
    folder = tmp_path / "dense"
    build_dense_index(OLD, folder, Words())
    build_dense_index(NEW, tmp_path / "anew", Words())
    before, write_rows, calls = files(folder), encoded.write_rows, 0

    def full(path: Path, numbers: Any, rows: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise OSError(28, "No space left on device")
        write_rows(path, numbers, rows)

    monkeypatch.setattr(encoded, "write_rows", full)
    # What is kept is written first, then two by two what is new.
    with pytest.raises(BackendUnavailable, match=r"cannot be written \(No space left on device\)"):
        build_dense_index(NEW, folder, Words())
    assert files(folder) == before
    encoder = Words()
    build_dense_index(NEW, folder, encoder)
    assert len(encoder.encoded) == 1 + 7 - 2
    assert files(folder) == files(tmp_path / "anew")


# Case 184


def test_184_a_folder_of_somebody_else_is_no_index(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(BackendUnavailable, match=r"no index at .*theirs"):
        update_index(NEW, folder)
    assert files(folder) == {Path("notes.txt"): b"mine"}
