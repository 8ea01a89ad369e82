"""Folders that are removed, and digests of files, which are never trusted beyond a file's state."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import pytest

from fairagent.storage import digests
from fairagent.storage.digests import LEAST, QUIET, file_digest
from fairagent.storage.files import remove_folder


@pytest.mark.parametrize("ignore_errors", [True, False])
@pytest.mark.parametrize("closed", [1, 2, 3])
def test_an_interruption_after_a_folder_was_closed_is_none_of_the_disk(tmp_path, monkeypatch, ignore_errors, closed):
    """`rmtree` closes it once more, and the error of that hides the interruption."""
    (tmp_path / "made" / "inner" / "innermost").mkdir(parents=True)
    close, count = os.close, 0

    def interrupted(descriptor):
        nonlocal count
        close(descriptor)
        count += 1
        if count == closed:
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "close", interrupted)
    with pytest.raises(KeyboardInterrupt):
        remove_folder(tmp_path / "made", ignore_errors)
    monkeypatch.undo()
    remove_folder(tmp_path / "made", ignore_errors=False)
    assert not (tmp_path / "made").exists()
    remove_folder(tmp_path / "made")
    with pytest.raises(FileNotFoundError):
        remove_folder(tmp_path / "made", ignore_errors=False)


CONTENT, OTHER = b"x" * LEAST, b"y" * LEAST


def later() -> int:
    """The time when a file that is written now has settled."""
    return time.time_ns() + QUIET + 10**9


def of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(digests, "notes_folder", lambda: tmp_path / "notes")
    monkeypatch.setattr(digests, "_known", {})
    return tmp_path / "notes"


@pytest.fixture
def large(tmp_path: Path, notes: Path) -> Path:
    path = tmp_path / "large"
    path.write_bytes(CONTENT)
    return path


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A number for each time that a file is read as a whole."""
    times: list[int] = []
    read = hashlib.file_digest
    monkeypatch.setattr("fairagent.storage.digests.hashlib.file_digest", lambda *of: (times.append(1), read(*of))[1])
    return times


def test_a_file_is_read_once_by_all_processes_and_one_of_just_now_each_time(
    large: Path, notes: Path, hashed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    written = max(large.stat().st_mtime_ns, large.stat().st_ctime_ns)
    for _ in range(2):
        file_digest(large, lambda: written + QUIET)
    assert (len(hashed), notes.exists()) == (2, False)
    for _ in range(2):
        assert file_digest(large, lambda: written + QUIET + 1) == of(CONTENT)
    # As in another process.
    monkeypatch.setattr(digests, "_known", {})
    assert file_digest(large, later) == of(CONTENT)
    assert (len(hashed), len(list(notes.iterdir()))) == (3, 1)
    # Without a place for notes each process reads it once.
    monkeypatch.setattr(digests, "_known", {})
    monkeypatch.setattr(digests, "notes_folder", lambda: large)
    assert file_digest(large, later) == file_digest(large, later) == of(CONTENT)
    assert len(hashed) == 4


def test_a_file_that_changes_while_it_is_read_is_not_remembered(large: Path, notes: Path) -> None:
    def changing() -> int:
        large.write_bytes(OTHER)
        return later()

    file_digest(large, changing)
    assert not notes.exists()
    assert file_digest(large, later) == of(OTHER)


@pytest.mark.parametrize("how", ["content", "content, old time", "another file, old time"])
def test_a_changed_file_of_equal_size_is_read_again(
    large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    before = large.stat()
    file_digest(large, later)
    monkeypatch.setattr(digests, "_known", {})
    if how == "another file, old time":
        (tmp_path / "new").write_bytes(OTHER)
        (tmp_path / "new").replace(large)
    else:
        large.write_bytes(OTHER)
    if "old time" in how:
        os.utime(large, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert large.stat().st_mtime_ns == before.st_mtime_ns
    assert file_digest(large, later) == of(OTHER)


@pytest.mark.parametrize(
    "note", [b"", b"{}", b"null", b"\xff", b'{"state":5}', b'{"state":[1],"digest":"a","sha256":"0123456789abcdef"}']
)
def test_a_damaged_note_counts_for_nothing(
    large: Path, notes: Path, monkeypatch: pytest.MonkeyPatch, note: bytes
) -> None:
    file_digest(large, later)
    (path,) = notes.iterdir()
    whole = path.read_bytes()
    path.write_bytes(note)
    monkeypatch.setattr(digests, "_known", {})
    assert file_digest(large, later) == of(CONTENT)
    assert path.read_bytes() == whole
