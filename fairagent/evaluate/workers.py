"""Workers that run jobs: threads of this process, or a crew of processes.

Jobs that wait for a language model need threads; those that compute need processes, since Python computes in one
thread at a time.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import islice
from time import monotonic
from typing import TypeVar

from fairagent.errors import UsageError
from fairagent.storage.signals import ENDING
from fairagent.storage.threads import Crew

T = TypeVar("T")

PATIENCE = 0.5
"""Seconds that a run goes on before the other processes of a crew are started."""
WORTH = 10.0
"""Seconds of work, at the pace so far, that have to be left: a process takes about two to open everything."""


@dataclass(frozen=True, slots=True)
class Workers:
    """An executor, which does some of its jobs in this process, and how many it is given at a time."""

    executor: Executor
    width: int

    @property
    def alone(self) -> bool:
        """Whether other processes were to help and none was started, since they would have gained nothing."""
        return isinstance(self.executor, Crew) and not self.executor.grown

    def for_each(
        self, jobs: Iterable[tuple[Callable[..., T], tuple[object, ...]]], record: Callable[[T], None], total: int = 0
    ) -> None:
        """Call every job (function, arguments), and `record` with each result, in this thread, as soon as it is there.

        `total` is how many there are, 0: not known. A crew's other processes start where enough is left to do.
        The first error, or Ctrl-C (KeyboardInterrupt), ends it: nothing new is begun, what runs is waited for and
        recorded (it may have cost money), then the error is raised. A second Ctrl-C does not wait.
        """
        rest = iter(jobs)
        running: set[Future[T]] = set()
        error: BaseException | None = None
        began, recorded = monotonic(), 0
        while True:
            if (small := self.alone) and (spent := monotonic() - began) >= PATIENCE:
                left = spent / max(recorded, 1) * (total - recorded) if total else WORTH
                if left >= WORTH and isinstance(self.executor, Crew):
                    self.executor.grow()
            try:
                with interrupts_deferred():
                    for work, arguments in islice(rest, self.width - len(running) if error is None else 0):
                        running.add(self.executor.submit(work, *arguments))
                if not running:
                    break
                # What is done stays among the running until it is recorded: Ctrl-C may come in between.
                done = wait(running, PATIENCE if small else None, FIRST_COMPLETED).done
                with interrupts_deferred():
                    for future in done:
                        running.discard(future)
                        if future.cancelled():
                            continue
                        if (raised := future.exception()) is None:
                            record(future.result())
                            recorded += 1
                        else:
                            error = error or raised
            except KeyboardInterrupt as interrupt:
                if error is not None:
                    raise
                error = interrupt
            if error is not None:
                running = {future for future in running if not future.cancel()}
        if error is not None:
            raise error


@contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Let Ctrl-C, and the other signals that end the program in order, wait for the end of the block (main thread)."""
    handlers = {number: handler for number in ENDING if callable(handler := signal.getsignal(number))}
    if threading.current_thread() is not threading.main_thread() or not handlers:
        yield
        return
    came: list[int] = []
    for number in handlers:
        signal.signal(number, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if came:
        handlers[signal.Signals(came[0])](came[0], None)


def threads(count: int) -> AbstractContextManager[Workers]:
    """So many threads of this process; UsageError for none."""
    return _of_this_machine("threads", count, lambda: ThreadPoolExecutor(count, thread_name_prefix="topic"))


def crew(count: int) -> AbstractContextManager[Workers]:
    """So many processes, of which this one is the first; the others start where they gain time.

    A script needs the guard `if __name__ == "__main__":`. UsageError for none.
    """
    return _of_this_machine("processes", count, lambda: Crew(count))


@contextmanager
def _of_this_machine(what: str, count: int, start: Callable[[], Executor]) -> Iterator[Workers]:
    if count < 1:
        raise UsageError(f"--workers is the number of {what} and must be at least 1, not {count}")
    executor = start()
    try:
        yield Workers(executor, 2 * count)
    finally:
        executor.shutdown(cancel_futures=True)
