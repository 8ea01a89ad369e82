"""Failures at every point of a command: what it asks of the disk and of the network, at the border of the system.

The kernel stops a watched process, its threads and whatever it starts at each system call that changes a file or moves
bytes over a socket (seccomp's user notifications), and asks here what shall come of it: it is done, it fails with an
error, half of it is written, or the process is killed. So what C libraries write (numpy, SQLite) is reached; not
mapped memory that is written to (SQLite's index of its log), nor reading. Counted are calls on files below one folder,
and on sockets. It takes Linux 5.6 or newer, on x86-64.

As a program (`python -m faults.points`) it imports `fairagent` once, forks for each command, and takes a JSON object a
line; `Watched` is its client.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import platform
import select
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import Distribution
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_calls = {
    **{"write": 1, "pwrite64": 18, "writev": 20, "sendfile": 40, "copy_file_range": 326, "ftruncate": 77},
    **{"fsync": 74, "fdatasync": 75, "fallocate": 285, "openat": 257, "truncate": 76},
    **{"rename": 82, "renameat": 264, "renameat2": 316, "link": 86, "linkat": 265, "unlink": 87, "unlinkat": 263},
    **{"mkdir": 83, "mkdirat": 258, "rmdir": 84, "symlink": 88, "symlinkat": 266, "fchmod": 91, "chmod": 90},
    **{"connect": 42, "sendto": 44, "recvfrom": 45},
}
"""Names of system calls -> their numbers."""
AUDIT, SECCOMP = 0xC000003E, 317
PIDFD_GETFD = 438
SORTS = {
    "writes": ("write", "pwrite64", "writev", "sendfile", "copy_file_range", "ftruncate", "fallocate", "truncate"),
    "fsyncs": ("fsync", "fdatasync"),
    "opens for writing": ("openat",),
    "names": (
        *("rename", "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat", "mkdir", "mkdirat", "rmdir"),
        *("symlink", "symlinkat", "chmod", "fchmod"),
    ),
    "sockets": ("connect", "sendto", "recvfrom"),
}
"""What is counted together; `names` are renamed, made, linked and removed ones."""
SORT_OF = {call: sort for sort, calls in SORTS.items() for call in calls}
ON_FILES = frozenset((*SORTS["writes"], *SORTS["fsyncs"], "fchmod")) - {"truncate"}
"""Those whose first argument is an open file (of `sendfile` and `copy_file_range` see `_place`)."""

NAMED: dict[str, tuple[int | None, int]] = {
    **dict.fromkeys(("openat", "unlinkat", "mkdirat"), (0, 1)),
    **dict.fromkeys(("renameat", "renameat2", "linkat"), (2, 3)),
    **dict.fromkeys(("unlink", "mkdir", "rmdir", "chmod", "truncate"), (None, 0)),
    **dict.fromkeys(("rename", "link", "symlink"), (None, 1)),
    "symlinkat": (1, 2),
}
"""Which arguments of the others are the folder, if there is one, and the name in it, the new one of two."""

_names = {number: name for name, number in _calls.items()}
_libc = ctypes.CDLL(None, use_errno=True)

NEW_LISTENER, ALLOW, NOTIFY = 1 << 3, 0x7FFF0000, 0x7FC00000
RECEIVE, ANSWER, CONTINUE = 0xC0502100, 0xC0182101, 1
AT_FDCWD = -100
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def available() -> str:
    """Why this machine cannot do it; "" where it can."""
    if platform.machine() != "x86_64" or not hasattr(os, "pidfd_open"):
        return f"system calls are not stopped here ({platform.system()} on {platform.machine()})"
    ours, theirs = socket.socketpair()
    if not (pid := os.fork()):
        with suppress(BaseException):
            watch_me(theirs)
            os._exit(0)
        os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    ours.close()
    theirs.close()
    return "" if code == 0 else "the kernel stops no system calls for us (seccomp's user notifications)"


def watch_me(to: socket.socket) -> None:
    """Have every call of this process, and of those that it starts, stopped from now on, by whom `to` leads to."""
    jump, load, give = 0x15, 0x20, 0x06
    lines = [(load, 0, 0, 4), (jump, 1, 0, AUDIT), (give, 0, 0, ALLOW), (load, 0, 0, 0)]
    plain = [number for name, number in _calls.items() if name != "openat"]
    # Each comparison jumps to the last line; those that open files only where they may write.
    for place, number in enumerate(plain):
        lines.append((jump, len(plain) - place + 3, 0, number))
    lines += [(jump, 0, 2, _calls["openat"]), (load, 0, 0, 16 + 8 * 2), (0x45, 1, 0, WRITING)]
    lines += [(give, 0, 0, ALLOW), (give, 0, 0, NOTIFY)]
    packed = b"".join(struct.pack("HBBI", *line) for line in lines)
    kept = ctypes.create_string_buffer(packed, len(packed))
    program = _Program(len(lines), ctypes.addressof(kept))
    if _libc.prctl(38, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    listener = _libc.syscall(SECCOMP, 1, NEW_LISTENER, ctypes.byref(program))
    if listener < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    socket.send_fds(to, [b"!"], [listener])
    os.close(listener)


@dataclass(frozen=True, slots=True)
class Point:
    """One call: its name, and the file (relative to the folder; "" of a socket)."""

    call: str
    place: str


Decision = str | int
"""What comes of a call: "" (it is done), an errno, "half" (half is written), "torn" (half, then killed), "kill"."""


@dataclass(slots=True)
class Watch:
    """A watched process: asks `decide` with each point and its number, from 1, and keeps them in `points`."""

    pid: int
    listener: int
    root: str
    decide: Callable[[int, Point], Decision]
    points: list[Point] = field(default_factory=list)

    def follow(self) -> int:
        """Answer until the process and all that it started are gone; its exit code."""
        poll, code = select.poll(), None
        poll.register(self.listener, select.POLLIN)
        poll.register(alive := os.pidfd_open(self.pid), select.POLLIN)
        while events := dict(poll.poll()):
            if alive in events:
                # Before the listener hangs up on older kernels, whoever it listened to has to be buried.
                code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
                poll.unregister(alive)
                os.close(alive)
            if self.listener not in events:
                continue
            if not events[self.listener] & select.POLLIN:
                break
            asked = bytearray(80)
            try:
                fcntl.ioctl(self.listener, RECEIVE, asked)
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.EINTR):
                    continue  # whoever asked has died
                raise
            self._answer(asked)
        os.close(self.listener)
        if code is None:
            code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            os.close(alive)
        return code

    def _answer(self, asked: bytearray) -> None:
        id, thread, _, number, _, _, *given = struct.unpack("=QIIiIQ6Q", asked)
        decision, value, process = "", 0, self.pid
        with suppress(OSError):  # it may have died meanwhile
            process = _process_of(thread)
            place = self._place(process, _names[number], given)
            if place is not None:
                point = Point(_names[number], place)
                self.points.append(point)
                decision = self.decide(len(self.points), point)  # type: ignore[assignment]
                if decision in ("half", "torn"):
                    value = _half(process, point.call, given)
                    decision = "" if not value and decision == "half" else decision
        if decision in ("kill", "torn"):
            # Without an answer: with one, the call might still be made.
            os.kill(process, signal.SIGKILL)
            return
        if isinstance(decision, int):
            answer = struct.pack("=QqiI", id, 0, -decision, 0)
        else:
            answer = struct.pack("=QqiI", id, value, 0, 0 if decision == "half" else CONTINUE)
        with suppress(OSError):
            fcntl.ioctl(self.listener, ANSWER, answer)

    def _place(self, process: int, call: str, given: list[int]) -> str | None:
        """The file that a call is about; None where it is not counted."""
        if SORT_OF[call] == "sockets":
            return ""
        if call in ON_FILES:
            path = os.readlink(f"/proc/{process}/fd/{_file(call, given)}")
        else:
            folder, name = NAMED[call]
            path = _text(process, given[name])
            if not path.startswith("/"):
                number = AT_FDCWD if folder is None else ctypes.c_int32(given[folder] & 0xFFFFFFFF).value
                within = f"/proc/{process}/cwd" if number == AT_FDCWD else f"/proc/{process}/fd/{number}"
                path = f"{os.readlink(within)}/{path}"
        path = os.path.normpath(path.removesuffix(" (deleted)"))
        return os.path.relpath(path, self.root) if path.startswith(f"{self.root}/") else None


def _file(call: str, given: list[int]) -> int:
    return given[2] if call == "copy_file_range" else given[0]


def _process_of(thread: int) -> int:
    status = Path(f"/proc/{thread}/status").read_text()
    return int(status.partition("Tgid:")[2].split()[0])


def _memory(process: int, place: int, size: int) -> bytes:
    descriptor = os.open(f"/proc/{process}/mem", os.O_RDONLY)
    try:
        return os.pread(descriptor, size, place)
    finally:
        os.close(descriptor)


def _text(process: int, place: int) -> str:
    """The text that ends with a zero byte there; a page at a time, since the next one may not be there."""
    found = b""
    while b"\0" not in found:
        found += _memory(process, place + len(found), 4096 - (place + len(found)) % 4096)
    return os.fsdecode(found.partition(b"\0")[0])


def _half(process: int, call: str, given: list[int]) -> int:
    """Write the first half of what a call wants to write, as the process itself would; how many bytes."""
    if call not in ("write", "pwrite64") or given[2] < 2:
        return 0
    about = os.pidfd_open(process)
    try:
        file = _libc.syscall(PIDFD_GETFD, about, ctypes.c_int(given[0]), 0)
        if file < 0:
            raise OSError(ctypes.get_errno(), "pidfd_getfd")
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                return 0
            begun = _memory(process, given[1], given[2] // 2)
            return os.write(file, begun) if call == "write" else os.pwrite(file, begun, given[3])
        finally:
            os.close(file)
    finally:
        os.close(about)


FULL = ("write", "pwrite64", "writev", "sendfile", "copy_file_range", "fallocate", "openat", "mkdir", "mkdirat")
"""What takes room on a disk, and fails from some point on where it is full."""
HOWS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "ECONNRESET": errno.ECONNRESET}


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: its exit code, all that it said, and the points that it passed."""

    code: int
    said: str
    points: tuple[Point, ...]


class Watched:
    """The program, ready to run; a context manager. `root` is the folder whose files count; all commands run in it.

    Where the system cannot stop a program at its calls the test is skipped.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    def __enter__(self) -> Self:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("FAIRAGENT_", "OPENAI_"))}
        single = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "PYTHONDONTWRITEBYTECODE"), "1")
        paths = {"PYTHONPATH": os.pathsep.join(sys.path), "NO_PROXY": "127.0.0.1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "faults.points"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**kept, **single, **paths},
        )
        assert self._process.stdout
        if lacking := json.loads(self._process.stdout.readline()):
            import pytest

            self._process.communicate()
            pytest.skip(lacking)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()

    def run(self, *arguments: str, failures: Mapping[int, str] = {}, **environ: str) -> Ended:
        """How the command ends; `failures`: the number of a point -> what comes of it.

        That is an error's name, "half" (half is written), "torn" (half is written, then the process is killed), "kill"
        (before the call), "full" (from here on all that takes room).
        """
        told = {"root": str(self.root), "arguments": arguments, "environ": environ, "failures": dict(failures)}
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(told) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        return Ended(answer["code"], answer["said"], tuple(Point(*one) for one in answer["points"]))


# --- the program ----------------------------------------------------------------------------------------------------


def command() -> None:
    """`fairagent` with one job after another, so that the n-th point is always the same."""
    from fairagent.cli import main
    from fairagent.evaluate import check, fingerprint, kind, workers
    from fairagent.llm.server import ServerModel
    from fairagent.settings import plugins

    # Who waits for another attempt does not.
    ServerModel.__init__.__defaults__ = (os.environ, None, None, lambda seconds: None, time.monotonic)

    # What is installed does not change: looking for it takes half of the time.
    plugins.plugins = cache(plugins.plugins)
    fingerprint._version = cache(fingerprint._version)
    kind.kind_class = check.kind_class = cache(kind.kind_class)
    known = cache(Distribution.metadata.fget)
    Distribution.metadata = property(lambda self: known(self))
    workers.threads = one_thread
    main()


@contextmanager
def one_thread(count: int) -> Iterator[Any]:
    """Workers of one thread that have one job at a time."""
    from fairagent.evaluate.workers import Workers

    with ThreadPoolExecutor(1) as pool:
        yield Workers(pool, 1, here=True)


@contextmanager
def watched_in_memory() -> Iterator[Watched]:
    """The program, with a folder in memory where there is one: so many forced writes are none of a disk's business."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        root = Path(folder).resolve() / "work"
        root.mkdir()
        with Watched(root) as program:
            yield program


def main() -> None:
    """Answer line by line; what the first of a kind of commands imports, the next ones find imported."""
    known: set[str] = set()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    print(json.dumps(available()), file=answers, flush=True)
    for line in sys.stdin:
        given = json.loads(line)
        if given["arguments"][0] not in known:
            known.add(given["arguments"][0])
            _rehearse(given)
        print(json.dumps(_watched(given)), file=answers, flush=True)


def _rehearse(given: dict[str, Any]) -> None:
    """Do a command here, in a copy of the folder: what it imports and remembers, all forks have from then on."""
    import gc

    copy, kept = Path(f"{given['root']}-rehearsal"), dict(os.environ)
    shutil.copytree(given["root"], copy)
    said = os.dup(2)
    try:
        _begin({**given, "root": str(copy)})
        with suppress(BaseException):
            command()
    finally:
        sys.stdout.flush()
        os.dup2(said, 1)
        os.dup2(said, 2)
        os.close(said)
        os.chdir("/")
        os.environ.clear()
        os.environ.update(kept)
        shutil.rmtree(copy)
        gc.collect()
        gc.freeze()


def _watched(given: dict[str, Any]) -> dict[str, Any]:
    failures = {int(number): how for number, how in given["failures"].items()}
    ours, theirs = socket.socketpair()
    sys.stdout.flush()
    if not (pid := os.fork()):
        ours.close()
        _live(given, theirs)
    _, (listener,), _, _ = socket.recv_fds(ours, 1, 1)
    ours.close()
    theirs.close()
    full = [False]

    def decide(number: int, point: Point) -> Decision:
        how = failures.get(number, "")
        full[0] = full[0] or how == "full"
        if full[0]:
            return errno.ENOSPC if point.call in FULL else ""
        return HOWS.get(how, how)

    watch = Watch(pid, listener, given["root"], decide)
    code = watch.follow()
    said = Path(f"{given['root']}-said").read_text(encoding="utf-8", errors="replace")
    return {"code": code, "said": said, "points": [(one.call, one.place) for one in watch.points]}


def _begin(given: dict[str, Any]) -> None:
    said = os.open(f"{given['root']}-said", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    os.dup2(said, 1)
    os.dup2(said, 2)
    os.close(said)
    os.chdir(given["root"])
    os.environ.update(given["environ"])
    sys.argv = ["fairagent", *given["arguments"]]


def _live(given: dict[str, Any], watched_by: socket.socket) -> None:
    """Be the command."""
    code = 70
    try:
        _begin(given)
        watch_me(watched_by)
        command()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with suppress(BaseException):
            sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
