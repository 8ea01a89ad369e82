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
from pathlib import Path
from time import sleep
from typing import Any, TypeVar

from fairagent.errors import BackendUnavailable, FairAgentError
from fairagent.storage.signals import ENDING
from fairagent.storage.threads import OF_LIBRARIES

T = TypeVar("T")
PATIENCE = 1.0
"""Seconds that a process without a job is given to end by itself."""
BEAT = 1.0
"""Seconds between two signs of life of a process, which a thread of its own gives, however long a job takes."""
SILENT, STOPPED = 300, 20
"""Looks, a `BEAT` each, without a sign of life until a process is given up; those at one that is known to be stopped.

Looks and not seconds, so that nothing is given up for the time in which this process was itself stopped.
"""


def cores() -> int:
    """The processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Crew(ThreadPoolExecutor):
    """An executor whose threads hand each job to a process of their own; the first does its jobs `here`, if so wanted.

    Processes start with the first jobs, those besides `here` after `patience` seconds, so that a short run starts none.
    They end with `shutdown`, and with this process, whatever ends it. A job is a function of a module, its arguments
    and its result can be pickled, and what it raises is raised here; BackendUnavailable where its process has ended, or
    gives no sign of life: one that was stopped would be waited for without end.
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
        self._beats, beating = spawn.Pipe(duplex=False)
        self._process = spawn.Process(target=_serve, args=(theirs, beating), daemon=True)
        self._process.start()
        theirs.close()
        beating.close()
        self._given_up = ""
        threading.Thread(target=self._watch, name="crew-watch", daemon=True).start()

    def do(self, work: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        """What `work` returns or raises there."""
        try:
            self._pipe.send((work, arguments))
            result, error = self._pipe.recv()
        except (EOFError, OSError):
            self._process.join(PATIENCE)
            ended = f"has ended (exit code {self._process.exitcode}): was it killed, or is the memory used up?"
            raise BackendUnavailable(
                f"a worker process {self._given_up or ended} What is done stays: repeat the command, with fewer "
                "--workers where memory is short"
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
        # A stopped process would look at no other signal.
        self._process.kill()
        self._process.join()

    def _watch(self) -> None:
        """Kill the process once it has been silent for too long; who waits for its job is told why."""
        pid = self._process.pid
        if silent_for(self._beats, lambda: is_stopped(pid)):
            self._given_up = (
                f"(pid {pid}) {'is stopped (SIGSTOP)' if is_stopped(pid) else 'gives no sign of life'} and was ended."
            )
            self._process.kill()


def silent_for(beats: Connection, stopped: Callable[[], bool]) -> bool:
    """Wait until no sign of life has come for too many looks; False where the other end was closed before.

    Of those at a process that is `stopped` fewer will do.
    """
    silent = asleep = 0
    with suppress(EOFError, OSError):
        while silent < SILENT and asleep < STOPPED:
            if beats.poll(BEAT):
                beats.recv_bytes()
                silent = asleep = 0
            else:
                silent, asleep = silent + 1, asleep + 1 if stopped() else 0
        return True
    return False


def is_stopped(pid: int | None) -> bool:
    """Whether a process was stopped (SIGSTOP, Ctrl-Z); False where the system does not tell."""
    try:
        # After the command's name, which may hold anything, comes the state.
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"T"
    except (OSError, IndexError):
        return False


def _beat(beats: Connection) -> None:
    with suppress(OSError):
        while True:
            beats.send_bytes(b".")
            sleep(BEAT / 2)


def _serve(jobs: Connection, beats: Connection) -> None:
    """Do jobs until the other end is closed, which the end of the process there does as well."""
    threading.Thread(target=_beat, args=(beats,), daemon=True).start()
    # Libraries that are loaded from now on use one thread.
    os.environ.update(dict.fromkeys(OF_LIBRARIES, "1"))
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
