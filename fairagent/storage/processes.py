"""Processes that do jobs side by side, each with what its first job opened.

What computes more than it waits needs processes. They are spawned, never forked: Java and torch do not survive a fork.
So a script needs the guard `if __name__ == "__main__":`, as everything does that starts processes.
"""

from __future__ import annotations

import os
import signal
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from fairagent.errors import BackendUnavailable, FairAgentError
from fairagent.storage.threads import OF_BLAS

T = TypeVar("T")

ENDING = tuple(number for number in signal.Signals if number.name in ("SIGINT", "SIGTERM", "SIGHUP"))
"""The signals that ask a program to end; Windows has no SIGHUP."""
PATIENCE = 1.0
"""Seconds that a process without a job is given to end by itself."""


def cores() -> int:
    """The processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Crew(ThreadPoolExecutor):
    """An executor whose threads hand each job to a process of their own; the first does its jobs `here`, if so wanted.

    Processes start with the first jobs, those besides `here` after `patience` seconds, so that a short run starts none.
    They end with `shutdown`, and with this process, whatever ends it. A job is a function of a module, its arguments
    and its result can be pickled, and what it raises is raised here; BackendUnavailable where its process has ended.
    """

    def __init__(self, count: int, here: bool = True, patience: float = 0.0) -> None:
        super().__init__(count, thread_name_prefix="crew", initializer=self._begin)
        self._mine = threading.local()
        self._lock = threading.Lock()
        self._here, self._patience = here, patience
        self._ending = threading.Event()
        self._others: list[_Other] = []

    def submit(self, work: Callable[..., T], /, *arguments: Any, **_: Any) -> Future[T]:
        """Have a job done; its result as a future."""
        return super().submit(lambda: self._do(work, arguments))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Wait for the jobs that are under way, and end the processes."""
        self._ending.set()
        super().shutdown(wait, cancel_futures=cancel_futures)
        for other in self._others:
            other.end()

    def abandon(self) -> None:
        """End the processes at once: nobody waits for what they do."""
        self._ending.set()
        for other in self._others:
            other.kill()

    def _begin(self) -> None:
        with self._lock:
            here, self._here = self._here, False
        self._mine.other = None
        if not here and not self._ending.wait(self._patience):
            self._mine.other = _Other()
            self._others.append(self._mine.other)

    def _do(self, work: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        other: _Other | None = self._mine.other
        return work(*arguments) if other is None else other.do(work, arguments)


class _Other:
    """A process that does one job at a time, for one thread."""

    def __init__(self) -> None:
        spawn = get_context("spawn")
        self._pipe, theirs = spawn.Pipe()
        self._process = spawn.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def do(self, work: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        """What `work` returns or raises there."""
        try:
            self._pipe.send((work, arguments))
            result, error = self._pipe.recv()
        except (EOFError, OSError):
            self._process.join(PATIENCE)
            raise BackendUnavailable(
                f"a worker process has ended (exit code {self._process.exitcode}): was it killed, or is the memory "
                "used up? What is done stays: repeat the command, with fewer --workers where memory is short"
            ) from None
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]

    def kill(self) -> None:
        """End the process at once; what it does is lost."""
        self._process.terminate()

    def end(self) -> None:
        """End the process, ready or not."""
        self._pipe.close()
        self._process.join(PATIENCE)
        self._process.terminate()
        self._process.join()


def _serve(jobs: Connection) -> None:
    """Do jobs until the other end is closed, which the end of the process there does as well."""
    # Libraries that are loaded from now on use one thread; OpenMP is torch's and faiss's.
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", *OF_BLAS), "1"))
    # Ctrl-C in a terminal reaches every process: the first one sees to an orderly end.
    for number in ENDING:
        signal.signal(number, signal.SIG_DFL if number == signal.SIGTERM else signal.SIG_IGN)
    with suppress(EOFError, OSError):
        while True:
            work, arguments = jobs.recv()
            try:
                outcome: tuple[Any, BaseException | None] = work(*arguments), None
            except BaseException as error:
                if not isinstance(error, FairAgentError):
                    error.add_note(f"In a worker process:\n{traceback.format_exc()}")
                outcome = None, error
            jobs.send(outcome)
