"""A file system that forgets at a power cut whatever was not forced to it: recorded while a program works, then played.

The model is that of a file system with an ordered journal: names (created, renamed, removed) reach the disk in their
order, all of them up to the last folder that was forced, and of later ones any number; of a file's content no more than
what it held when it was last forced. What is written whole is named within its folder, and begins with a dot.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

EVENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"}
KINDS = ("names lost", "short", "zeros")
_active: list[Recording] = []


class Moment(NamedTuple):
    """What was there: `names` with the files' numbers and sizes, `forced` contents, and how much was `done`."""

    names: dict[str, tuple[int, int]]
    certain: dict[str, tuple[int, int]]
    forced: dict[int, bytes]
    done: int


class Recording:
    """What a program does to the files in `root`, moment by moment; `done` asks how far it is."""

    def __init__(self, root: Path, done: Callable[[], int]) -> None:
        self.root, self.done = root, done
        self.moments: list[Moment] = []
        self.forced = {path.stat().st_ino: path.read_bytes() for path in root.rglob("*") if path.is_file()}
        self.held: dict[int, int] = {}
        self.looking = False
        self.certain = self.names()

    def look(self) -> None:
        """Remember this moment."""
        if not self.looking:
            self.moments.append(Moment(self.names(), self.certain, dict(self.forced), self.done()))

    def force(self, descriptor: int, fsync: Callable[[int], None]) -> None:
        """What os.fsync does meanwhile."""
        self.look()
        fsync(descriptor)
        about = os.fstat(descriptor)
        if stat.S_ISDIR(about.st_mode):
            self.certain = self.names()
        else:
            self.looking = True
            self.forced[about.st_ino] = Path(f"/proc/self/fd/{descriptor}").read_bytes()
            self.looking = False
        self.look()

    def names(self) -> dict[str, tuple[int, int]]:
        """What is there now. While a file is open here its number is not given to another one."""
        found, self.looking = {}, True
        for path in sorted(self.root.rglob("*")):
            about = path.stat()
            found[path.relative_to(self.root).as_posix()] = (0 if path.is_dir() else about.st_ino, about.st_size)
            if path.is_file() and about.st_ino not in self.held:
                self.held[about.st_ino] = os.open(path, os.O_RDONLY)
        self.looking = False
        return found


@contextmanager
def recording(root: Path, done: Callable[[], int] = lambda: 0) -> Iterator[list[Moment]]:
    """The moments of what is done in the block."""
    made, fsync = Recording(root, done), os.fsync
    os.fsync = lambda descriptor: made.force(descriptor, fsync)
    _active.append(made)
    try:
        yield made.moments
    finally:
        _active.remove(made)
        os.fsync = fsync
        made.look()
        for descriptor in made.held.values():
            os.close(descriptor)


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if event in EVENTS:
        for one in _active:
            if isinstance(arguments[0], str | os.PathLike) and str(arguments[0]).startswith((str(one.root), ".")):
                one.look()


sys.addaudithook(_hook)


def after_the_cut(moment: Moment, folder: Path, kind: str) -> None:
    """What is in `folder` when the power is back, if it went at this moment.

    `kind`: no later name has reached the disk ("names lost"), or all have, and files are as short as they can be
    ("short") or as long as they were, with zeros for what was not forced ("zeros").
    """
    for name, (number, size) in (moment.certain if kind == "names lost" else moment.names).items():
        path = folder / name
        (path.parent if number else path).mkdir(parents=True, exist_ok=True)
        if number:
            content = moment.forced.get(number, b"")
            path.write_bytes(content[:size] + bytes(max(0, size - len(content))) if kind == "zeros" else content)
