"""`fairagent` run many times with a failure at a point of one's choice: a process that has imported all, and forks.

As a program it takes a JSON object a line and answers with one: `python -m faults.watched`; `Watched` is its client.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from .points import Decision, Point, Watch, available, watch_me

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
            [sys.executable, "-m", "faults.watched"],
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
    from fairagent.evaluate import fingerprint, plan, workers
    from fairagent.llm.server import ServerModel
    from fairagent.settings import plugins

    # Who waits for another attempt does not.
    ServerModel.__init__.__defaults__ = (os.environ, None, None, lambda seconds: None, time.monotonic)

    # What is installed does not change: looking for it takes half of the time.
    plugins.plugins = cache(plugins.plugins)
    fingerprint._version = cache(fingerprint._version)
    plan.kind_class = cache(plan.kind_class)
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
