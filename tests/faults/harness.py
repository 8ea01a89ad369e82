"""What may end a program while it writes: damage, and kills, power cuts, errors and a full disk at any point of it.

A point is what it asks of the file system in one folder: Python's audit events, and os.fsync. What C libraries write
in between (NumPy, SQLite) is reached by the full disk: no file grows beyond a size then, which the kernel sees to, and
half of a write is done.

A power cut is that of a file system with an ordered journal: names (created, renamed, removed) reach the disk in their
order, all of them up to the last folder that was forced, and of later ones any number; of a file's content no more than
what it held when it was last forced. A database takes care of that by itself.
"""

from __future__ import annotations

import errno
import os
import random
import resource
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from fairagent.errors import FairAgentError
from fairagent.types.clean import printable

EVENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.chmod"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
ENDS = ("kill", "names lost", "short", "zeros")
"""A kill, and power cuts: no later name has reached the disk, or all have, and files are as short as they can be, or as
long as they were, with zeros for what was not forced."""
ERRORS = ("ENOSPC", "EIO")
GONE = 1 << 22
"""The number of no process."""
_active: list[Callable[[str, tuple[Any, ...]], None]] = []


def trials(few: int) -> int:
    """How many random cases a test tries: `few`, or as many as the environment says (FAULT_TRIALS=150 pytest ...)."""
    return int(os.environ.get("FAULT_TRIALS", few))


def harm(folder: Path, chance: random.Random, files: list[str] | None = None) -> str:
    """Damage one of the folder's files, or of these, or exchange two; says how. At least one byte is another then."""
    names = files or sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    name = chance.choice([name for name in names if (folder / name).stat().st_size])
    path = folder / name
    before = path.read_bytes()
    how = chance.choice(["flip", "flip", "flips", "digit", "cut", "zeros", "noise", "swap", "remove", "twice"])
    after = bytearray(before)
    place = chance.randrange(len(before))
    if how in ("flip", "flips"):
        for _ in range(1 if how == "flip" else chance.randint(2, 40)):
            after[chance.randrange(len(before))] ^= 1 << chance.randrange(8)
    elif how == "digit":
        digits = [at for at, byte in enumerate(before) if 48 <= byte <= 57]
        at = chance.choice(digits or [place])
        after[at] = 48 + (after[at] - 48 + chance.randint(1, 9)) % 10
    elif how == "cut":
        del after[place:]
    elif how == "zeros":
        after[place : place + 512] = bytes(len(after[place : place + 512]))
    elif how == "noise":
        after[place : place + 64] = chance.randbytes(len(after[place : place + 64]))
    elif how == "twice":
        after[place:place] = after[place : place + 100]
    elif how == "swap":
        other = folder / chance.choice([one for one in names if one != name] or [name])
        after = bytearray(other.read_bytes())
        other.write_bytes(before)
    if how == "remove":
        path.unlink()
    else:
        if after == before:
            after[place] ^= 1
        path.write_bytes(after)
    return f"{how} {name} at {place}"


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event in EVENTS:
        for act in _active:
            act(event, arguments)


sys.addaudithook(_hook)


@contextmanager
def at_points(root: Path, act: Callable[[int], None], forced: Callable[[int], None] = lambda _: None) -> Iterator[None]:
    """Call `act` at each point of the block, with its number from 0; `forced` with a file that was forced."""
    numbers, fsync = count(), os.fsync

    def looked(event: str, arguments: tuple[Any, ...]) -> None:
        place = arguments[0]
        if event == "open" and (isinstance(place, int) or not arguments[2] & WRITING):
            return
        name = os.readlink(f"/proc/self/fd/{place}") if isinstance(place, int) else os.fsdecode(place)
        # A name without a folder is within one that was opened.
        if name.startswith(str(root)) or not name.startswith("/"):
            act(next(numbers))

    def forcing(descriptor: int) -> None:
        act(next(numbers))
        fsync(descriptor)
        forced(descriptor)

    os.fsync = forcing
    _active.append(looked)
    try:
        yield
    finally:
        _active.remove(looked)
        os.fsync = fsync


Names = dict[str, tuple[int, bytes | None]]
"""All that is in a folder: the number of each file and what it holds (None: it is a folder)."""


class Point(NamedTuple):
    """What was there, which names for certain, what files were forced with, and how far the program said it was."""

    names: Names
    certain: Names
    forced: dict[int, bytes]
    done: Any


@contextmanager
def recording(root: Path, done: Callable[[], Any]) -> Iterator[list[Point]]:
    """The points of the block, and at last what there is after it."""
    points: list[Point] = []
    # While a file is open here its number is not given to another one.
    held: dict[int, int] = {}

    def names() -> Names:
        found: Names = {}
        for path in sorted(root.rglob("*")):
            with suppress(FileNotFoundError):
                number = path.stat().st_ino
                found[path.relative_to(root).as_posix()] = number, None if path.is_dir() else path.read_bytes()
                if path.is_file() and number not in held:
                    held[number] = os.open(path, os.O_RDONLY)
        return found

    certain = names()
    contents = {number: content for number, content in certain.values() if content is not None}

    def look(_: int) -> None:
        points.append(Point(names(), certain, dict(contents), done()))

    def forced(descriptor: int) -> None:
        nonlocal certain
        about = os.fstat(descriptor)
        if stat.S_ISDIR(about.st_mode):
            certain = names()
        else:
            contents[about.st_ino] = Path(f"/proc/self/fd/{descriptor}").read_bytes()

    try:
        with at_points(root, look, forced):
            yield points
        look(-1)
    finally:
        for descriptor in held.values():
            os.close(descriptor)


def put(point: Point, folder: Path, how: str) -> None:
    """Put what is left into `folder` after the program has ended so at this point."""
    for name, (number, held) in (point.certain if how == "names lost" else point.names).items():
        path = folder / name
        (path if held is None else path.parent).mkdir(parents=True, exist_ok=True)
        if held is None:
            continue
        if how != "kill" and "cache.db" not in name:
            certain = point.forced.get(number, b"")[: len(held)]
            held = certain.ljust(len(held), b"\0") if how == "zeros" else certain
        # Who had it locked is gone, and is not this process.
        path.write_bytes(held.replace(b'"pid": %d,' % os.getpid(), b'"pid": %d,' % GONE))


@contextmanager
def failing(root: Path, how: str, number: int) -> Iterator[None]:
    """One point of the block fails with an error, or (full) no file grows beyond so many bytes."""

    def fail(place: int) -> None:
        if place == number:
            raise OSError(getattr(errno, how), os.strerror(getattr(errno, how)))

    if how != "full":
        with at_points(root, fail):
            yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (number, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def content(folder: Path) -> dict[str, bytes]:
    """Every file in a folder, and every folder in it as nothing."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else b""
        for path in sorted(folder.rglob("*"))
    }


class Trials:
    """A program, `write`, that is begun in what is in the folder `root` now, to be ended or to fail at its points.

    `state` is what it is to leave as it was or to make new; `by_file`: each file of it for itself.
    """

    def __init__(
        self, root: Path, write: Callable[[], object], state: Callable[[], Any], by_file: bool = False
    ) -> None:
        self.root, self.write, self.state, self.by_file = root, write, state, by_file
        self.kept = root.with_name("kept")
        shutil.rmtree(self.kept, ignore_errors=True)
        shutil.copytree(root, self.kept)
        self.old = state()
        write()
        self.new, self.expected = state(), self.everything()
        assert self.old != self.new
        self.begin()
        with recording(root, self.done) as self.points:
            write()
        assert self.everything() == self.expected

    def done(self) -> Any:
        """How far the program says that it is."""
        return None

    def everything(self) -> object:
        """All that is there: nothing may be left behind."""
        return content(self.root)

    def empty(self) -> None:
        # Not the folder itself, in which the program may be at work.
        for path in self.root.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def begin(self) -> None:
        self.empty()
        shutil.copytree(self.kept, self.root, dirs_exist_ok=True)

    def some(self, few: int) -> None:
        """Try `few` ends and failures, and all ends of the last points, where renaming is; all for 0."""
        last = len(self.points) - 1
        sizes = sorted({1, *(len(one) * part // 4 for one in content(self.root).values() for part in (1, 3))})
        cases = [(how, number) for number in range(last + 1) for how in ENDS]
        cases += [(how, number) for number in range(last) for how in ERRORS] + [("full", size) for size in sizes]
        drawn = random.Random(79).sample(cases, min(trials(few) or len(cases), len(cases)))
        wrong: list[str] = []
        for how, number in [*drawn, *((how, last - ago) for ago in (0, 2) for how in ENDS)]:
            try:
                self.one(how, number)
            except (AssertionError, FairAgentError) as error:
                wrong.append(f"{how} at {number} of {last}: {type(error).__name__} {error!s:.700}")
        assert not wrong, f"{len(wrong)} of these: " + "\n\n".join(wrong)

    def one(self, how: str, number: int) -> None:
        """End or fail once, look at what is left, and repeat it."""
        if how in ENDS:
            self.empty()
            put(self.points[number], self.root, how)
            # Once it is said to be done, it is.
            assert number < len(self.points) - 1 or self.state() == self.new
        else:
            self.begin()
            said = ""
            with failing(self.root, how, number):
                try:
                    self.write()
                except FairAgentError as error:
                    said = str(error)
            assert said == printable(said)
        assert self.may_be(self.state())
        self.write()
        assert self.state() == self.new
        assert self.everything() == self.expected

    def may_be(self, found: Any) -> bool:
        """Whether what was left may be there."""
        if self.by_file:
            return all(one in (self.old.get(name), self.new.get(name)) for name, one in found.items())
        return found in (self.old, self.new)
