"""Cases 115 to 120: what is remembered and kept is never wrong, whoever changes, damages, copies or shares it."""

from __future__ import annotations

import errno
import logging
import multiprocessing
import os
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from collection.test_cached_table import COLLECTION, folders, rows, same, table
from typer.testing import CliRunner

from fairagent import load_collection
from fairagent.cli import app
from fairagent.collection import GroupTable
from fairagent.collection import load as loading
from fairagent.errors import IndexMismatch
from fairagent.retrieve.bm25.build import build_index
from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.storage import digests
from fairagent.storage.digests import file_digest

from .damage import harm, trials
from .tiny import write


@pytest.fixture(autouse=True)
def trusting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Notes of every file, also of small ones and of those written just now: what can go wrong does so here."""
    monkeypatch.setattr(digests, "notes_folder", lambda: tmp_path / "notes")
    monkeypatch.setattr(digests, "_known", {})
    monkeypatch.setattr(digests, "LEAST", 0)
    monkeypatch.setattr(digests, "QUIET", -(10**12))
    return tmp_path / "notes"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "collection.yaml").write_text(COLLECTION)
    (tmp_path / "docs.jsonl").write_text('{"id": "a", "text": "b"}\n')
    (tmp_path / "groups.tsv").write_text(rows())
    return tmp_path / "collection.yaml"


def test_115_an_index_of_documents_that_were_changed_under_their_old_time(tmp_path: Path) -> None:
    collection = write(tmp_path / "files")
    build_index(load_collection(collection), tmp_path / "index")
    BM25Retriever(tmp_path / "index", load_collection(collection))
    documents = tmp_path / "files" / "docs.jsonl"
    before = documents.stat()
    documents.write_bytes(documents.read_bytes().replace(b"law she", b"law her"))
    os.utime(documents, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (documents.stat().st_size, documents.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    with pytest.raises(IndexMismatch, match="does not belong to collection 'tiny' as it is now"):
        BM25Retriever(tmp_path / "index", load_collection(collection))


def test_116_a_damaged_table_is_read_anew(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    expected = table(file)
    (folder,) = folders(file)
    chance = random.Random(131)
    for _ in range(trials(8)):
        how = harm(folder, chance)
        caplog.clear()
        assert same(table(file), expected), how
        # Found, said, and mended: the next one has nothing to say.
        assert "damaged" in caplog.text or "fairagent-files.json" in how, how
        caplog.clear()
        assert same(table(file), expected), how
        assert caplog.text == "", how


def test_117_folders_that_cannot_be_written(
    file: Path, trusting: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = table(file)
    for folder in folders(file):
        shutil.rmtree(folder)
    shutil.rmtree(trusting)
    reads = list[int]()
    read = loading.read_groups
    monkeypatch.setattr(loading, "read_groups", lambda *arguments: (reads.append(1), read(*arguments))[1])
    with caplog.at_level(logging.WARNING), unwritable(monkeypatch):
        for _ in range(2):
            assert same(table(file), expected)
    assert len(reads) == 2
    assert "read anew each time" in caplog.text
    assert not list(file.parent.glob("index*"))
    assert same(table(file), expected)
    assert len(folders(file)) == 1


def test_118_two_processes_at_once(file: Path) -> None:
    expected = table(file)
    (folder,) = folders(file)
    shutil.rmtree(folder)
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        told = pool.map(shares, [file] * 2, chunksize=1)
    assert told == [[expected.shares(name).tolist() for name in ("gender", "region")]] * 2
    assert folders(file) == [folder]
    assert not list(file.parent.glob("*.lock"))


def test_119_a_copied_folder_is_another_one(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    expected = table(file)
    table(file)
    (folder,) = folders(file)
    copy = folder.with_name(folder.name.replace("index", "other"))
    shutil.copytree(folder, copy)
    harmed = bytearray((copy / "ids.npy").read_bytes())
    harmed[-1] ^= 1
    (copy / "ids.npy").write_bytes(harmed)
    shutil.copystat(folder / "ids.npy", copy / "ids.npy")
    groups = load_collection(file, file.parent / "other").groups
    assert isinstance(groups, GroupTable)
    assert same(groups, expected)
    assert "ids.npy: is not what was written" in caplog.text


def test_120_verify_trusts_no_note(file: Path, trusting: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collection = load_collection(file, file.parent / "index")
    build_index(collection, file.parent / "index")
    table(file)
    (kept,) = [folder for folder in folders(file) if folder.name != "index"]
    whole = {path: file_digest(path) for path in kept.iterdir()}
    harmed = bytearray((kept / "ids.npy").read_bytes())
    harmed[-1] ^= 1
    (kept / "ids.npy").write_bytes(harmed)
    # As if the disk had done it: nothing of the file's state has changed, and the notes still speak of the old bytes.
    monkeypatch.setattr("fairagent.storage.digests.file_digest", lambda path: whole[path])
    monkeypatch.setenv("COLUMNS", "300")
    done = CliRunner().invoke(app, ["doctor", "--verify", str(file.parent / "index")])
    assert done.exit_code != 0
    assert "ids.npy: is not what was written" in " ".join(done.output.split())


@contextmanager
def unwritable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A disk that is read-only: nobody may make a folder, or a file."""
    open_file = os.open

    def mkdir(path: object, *more: object, **options: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    def opened(path: object, flags: int, *more: object, **options: object) -> int:
        if flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        return open_file(path, flags, *more, **options)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(os, "mkdir", mkdir)
        patch.setattr(os, "open", opened)
        yield


def shares(file: Path) -> list[list[float]]:
    groups = table(file)
    return [groups.shares(name).tolist() for name in ("gender", "region")]
