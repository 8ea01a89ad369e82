"""Processes that do jobs side by side, each with what its first job opened.

What computes more than it waits needs processes. They are spawned, never forked: Java and torch do not survive a fork.
So a script needs the guard `if __name__ == "__main__":`, as everything does that starts processes.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import get_context, parent_process
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TypeVar

from fairagent.errors import BackendUnavailable
from fairagent.storage.signals import ENDING
from fairagent.storage.threads import OF_LIBRARIES

T = TypeVar("T")
LOOK = 1.0
"""Seconds between two looks whether a process was stopped."""
STOPPED = 20
"""Looks in a row that find it so until it is given up: looks and not seconds, since this one may be stopped itself."""


def cores() -> int:
    """The processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Crew(ThreadPoolExecutor):
    """An executor that hands jobs to as many processes; one does its jobs `here`, if so wanted.

    Processes start with the first jobs, those besides `here` once it is to `grow`: a short run starts none. They end
    with `shutdown`, and with this process, whatever ends it. A job is a function of a module, its arguments and its
    result can be pickled, and what it raises is raised here; BackendUnavailable where a process has ended, or was
    stopped: it would be waited for without end.
    """

    def __init__(self, count: int, here: bool = True) -> None:
        super().__init__(count, thread_name_prefix="crew", initializer=self._begin)
        self._pool = ProcessPoolExecutor(max(1, count - here), get_context("spawn"), _prepare)
        self._mine = threading.local()
        self._lock = threading.Lock()
        self._here, self._watched, self._given_up = here, False, ""
        self._awake, self._ending = threading.Event(), threading.Event()
        if not here:
            self.grow()

    def submit(self, work: Callable[..., T], /, *arguments: Any, **_: Any) -> Future[T]:
        """Have a job done; its result as a future."""
        return super().submit(lambda: self._do(work, arguments))

    def grow(self) -> None:
        """Have the other processes start."""
        self._awake.set()

    @property
    def grown(self) -> bool:
        """Whether they are to."""
        return self._awake.is_set()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Wait for the jobs that are under way, and end the processes."""
        self._ending.set()
        self._awake.set()
        super().shutdown(wait, cancel_futures=cancel_futures)
        self.abandon()
        self._pool.shutdown(cancel_futures=True)

    def abandon(self) -> None:
        """End the processes at once: nobody waits for what they do."""
        self._ending.set()
        self._awake.set()
        for one in self._processes:
            one.kill()

    @property
    def _processes(self) -> list[BaseProcess]:
        return list((self._pool._processes or {}).values())

    def _begin(self) -> None:
        with self._lock:
            self._mine.here, self._here = self._here, False
        if self._mine.here:
            return
        self._awake.wait()
        with self._lock:
            if not (self._watched or self._ending.is_set()):
                self._watched = True
                threading.Thread(target=self._watch, name="crew-watch", daemon=True).start()

    def _do(self, work: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        if self._mine.here:
            return work(*arguments)
        try:
            return self._pool.submit(work, *arguments).result()
        except BrokenProcessPool:
            how = self._given_up or "has ended: was it killed, or is the memory used up?"
            raise BackendUnavailable(
                f"a worker process {how} To go on, repeat the command, with fewer --workers where memory is short"
            ) from None

    def _watch(self) -> None:
        """Kill a process that was stopped for too long; who waits for its job is told why."""
        looks = Counter[int | None]()
        while not self._ending.wait(LOOK):
            for one in self._processes:
                looks[one.pid] = looks[one.pid] + 1 if is_stopped(one.pid) else 0
                if looks[one.pid] >= STOPPED:
                    self._given_up = f"(pid {one.pid}) is stopped (SIGSTOP) and was ended."
                    one.kill()


def is_stopped(pid: int | None) -> bool:
    """Whether a process was stopped (SIGSTOP, Ctrl-Z); False where the system does not tell."""
    try:
        # After the command's name, which may hold anything, comes the state.
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"T"
    except (OSError, IndexError):
        with suppress(OSError):
            state = subprocess.run(["ps", "-o", "state=", "-p", str(pid)], capture_output=True, check=False).stdout
            return state.startswith(b"T")
        return False


def _prepare() -> None:
    """What a process does before its first job."""
    parent = parent_process()
    assert parent is not None

    def end_with_it() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=end_with_it, daemon=True).start()
    # Libraries that are loaded from now on use one thread.
    os.environ.update(dict.fromkeys(OF_LIBRARIES, "1"))
    # Ctrl-C in a terminal reaches every process: the first one sees to an orderly end.
    for number in ENDING:
        signal.signal(number, signal.SIG_DFL if number == signal.SIGTERM else signal.SIG_IGN)
