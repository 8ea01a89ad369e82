"""`Lanes`, a few threads that search with a short queue before them; and records, events and errors as they leave."""

import asyncio
import json
import math
import queue
import threading
from collections.abc import AsyncIterator, Callable
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
    logger,
    printable,
)

T = TypeVar("T")

LANES = 2
"""Searches at once: threads of one process take turns, and more of them make all slower; one slow search shall not hold
up the others."""
WITH_MODEL = 4
"""Searches at once where a language model is waited for."""
WAITING = 200
FAULT = "a fault of fairagent; where the server was started stands what happened"
AS_IT_IS = {"id", "template"}

log = logger(__name__)

Listener = Callable[[str, PlainRecord], None]
"""Receives events while they happen: ("step", the step) or ("text", a piece of the answer)."""
Work = Callable[[Listener], PlainRecord]
"""What a lane does; it sends events, and returns the whole record."""


def ignore_event(name: str, record: PlainRecord) -> None:
    """The null `Listener`."""


class StudioBusy(FairAgentError):
    """More work is submitted than may wait."""


class FileChanged(UsageError):
    """The file is not as it was when it was read."""


STATUS: tuple[tuple[type[FairAgentError], int], ...] = (
    (StudioBusy, 503),
    (FileChanged, 409),
    (UsageError, 400),
    (BackendUnavailable, 503),
    (DataError, 500),
    (ModelError, 502),
    (BudgetExceeded, 429),
)


class Lanes:
    """`lanes` threads that do what is submitted, first come first served; at most `waiting` wait.

    The threads hold up nobody who ends the process, as those of an executor would.
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


def status(error: FairAgentError) -> int:
    """The HTTP status of an error."""
    return next((number for type_, number in STATUS if isinstance(error, type_)), 500)


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


def event(name: str, record: PlainRecord) -> str:
    r"""One server-sent event, whose data is one line of JSON.

    >>> event("text", {"text": "a\nb"})
    'event: text\ndata: {"text": "a\\nb"}\n\n'
    """
    return f"event: {name}\ndata: {encoded(record)}\n\n"


class ListenerGone(Exception):
    """Nobody listens any more; it ends the work at its next event."""


def events(lanes: Lanes, work: Work) -> AsyncIterator[str]:
    """The server-sent events of `work`, the last of them its result or its error; StudioBusy before the first."""
    loop, sent = asyncio.get_running_loop(), asyncio.Queue[tuple[str, PlainRecord]]()
    gone = threading.Event()

    def send(name: str, record: PlainRecord) -> None:
        if gone.is_set():
            raise ListenerGone
        loop.call_soon_threadsafe(sent.put_nowait, (name, record))

    def working() -> None:
        try:
            try:
                last = "result", work(send)
            except FairAgentError as error:
                last = "error", {"error": str(error), "kind": type(error).__name__}
            except ListenerGone:
                raise
            except Exception:
                log.exception(FAULT)
                last = "error", {"error": FAULT, "kind": "Exception"}
            send(*last)
        except ListenerGone:
            pass

    lanes.submit(working)

    async def listening() -> AsyncIterator[str]:
        try:
            name = ""
            while name not in ("result", "error"):
                name, record = await sent.get()
                yield event(name, record)
        finally:
            gone.set()

    return listening()
