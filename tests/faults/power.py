"""A file system that forgets at a power cut whatever was not forced to it: recorded while a program works, then played.

The model is that of a file system with an ordered journal: names (created, renamed, removed) reach the disk in their
order, all of them up to the last folder that was forced, and of later ones any number; of a file's content no more than
what it held when it was last forced. What is written whole is named within its folder, and begins with a dot.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

EVENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"}
_active: list[Recording] = []


@dataclass(frozen=True, slots=True)
class Moment:
    """What was there: `names` with the files' numbers and sizes, `forced` contents, and how much was `done`."""

    names: dict[str, tuple[int, int]]
    certain: dict[str, tuple[int, int]]
    forced: dict[int, bytes]
    done: int


@dataclass(slots=True)
class Recording:
    """What a program does to the files in `root` while this is open, moment by moment; `done` asks how far it is."""

    root: Path
    done: Callable[[], int] = lambda: 0
    moments: list[Moment] = field(default_factory=list)
    _forced: dict[int, bytes] = field(default_factory=dict)
    _certain: dict[str, tuple[int, int]] = field(default_factory=dict)
    _held: dict[int, int] = field(default_factory=dict)
    _looking: bool = False
    _fsync: Callable[[int], None] = os.fsync

    def __enter__(self) -> Self:
        for path in self.root.rglob("*"):
            if path.is_file():
                self._forced[path.stat().st_ino] = path.read_bytes()
        self._certain = self._names()
        self._fsync = os.fsync
        os.fsync = self._force
        _active.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _active.remove(self)
        os.fsync = self._fsync
        self.look()
        for descriptor in self._held.values():
            os.close(descriptor)

    def look(self) -> None:
        """Remember this moment."""
        if self._looking:
            return
        self._looking = True
        try:
            self.moments.append(Moment(self._names(), self._certain, dict(self._forced), self.done()))
        finally:
            self._looking = False

    def _force(self, descriptor: int) -> None:
        self.look()
        self._fsync(descriptor)
        about = os.fstat(descriptor)
        if stat.S_ISDIR(about.st_mode):
            self._certain = self._names()
        else:
            path = f"/proc/self/fd/{descriptor}"
            self._looking = True
            self._forced[about.st_ino] = Path(path).read_bytes()
            self._looking = False
        self.look()

    def _names(self) -> dict[str, tuple[int, int]]:
        found = {}
        looking, self._looking = self._looking, True
        for path in sorted(self.root.rglob("*")):
            about = path.stat()
            name = path.relative_to(self.root).as_posix()
            found[name] = (0 if path.is_dir() else about.st_ino, about.st_size)
            if path.is_file() and about.st_ino not in self._held:
                # While it is open its number is not given to another file.
                self._held[about.st_ino] = os.open(path, os.O_RDONLY)
        self._looking = looking
        return found


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if event in EVENTS:
        for recording in _active:
            if isinstance(arguments[0], str | os.PathLike) and str(arguments[0]).startswith((str(recording.root), ".")):
                recording.look()


sys.addaudithook(_hook)


def after_the_cut(moment: Moment, folder: Path, kind: str) -> None:
    """What is in `folder` when the power is back, if it went at this moment.

    `kind`: no later name has reached the disk ("names lost"), or all have, and files are as short as they can be
    ("short") or as long as they were, with zeros for what was not forced ("zeros").
    """
    names = moment.certain if kind == "names lost" else moment.names
    for name, (number, size) in names.items():
        path = folder / name
        if not number:
            path.mkdir(parents=True, exist_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        content = moment.forced.get(number, b"")
        if kind == "zeros":
            content = content[:size] + bytes(max(0, size - len(content)))
        path.write_bytes(content)


KINDS = ("names lost", "short", "zeros")
