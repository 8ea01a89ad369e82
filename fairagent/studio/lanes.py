"""`Lanes`: a few threads that search, and a short queue before them.

Records and errors as they leave for a browser or another program.
"""

import json
import math
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from fairagent.extend import (
    BackendUnavailable,
    BudgetExceeded,
    DataError,
    FairAgentError,
    ModelError,
    PlainRecord,
    UsageError,
    printable,
)
from fairagent.studio.own_prompts import Changed

T = TypeVar("T")

LANES = 2
"""Searches at once: threads of one process take turns, and more of them make all slower; one slow search shall not hold
up the others."""
WITH_MODEL = 4
"""Searches at once where a language model is waited for."""
WAITING = 200
"""Searches that may wait."""


class StudioBusy(FairAgentError):
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
        """The future of what `work` returns or raises; StudioBusy where too many wait."""
        future: Future[T] = Future()
        try:
            self._queue.put_nowait((future, work))
        except queue.Full:
            raise StudioBusy(f"{self._queue.maxsize} searches wait already; ask again in a moment") from None
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


FAULT = "a fault of fairagent; where the server was started stands what happened"

AS_IT_IS = {"id", "template"}

STATUS: tuple[tuple[type[FairAgentError], int], ...] = (
    (StudioBusy, 503),
    (Changed, 409),
    (UsageError, 400),
    (BackendUnavailable, 503),
    (DataError, 500),
    (ModelError, 502),
    (BudgetExceeded, 429),
)


def status(error: FairAgentError) -> int:
    """The HTTP status of an error."""
    return next((number for kind, number in STATUS if isinstance(error, kind)), 500)


def cleaned(value: Any) -> Any:
    r"""A record that people will read: texts are printable, and what is not finite is null.

    Ids, and templates, which go back into their files, stay as they are.

    >>> cleaned({"title": "a\x1b[31m", "gap": float("inf")})
    {'title': 'a\ufffd[31m', 'gap': None}
    """
    if isinstance(value, dict):
        return {printable(key): part if key in AS_IT_IS else cleaned(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [cleaned(part) for part in value]
    if isinstance(value, str):
        return printable(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def encoded(record: PlainRecord) -> str:
    """A record as JSON."""
    return json.dumps(cleaned(record), allow_nan=False)
