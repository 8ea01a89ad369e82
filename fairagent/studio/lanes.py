"""`Lanes`, a few threads that search with a short queue before them; and records, events and errors as they leave."""

from __future__ import annotations

import asyncio
import json
import math
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from typing import Any, TypeVar

from fairagent.extend import (
    BackendUnavailable,
    BudgetExceeded,
    Cancellation,
    DataError,
    FairAgentError,
    ModelError,
    NotRegular,
    PlainRecord,
    UsageError,
    cancelled_by,
    check_cancelled,
    logger,
    printable,
)

T = TypeVar("T")

LANES = 2
"""Searches at once: threads of one process take turns, and more of them make all slower; one slow search shall not hold
up the others."""
WITH_MODEL = 4
"""Requests at once that ask a language model, in lanes of their own: a silent one holds up no other search."""
WAITING = 200
FAULT = "a fault of fairagent; where the server was started stands what happened"
AS_IT_IS = {"id", "template"}

log = logger(__name__)

Listener = Callable[[str, PlainRecord], None]
"""Receives events while they happen: ("step", the step), ("text", a piece of the answer), ("cited", its citations)."""
Work = Callable[[Listener], PlainRecord]
"""What a lane does; it sends events, and returns the whole record."""


def ignore_event(name: str, record: PlainRecord) -> None:
    """The null `Listener`."""


class StudioBusy(FairAgentError):
    """More work is submitted than may wait."""


class StudioStopped(StudioBusy):
    """The server ends."""

    def __init__(self) -> None:
        super().__init__("the server ends; what was asked is not done")


class NothingThere(UsageError):
    """What was asked for by its id is not there."""


class FileChanged(UsageError):
    """The file is not as it was when it was read."""


STATUS: tuple[tuple[type[FairAgentError], int], ...] = (
    (StudioBusy, 503),
    (FileChanged, 409),
    (NothingThere, 404),
    (UsageError, 400),
    (NotRegular, 400),
    (BackendUnavailable, 503),
    (DataError, 500),
    (ModelError, 502),
    (BudgetExceeded, 429),
)


class Job(Future[T]):
    """The future of submitted work; `cancel` ends it also while it is done, down to the request to a model."""

    def __init__(self, work: Callable[[], T]) -> None:
        super().__init__()
        self.work = work
        self.context = copy_context()
        self.cancellation = Cancellation()

    def run(self) -> T:
        """What the work returns, done as whoever has submitted it would do it: what limits them limits it."""
        return self.context.run(self._run)

    def _run(self) -> T:
        with cancelled_by(self.cancellation):
            return self.work()

    def cancel(self) -> bool:
        """End the work; whether it had not begun yet."""
        self.cancellation.cancel()
        return super().cancel()


class Lanes:
    """`lanes` threads that do what is submitted, first come first served; at most `waiting` wait.

    The threads hold up nobody who ends the process, as those of an executor would.
    """

    def __init__(self, lanes: int = LANES, waiting: int = WAITING) -> None:
        self._most = waiting
        self._changed = threading.Condition()
        self._waiting: deque[Job[Any]] = deque()
        self._running: set[Job[Any]] = set()
        self._beside: list[Lanes] = []
        self._stopped = False
        for number in range(lanes):
            threading.Thread(target=self._work, name=f"lane-{number}", daemon=True).start()

    @property
    def load(self) -> tuple[int, int]:
        """How many pieces of work are being done, and how many wait; for this no lock is waited for."""
        return len(self._running), len(self._waiting)

    def beside(self, lanes: int, waiting: int = WAITING) -> Lanes:
        """Other lanes, which these hold up in nothing; they stop together."""
        other = Lanes(lanes, waiting)
        self._beside.append(other)
        return other

    def submit(self, work: Callable[[], T]) -> Job[T]:
        """The future of what `work` returns or raises.

        Raises StudioBusy where too many wait, StudioStopped after `stop`.
        """
        job = Job(work)
        with self._changed:
            if self._stopped:
                raise StudioStopped
            if len(self._waiting) >= self._most:
                self._waiting = deque(one for one in self._waiting if not one.cancelled())
            if len(self._waiting) >= self._most:
                raise StudioBusy(f"{self._most} searches wait already; ask again in a moment")
            self._waiting.append(job)
            self._changed.notify()
        return job

    def stop(self) -> None:
        """End all work, that of the lanes beside too: its futures have StudioStopped, now and from now on."""
        with self._changed:
            self._stopped = True
            jobs = [*self._waiting, *self._running]
            self._waiting.clear()
        for job in jobs:
            # Before it is cancelled: so nobody can take it for one whose client has left.
            self._end(job, StudioStopped())
            job.cancellation.cancel()
        for other in self._beside:
            other.stop()

    def _end(self, job: Job[Any], error: BaseException | None, result: Any = None) -> None:
        with self._changed:
            if job.done():
                return
            if error is None:
                job.set_result(result)
            else:
                job.set_exception(error)

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._waiting:
                    self._changed.wait()
                job = self._waiting.popleft()
                if not job.set_running_or_notify_cancel():
                    continue
                self._running.add(job)
            try:
                result = job.run()
            except BaseException as error:
                self._end(job, error)
            else:
                self._end(job, None, result)
            with self._changed:
                self._running.discard(job)


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


def events(lanes: Lanes, work: Work) -> AsyncIterator[str]:
    """The server-sent events of `work`, the last of them its result or its error; StudioBusy before the first."""
    loop, sent = asyncio.get_running_loop(), asyncio.Queue[tuple[str, PlainRecord]]()

    def send(name: str, record: PlainRecord) -> None:
        # Where nobody listens any more, this ends the work.
        check_cancelled()
        loop.call_soon_threadsafe(sent.put_nowait, (name, record))

    def done(_: object) -> None:
        # For what is cancelled nobody waits; and there may be no loop any more.
        if not job.cancellation.cancelled:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(sent.put_nowait, _last(job))

    job = lanes.submit(lambda: work(send))
    job.add_done_callback(done)

    async def listening() -> AsyncIterator[str]:
        try:
            name = ""
            while name not in ("result", "error"):
                name, record = await sent.get()
                yield event(name, record)
        finally:
            job.cancel()

    return listening()


def _last(job: Job[PlainRecord]) -> tuple[str, PlainRecord]:
    """The event that ends a stream."""
    error = job.exception()
    if error is None:
        return "result", job.result()
    if isinstance(error, FairAgentError):
        return "error", {"error": str(error), "kind": type(error).__name__}
    log.error(FAULT, exc_info=error)
    return "error", {"error": FAULT, "kind": "Exception"}
