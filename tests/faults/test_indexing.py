"""Cases 121 to 124, 209 and 224 of docs/reliability.md: builds that die, are damaged or stopped; indexes of before."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from retrieve.conftest import MADE, Made

from fairagent import BackendUnavailable
from fairagent.errors import IndexMismatch
from fairagent.retrieve import manifest
from fairagent.retrieve.bm25 import build as building
from fairagent.retrieve.bm25.build import build_index, update_index
from fairagent.retrieve.bm25.search import BM25Retriever
from fairagent.retrieve.manifest import Manifest
from fairagent.storage import processes
from fairagent.storage.digests import RECORD, differences
from fairagent.types import Document

MANY = Made(
    tuple(Document(f"d{n:04d}", f"common word{n} word{n * 7 % 900} again {'again ' * (n % 5)}") for n in range(900))
)
MEMORY = 64 * 4_000
"""So that there are blocks of about 4,000 characters."""


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def blocks(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "index.partial" / "new" / "blocks").iterdir())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of the index of a build to which nothing happened."""
    folder = tmp_path_factory.mktemp("whole") / "index"
    build_index(MANY, folder)
    return files(folder)


# Case 121


@dataclass(frozen=True)
class Signalled(Made):
    """Documents; when most are read, the processes that analyze them get a signal."""

    number: signal.Signals = signal.SIGKILL

    def documents(self) -> Iterator[Document]:
        for number, document in enumerate(self.made):
            if number == 700:
                victims = multiprocessing.active_children()
                assert victims
                for victim in victims if self.number == signal.SIGKILL else victims[:1]:
                    os.kill(victim.pid or 0, self.number)
            yield document


def test_121_and_224_a_process_that_is_killed_is_an_error_and_no_smaller_index(
    tmp_path: Path, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "index"
    with pytest.raises(BackendUnavailable, match=r"a worker process has ended \(exit code -9\).*repeat the command"):
        build_index(Signalled(MANY.made), folder, workers=2, memory=MEMORY)
    assert not folder.exists()
    assert multiprocessing.active_children() == []
    kept = len(blocks(tmp_path))
    assert kept > 3
    made: list[int] = []
    analyzed = building.analyzed
    monkeypatch.setattr(building, "analyzed", lambda *given: (made.append(1), analyzed(*given))[1])
    done: list[int] = []
    build_index(MANY, folder, progress=done.append, memory=MEMORY)
    # What was made before is taken over, the rest is made.
    assert len(made) == len(done) - kept
    assert files(folder) == whole
    assert not folder.with_name("index.partial").exists()


# Case 209


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this system does not tell which process is stopped")
def test_209_a_process_that_is_stopped_is_named_and_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "BEAT", 0.01)
    monkeypatch.setattr(processes, "SILENT", 10**9)
    folder = tmp_path / "index"
    with pytest.raises(BackendUnavailable, match=r"worker process \(pid \d+\) is stopped.*repeat the command"):
        build_index(Signalled(MANY.made, number=signal.SIGSTOP), folder, workers=2, memory=MEMORY)
    assert not folder.exists()
    assert multiprocessing.active_children() == []


class Beats:
    """What comes from a process: a sign of life, or at a look none."""

    def __init__(self, *looks: bool) -> None:
        self.looks = list(looks)

    def poll(self, seconds: float) -> bool:
        if not self.looks:
            raise EOFError
        return self.looks.pop(0)

    def recv_bytes(self) -> bytes:
        return b"."


@pytest.mark.parametrize(
    ("looks", "stopped", "given_up"),
    [
        ([False] * processes.SILENT, False, True),
        # Slow is not stopped: one sign of life, however late, begins anew.
        (([False] * (processes.SILENT - 1) + [True]) * 3, False, False),
        ([False] * processes.STOPPED, True, True),
        (([False] * (processes.STOPPED - 1) + [True]) * 3, True, False),
    ],
)
def test_209_a_process_is_given_up_after_looks_without_a_sign_of_life(
    looks: list[bool], stopped: bool, given_up: bool
) -> None:
    beats: Any = Beats(*looks)
    assert processes.silent_for(beats, lambda: stopped) is given_up


# Case 122


def test_122_damaged_blocks_of_an_unfinished_build_are_made_again(
    tmp_path: Path, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In each file of a block, one after another."""
    begun, folder = tmp_path / "begun" / "index", tmp_path / "index"
    begun.parent.mkdir()
    stop(begun)
    made: list[int] = []
    analyzed = building.analyzed
    monkeypatch.setattr(building, "analyzed", lambda *given: (made.append(1), analyzed(*given))[1])
    names = [path.name for path in blocks(begun.parent)[1].glob("*.npy")]
    assert len(names) == 8
    for name, how in zip(names, cycle(["cut short", "removed", "one bit"]), strict=False):
        shutil.copytree(begun.parent, tmp_path, dirs_exist_ok=True)
        path = blocks(tmp_path)[1] / name
        content = path.read_bytes()
        path.unlink()
        if how == "cut short":
            path.write_bytes(content[:-3])
        elif how == "one bit":
            path.write_bytes(content[:-5] + bytes([content[-5] ^ 1]) + content[-4:])
        made.clear()
        done: list[int] = []
        build_index(MANY, folder, progress=done.append, memory=MEMORY)
        assert len(made) == len(done) - 3, name
        assert files(folder) == whole, name
        assert not folder.with_name("index.partial").exists()
        shutil.rmtree(folder)


def stop(folder: Path) -> None:
    """Leave a build of which some blocks are done."""
    done: list[int] = []

    def interrupt(count: int) -> None:
        done.append(count)
        if len(done) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_index(MANY, folder, progress=interrupt, memory=MEMORY)


# Case 123


def halfway(path: Path) -> None:
    """Remove a part of what is in a folder."""
    for part in sorted(path.rglob("*.npy"))[::2]:
        part.unlink()


@pytest.mark.parametrize("moment", ["joining", "words", "blocks are removed", "manifest"])
def test_123_a_build_that_is_stopped_at_its_end_leaves_the_old_index_and_goes_on(
    tmp_path: Path, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    folder = tmp_path / "index"
    build_index(MADE, folder)
    before = files(folder)
    rmtree, write_whole = shutil.rmtree, building.write_whole

    def stopped(*given: Any, **more: Any) -> None:
        raise KeyboardInterrupt

    def removing(path: Path, *given: Any, **more: Any) -> None:
        if Path(path).name == "blocks":
            halfway(Path(path))
            raise KeyboardInterrupt
        rmtree(path, *given, **more)

    def writing(path: Path, text: str) -> None:
        if path.name == "fairagent.json":
            raise KeyboardInterrupt
        write_whole(path, text)

    with monkeypatch.context() as patch:
        if moment == "joining":
            patch.setattr(building.Blocks, "write", stopped)
        elif moment == "words":
            patch.setattr(building, "readable_words", stopped)
        elif moment == "blocks are removed":
            patch.setattr(shutil, "rmtree", removing)
        else:
            patch.setattr(manifest, "write_whole", writing)
        with pytest.raises(KeyboardInterrupt):
            build_index(MANY, folder, memory=MEMORY)
    assert files(folder) == before
    assert differences(folder, whole=True) == []
    build_index(MANY, folder, memory=MEMORY)
    assert files(folder) == whole
    assert not folder.with_name("index.partial").exists()


# Case 124


@pytest.mark.parametrize("about", [{"format": 2, "pyserini": "1.6.0"}, {"format": Manifest.FORMAT + 1}])
def test_124_and_182_an_index_of_another_version_is_refused(tmp_path: Path, about: dict[str, object]) -> None:
    """Also by an update, as is one without the digests of its documents."""
    folder = tmp_path / "index"
    build_index(MADE, folder)
    manifest = json.loads((folder / "fairagent.json").read_text(encoding="utf-8"))
    (folder / "fairagent.json").write_text(json.dumps(manifest | about), encoding="utf-8")
    before = files(folder)
    for read in (BM25Retriever, lambda folder, made: update_index(made, folder)):
        with pytest.raises(IndexMismatch, match=r"another version .*`fairagent index --force`$"):
            read(folder, MADE)
    assert files(folder) == before
    build_index(MADE, folder)
    assert len(BM25Retriever(folder, MADE)) == len(MADE.made)
    for name in ("digests.npy", RECORD):
        (folder / name).unlink()
    with pytest.raises(IndexMismatch, match="`fairagent index --force`"):
        update_index(Made(MADE.made, "later"), folder)
