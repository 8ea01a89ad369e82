"""Cases 193 to 197: links, FIFOs and other odd files in the folders of strangers; what only its owner may read."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evaluate import words
from studio_server import desk_of, running, write_collection
from typer.testing import CliRunner

from fairagent import Collection
from fairagent.cli.app import app
from fairagent.errors import FairAgentError, NotRegular
from fairagent.llm.cache import ReplyCache
from fairagent.llm.exchange import Transcript
from fairagent.retrieve.catalog import ArrayWriter
from fairagent.storage.arrays import write_array
from fairagent.storage.files import LineFile, locked, new_file, write_whole
from fairagent.storage.folders import workshop

MINE = b"mine\n"


@pytest.fixture
def mine(tmp_path: Path) -> Iterator[Path]:
    """A file of the user's, which nobody may change; a folder of theirs is `mine`.parent."""
    file = tmp_path / "home" / "mine.txt"
    file.parent.mkdir()
    file.write_bytes(MINE)
    yield file
    assert file.read_bytes() == MINE
    assert os.listdir(file.parent) == [file.name]


PUT: dict[str, Callable[[Path, Path], object]] = {
    "link": lambda path, mine: path.symlink_to(mine),
    "link to nothing": lambda path, mine: path.symlink_to(mine.with_name("new.txt")),
    "link to a device": lambda path, mine: path.symlink_to("/dev/null"),
    "FIFO": lambda path, mine: os.mkfifo(path),
    "folder": lambda path, mine: path.mkdir(),
}
"""What a stranger's folder may have in the place of a file."""


def opened(writer: Any) -> None:
    with writer as lines:
        if isinstance(lines, LineFile):
            lines.write("{}")


WRITERS: dict[str, Callable[[Path], object]] = {
    "whole": lambda path: write_whole(path, "theirs"),
    "line": lambda path: opened(LineFile(path)),
    "transcript": lambda path: opened(Transcript(path)),
    "array": lambda path: write_array(path, np.zeros(3)),
    "pieces": lambda path: opened(ArrayWriter(path, np.float32)),
    "new": lambda path: new_file(path).close(),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_193_no_writer_follows_a_link_or_waits_for_a_fifo(writer: str, mine: Path, tmp_path: Path) -> None:
    """Nor does it change a second name of a file with the first."""
    for what, put in PUT.items():
        path = tmp_path / what / "theirs"
        path.parent.mkdir()
        put(path, mine)
        with pytest.raises(NotRegular, match="theirs is a "):
            WRITERS[writer](path)
        assert os.listdir(path.parent) == ["theirs"]
    path = tmp_path / "theirs"
    path.hardlink_to(mine)
    if writer in ("line", "transcript"):
        with pytest.raises(FairAgentError, match="a second name" if writer == "line" else "no transcript"):
            WRITERS[writer](path)
    else:
        WRITERS[writer](path)
        assert path.stat().st_nlink == 1


def test_193_and_195_rights_are_those_of_the_old_file_or_of_the_folder(tmp_path: Path) -> None:
    def rights(path: Path, private: bool = False) -> int:
        write_whole(path, "more", private=private)
        return path.stat().st_mode & 0o777

    with Transcript(tmp_path / "transcript.jsonl"):
        assert (tmp_path / "transcript.jsonl").stat().st_mode & 0o777 == 0o600
    (tmp_path / "closed").mkdir(mode=0o700)
    assert (rights(tmp_path / "closed" / "a"), rights(tmp_path / "b", private=True)) == (0o600, 0o600)
    rights(tmp_path / "c")
    (tmp_path / "c").chmod(0o640)
    assert (rights(tmp_path / "c"), rights(tmp_path / "c", private=True)) == (0o640, 0o600)


def test_197_and_196_fifos_for_documents_and_links_for_databases_and_locks(mine: Path, tmp_path: Path) -> None:
    for name in ("a.jsonl", "a.csv", "a.parquet", "a.jsonl.gz"):
        os.mkfifo(tmp_path / name)
        with pytest.raises(FairAgentError, match="FIFO"):
            Collection.from_records(tmp_path / name, id="id", text="text")
    for what, put in PUT.items():
        folder = tmp_path / what
        folder.mkdir()
        (tmp_path / "run").mkdir()
        put(folder / "cache.db", mine)
        with pytest.raises(NotRegular, match=r"cache\.db is a"):
            ReplyCache(folder)
        put(tmp_path / "run" / "lock", mine)
        with pytest.raises(FairAgentError, match="lock"), locked(tmp_path / "run"):
            pass
        shutil.rmtree(tmp_path / "run")


@pytest.mark.parametrize("linked", ["folder", "parent"])
def test_193_links_that_the_user_has_made_stay_and_are_written_through_and_no_others(
    linked: str, mine: Path, tmp_path: Path
) -> None:
    disk, index = tmp_path / "disk", tmp_path / "indexes" / "index"
    (disk / "index").mkdir(parents=True)
    if linked == "folder":
        index.parent.mkdir()
    (index if linked == "folder" else index.parent).symlink_to(disk / "index" if linked == "folder" else disk)
    for text in ("first", "second"):
        with workshop(index) as shop:
            shop.empty()
            write_whole(shop.new / "a", text)
            shop.put()
        assert (disk / "index" / "a").read_text() == text
    for name, writer in WRITERS.items():
        writer(index / name)
    assert (index.is_symlink(), index.parent.is_symlink()) == (linked == "folder", linked == "parent")
    assert os.listdir(disk) == ["index"]
    assert {"a", *WRITERS} <= set(os.listdir(disk / "index"))
    write_whole(index / "more" / "a.txt", "mine too", within=index)
    assert (disk / "index" / "more" / "a.txt").read_text() == "mine too"
    for place in ("runs", "more/runs"):
        (index / place).symlink_to(mine.parent)
        with pytest.raises(NotRegular, match="is no folder"):
            write_whole(index / place / mine.name, "theirs", within=index)


@pytest.mark.parametrize("place", [".", "new", "lock", ".fairagent"])
def test_193_a_workshop_with_links_is_refused(place: str, mine: Path, tmp_path: Path) -> None:
    shop = tmp_path / "index.partial"
    if place == ".":
        shop.symlink_to(mine.parent)
    else:
        (shop / place).parent.mkdir(parents=True, exist_ok=True)
        if place != ".fairagent":
            (shop / ".fairagent").touch()
        (shop / place).symlink_to(mine.parent if place == "new" else mine)
    with pytest.raises(FairAgentError, match=r"index\.partial"), workshop(tmp_path / "index") as opened:
        opened.put()


@pytest.fixture
def run(mine: Path, tmp_path: Path) -> Path:
    """A finished run with its report."""
    words.run(words.write(tmp_path / "files"), tmp_path / "run", limit=3)
    reported(tmp_path / "run")
    return tmp_path / "run"


def reported(folder: Path, code: int = 0) -> str:
    """What `fairagent report` complains of."""
    done = CliRunner().invoke(app, ["report", str(folder)])
    assert done.exit_code == code, done.output
    return done.stderr.replace("\n", " ")


@contextmanager
def replaced(path: Path, what: str, mine: Path) -> Iterator[None]:
    """That is in the file's place in the block."""
    aside = path.with_name("aside")
    path.rename(aside)
    PUT[what](path, mine)
    yield
    path.rmdir() if what == "folder" else path.unlink()
    aside.rename(path)


def test_193_report_writes_into_its_folder_alone(run: Path, mine: Path) -> None:
    """In the place of every file that it writes, and under the names that whole files once had while they grew."""
    paths = [path for path in run.rglob("*") if path.is_file() and path.name not in ("run.json", "journal.jsonl")]
    assert len(paths) > 8
    before = {path: path.read_bytes() for path in paths}
    for path, what in zip(paths, cycle(PUT)):
        with replaced(path, what, mine):
            assert path.name in reported(run, 4)
    for path, what in zip(paths, cycle(PUT)):
        PUT[what](path.with_name(f".{path.name}.new"), mine)
    reported(run)
    assert {path: path.read_bytes() for path in paths} == before


@pytest.mark.parametrize("what", ["link", "link to a device", "FIFO", "folder"])
def test_194_runs_pages_and_templates_are_read_from_regular_files_of_their_own(
    what: str, run: Path, mine: Path, tmp_path: Path
) -> None:
    for name in ("run.json", "journal.jsonl"):
        with replaced(run / name, what, mine):
            assert f"{name} is a" in reported(run, 4)
    (tmp_path / "prompts").mkdir()
    PUT[what](tmp_path / "prompts" / "refine_query.j2", mine)
    done = CliRunner().invoke(app, ["prompts", "check", "--prompts", str(tmp_path / "prompts")])
    assert done.exit_code == 4, done.output
    desk = desk_of(write_collection(tmp_path / "small"), cache="")
    with running(desk, runs=run.parent) as studio, studio.client() as client:
        with replaced(run / "report.html", what, mine):
            page = client.get("/api/runs/run/page")
            assert (page.status_code, "mine" in page.text) == (400, False)
        with replaced(run / "run.json", what, mine):
            listed = {one["name"]: one for one in client.get("/api/runs").json()["runs"]}
            # Of what is not even a link to a file there is no run.
            assert ("run" not in listed) if what != "link" else "run.json is a" in listed["run"]["fault"]
