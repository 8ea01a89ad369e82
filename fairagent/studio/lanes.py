"""`Lanes`: a few threads that search, and a short queue before them."""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from fairagent.errors import FairAgentError

T = TypeVar("T")

LANES = 2
"""Searches at once: threads of one process take turns, and more of them make all slower; one slow search shall not hold
up the others."""
WITH_MODEL = 4
"""Searches at once where a language model is waited for."""
WAITING = 200
"""Searches that may wait."""


class Busy(FairAgentError):
    """More is asked at once than may wait."""


class Lanes:
    """`lanes` threads that do what is submitted, first come first served; at most `waiting` wait.

    The threads hold up nobody who ends the process.
    """

    def __init__(self, lanes: int = LANES, waiting: int = WAITING) -> None:
        self._queue: queue.Queue[tuple[Future[Any], Callable[[], Any]]] = queue.Queue(waiting)
        for number in range(lanes):
            threading.Thread(target=self._work, name=f"lane-{number}", daemon=True).start()

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """The future of what `work` returns or raises; Busy where too many wait."""
        future: Future[T] = Future()
        try:
            self._queue.put_nowait((future, work))
        except queue.Full:
            raise Busy(f"{self._queue.maxsize} searches wait already; ask again in a moment") from None
        return future

    def _work(self) -> None:
        while True:
            future, work = self._queue.get()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)
