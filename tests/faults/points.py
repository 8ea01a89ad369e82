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
import gc
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
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any, NamedTuple

ON_FILES = {
    **{"write": 1, "pwrite64": 18, "writev": 20, "sendfile": 40, "copy_file_range": 326, "ftruncate": 77},
    **{"fsync": 74, "fdatasync": 75, "fallocate": 285, "fchmod": 91},
}
"""System calls whose first argument is an open file (the third of copy_file_range) -> their numbers."""
SOCKETS = {"connect": 42, "sendto": 44, "recvfrom": 45}
NAMED = {
    **{"openat": (257, 0, 1), "unlinkat": (263, 0, 1), "mkdirat": (258, 0, 1)},
    **{"renameat": (264, 2, 3), "renameat2": (316, 2, 3), "linkat": (265, 2, 3), "symlinkat": (266, 1, 2)},
    **{"unlink": (87, None, 0), "mkdir": (83, None, 0), "rmdir": (84, None, 0), "chmod": (90, None, 0)},
    **{"truncate": (76, None, 0), "rename": (82, None, 1), "link": (86, None, 1), "symlink": (88, None, 1)},
}
"""The others: number, and which arguments are the folder, if there is one, and the name in it, the new one of two."""
NAMES = {number: name for name, number in {**ON_FILES, **SOCKETS, **{n: one[0] for n, one in NAMED.items()}}.items()}
FULL = ("write", "pwrite64", "writev", "sendfile", "copy_file_range", "fallocate", "openat", "mkdir", "mkdirat")
"""What takes room on a disk, and fails from some point on where it is full."""
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
PIDFD_GETFD = 438
_libc = ctypes.CDLL(None, use_errno=True)


class Point(NamedTuple):
    """One call: its name, and the file (relative to the folder; "" of a socket)."""

    call: str
    place: str


class Ended(NamedTuple):
    """How a command ended: its exit code, all that it said, and the points that it passed."""

    code: int
    said: str
    points: list[Point]


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
    jump, load, give, x86_64, allow, notify = 0x15, 0x20, 0x06, 0xC000003E, 0x7FFF0000, 0x7FC00000
    lines = [(load, 0, 0, 4), (jump, 1, 0, x86_64), (give, 0, 0, allow), (load, 0, 0, 0)]
    plain = [number for number, name in NAMES.items() if name != "openat"]
    # Each comparison jumps to the last line; those that open files only where they may write.
    lines += [(jump, len(plain) - place + 3, 0, number) for place, number in enumerate(plain)]
    lines += [(jump, 0, 2, NAMED["openat"][0]), (load, 0, 0, 16 + 8 * 2), (0x45, 1, 0, WRITING)]
    lines += [(give, 0, 0, allow), (give, 0, 0, notify)]
    packed = b"".join(struct.pack("HBBI", *line) for line in lines)
    kept = ctypes.create_string_buffer(packed, len(packed))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(lines), ctypes.addressof(kept)))
    new_listener, no_new_rights, seccomp = 1 << 3, 38, 317
    if _libc.prctl(no_new_rights, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    if (listener := _libc.syscall(seccomp, 1, new_listener, program)) < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    socket.send_fds(to, [b"!"], [listener])
    os.close(listener)


class Watch:
    """A watched process: what comes of the n-th point is `failures[n]`; all are kept in `points`."""

    def __init__(self, pid: int, listener: int, root: str, failures: dict[int, str]) -> None:
        self.pid, self.listener, self.root, self.failures = pid, listener, root, failures
        self.points: list[Point] = []
        self.full = False

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
                fcntl.ioctl(self.listener, 0xC0502100, asked)
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
        how, written, process = "", 0, self.pid
        with suppress(OSError):  # it may have died meanwhile
            process = int(Path(f"/proc/{thread}/status").read_text().partition("Tgid:")[2].split()[0])
            call = NAMES[number]
            place = self._place(process, call, given)
            if place is not None:
                self.points.append(Point(call, place))
                how = self.failures.get(len(self.points), "")
                self.full = self.full or how == "full"
                if self.full:
                    how = "ENOSPC" if call in FULL else ""
                if how in ("half", "torn"):
                    written = _half(process, call, given)
                    how = "" if how == "half" and not written else how
        if how in ("kill", "torn"):
            # Without an answer: with one, the call might still be made.
            os.kill(process, signal.SIGKILL)
            return
        failed = -getattr(errno, how) if how.startswith("E") else 0
        # The last number has the kernel make the call after all.
        answer = struct.pack("=QqiI", id, written, failed, 0 if failed or how == "half" else 1)
        with suppress(OSError):
            fcntl.ioctl(self.listener, 0xC0182101, answer)

    def _place(self, process: int, call: str, given: list[int]) -> str | None:
        """The file that a call is about; None where it is not counted."""
        if call in SOCKETS:
            return ""
        if call in ON_FILES:
            path = os.readlink(f"/proc/{process}/fd/{given[2] if call == 'copy_file_range' else given[0]}")
        else:
            _, folder, name = NAMED[call]
            text = b""
            # A page at a time, since the next one may not be there.
            while b"\0" not in text:
                text += _memory(process, given[name] + len(text), 4096 - (given[name] + len(text)) % 4096)
            path = os.fsdecode(text.partition(b"\0")[0])
            if not path.startswith("/"):
                here = -100
                number = here if folder is None else ctypes.c_int32(given[folder] & 0xFFFFFFFF).value
                path = f"{os.readlink(f'/proc/{process}/' + ('cwd' if number == here else f'fd/{number}'))}/{path}"
        path = os.path.normpath(path.removesuffix(" (deleted)"))
        return os.path.relpath(path, self.root) if path.startswith(f"{self.root}/") else None


def _memory(process: int, place: int, size: int) -> bytes:
    with open(f"/proc/{process}/mem", "rb", buffering=0) as memory:
        return os.pread(memory.fileno(), size, place)


def _half(process: int, call: str, given: list[int]) -> int:
    """Write the first half of what a call wants to write, as the process itself would; how many bytes."""
    if call not in ("write", "pwrite64") or given[2] < 2:
        return 0
    about = os.pidfd_open(process)
    file = _libc.syscall(PIDFD_GETFD, about, ctypes.c_int(given[0]), 0)
    os.close(about)
    if file < 0:
        raise OSError(ctypes.get_errno(), "pidfd_getfd")
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return 0
        begun = _memory(process, given[1], given[2] // 2)
        return os.write(file, begun) if call == "write" else os.pwrite(file, begun, given[3])
    finally:
        os.close(file)


class Watched:
    """The program, ready to run. `root` is the folder whose files count; all commands run in it."""

    def __init__(self, process: subprocess.Popen[str], root: Path) -> None:
        self.root = root
        self._process = process

    def run(self, *arguments: str, failures: dict[int, str] | None = None, **environ: str) -> Ended:
        """How the command ends; `failures`: the number of a point -> what comes of it.

        That is an error's name, "half" (half is written), "torn" (half is written, then the process is killed), "kill"
        (before the call), "full" (from here on all that takes room).
        """
        told = {"root": str(self.root), "arguments": arguments, "environ": environ, "failures": failures or {}}
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(told) + "\n")
        self._process.stdin.flush()
        code, said, points = json.loads(self._process.stdout.readline())
        return Ended(code, said, [Point(*one) for one in points])


@contextmanager
def watched() -> Iterator[Watched]:
    """The program, with a folder in memory where there is one: so many forced writes are none of a disk's business.

    Where the system cannot stop a program at its calls the test is skipped.
    """
    from .life import environment

    single = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "PYTHONDONTWRITEBYTECODE"), "1")
    command, pipe, memory = [sys.executable, "-m", "faults.points"], subprocess.PIPE, Path("/dev/shm")
    with (
        tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment(**single)) as process,
    ):
        root = Path(folder).resolve() / "work"
        root.mkdir()
        assert process.stdin
        assert process.stdout
        try:
            if lacking := json.loads(process.stdout.readline()):
                import pytest

                pytest.skip(lacking)
            yield Watched(process, root)
        finally:
            process.stdin.close()


# --- the program ----------------------------------------------------------------------------------------------------


def command() -> None:
    """`fairagent` with one job after another, so that the n-th point is always the same."""
    from fairagent.cli import main
    from fairagent.evaluate import check, fingerprint, kind, workers
    from fairagent.llm.server import ServerModel
    from fairagent.settings import plugins

    @contextmanager
    def one_thread(count: int) -> Iterator[Any]:
        with ThreadPoolExecutor(1) as pool:
            yield workers.Workers(pool, 1)

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


def _watched(given: dict[str, Any]) -> tuple[int, str, list[Point]]:
    ours, theirs = socket.socketpair()
    sys.stdout.flush()
    if not (pid := os.fork()):
        ours.close()
        _live(given, theirs)
    _, (listener,), _, _ = socket.recv_fds(ours, 1, 1)
    ours.close()
    theirs.close()
    watch = Watch(pid, listener, given["root"], {int(number): how for number, how in given["failures"].items()})
    code = watch.follow()
    return code, Path(f"{given['root']}-said").read_text(encoding="utf-8", errors="replace"), watch.points


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
        traceback.print_exc()
    finally:
        with suppress(BaseException):
            sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
