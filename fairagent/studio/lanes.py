"""`Lanes`, a few threads that search with a short queue before them; and records, events and errors as they leave."""

from __future__ import annotations

import asyncio
import json
import math
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Any, TypeVar

import anyio

from fairagent.errors import (
    BackendUnavailable,
    BudgetExceeded,
    DataError,
    FairAgentError,
    ModelError,
    NotRegular,
    UsageError,
)
from fairagent.llm.budget import requester
from fairagent.report.record import PlainRecord
from fairagent.storage.threads import Cancellation, cancelled_by, check_cancelled
from fairagent.types.clean import logger, printable

T = TypeVar("T")

LANES = 2
"""Searches at once: threads of one process take turns, and more of them make all slower; one slow search shall not hold
up the others."""
WITH_MODEL = 4
"""Requests at once that ask a language model, in lanes of their own: a silent one holds up no other search."""
OF_ONE_USER = 2
"""Of these, where users have names: so that nobody's silent requests hold up the others'."""
WAITING = 200
FAULT = "a fault of fairagent; where the server was started stands what happened"
ENDS = "the server ends; the request is not answered"
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


class NothingThere(UsageError):
    """The id that was requested does not exist."""


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


class Lanes:
    """`lanes` pieces of work at once, each in a thread, first come first served; at most `waiting` wait.

    Of one user with a name at most `share` are done at once. The threads hold up nobody who ends the process.
    """

    def __init__(self, lanes: int = LANES, waiting: int = WAITING, share: int = LANES) -> None:
        self._most, self._share = waiting, share
        self._limiter = anyio.CapacityLimiter(lanes)
        self._users: dict[str, anyio.CapacityLimiter] = {}
        self._waiting = 0
        self._scopes: set[anyio.CancelScope] = set()
        self._beside: list[Lanes] = []
        self._stopped = False

    @property
    def load(self) -> tuple[int, int]:
        """How many pieces of work are being done, and how many wait."""
        return int(self._limiter.borrowed_tokens), self._waiting

    def beside(self, lanes: int, waiting: int = WAITING, share: int = LANES) -> Lanes:
        """Other lanes, which these hold up in nothing; they stop together."""
        other = Lanes(lanes, waiting, share)
        self._beside.append(other)
        return other

    def expect_room(self) -> None:
        """Raise StudioBusy where too many wait, StudioStopped after `stop`."""
        if self._stopped:
            raise StudioStopped(ENDS)
        if self._waiting >= self._most:
            raise StudioBusy(f"{self._most} searches wait already; ask again in a moment")

    async def do(self, work: Callable[[], T]) -> T:
        """What `work` returns, done as whoever asks for it would do it: what limits them limits it.

        When the task is cancelled, the work ends, down to the request to a model; its lane is free when its thread has
        ended. Raises what `expect_room` does.
        """
        self.expect_room()
        name, job, held = requester.get(), object(), list[anyio.CapacityLimiter]()
        limiters = [self._users.setdefault(name, anyio.CapacityLimiter(self._share))] if name else []

        def ended() -> None:
            for one in held:
                one.release_on_behalf_of(job)

        with anyio.CancelScope() as scope:
            self._scopes.add(scope)
            self._waiting += 1
            try:
                for limiter in (*limiters, self._limiter):
                    await limiter.acquire_on_behalf_of(job)
                    held.append(limiter)
            except BaseException:
                ended()
                self._scopes.discard(scope)
                raise
            finally:
                self._waiting -= 1
            try:
                return await _in_thread(work, ended)
            finally:
                self._scopes.discard(scope)
        raise StudioStopped(ENDS)

    def stop(self) -> None:
        """End all work, that of the lanes beside too: it raises StudioStopped, now and from now on."""
        self._stopped = True
        for scope in list(self._scopes):
            scope.cancel()
        for other in self._beside:
            other.stop()


async def _in_thread(work: Callable[[], T], ended: Callable[[], object]) -> T:
    """What `work` returns, in a thread; `ended` is called when that ends, which may be after this was cancelled."""
    loop, cancellation = asyncio.get_running_loop(), Cancellation()
    future = loop.create_future()

    def finish(result: T | None, error: BaseException | None) -> None:
        ended()
        if not future.done():
            future.set_result((result, error))

    def working() -> None:
        result, failure = None, None
        try:
            with cancelled_by(cancellation):
                result = work()
        except BaseException as error:
            failure = error
        # There may be no loop any more.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(finish, result, failure)

    threading.Thread(target=copy_context().run, args=(working,), name="lane", daemon=True).start()
    try:
        result, error = await future
    finally:
        cancellation.cancel()
    if error is not None:
        raise error
    return result  # type: ignore[no-any-return]


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


def events(lanes: Lanes, work: Work) -> AsyncIterator[str]:
    """The server-sent events of `work`, the last of them its result or its error; StudioBusy before the first.

    The data of each is one line of JSON.
    """
    lanes.expect_room()
    loop, sent = asyncio.get_running_loop(), asyncio.Queue[tuple[str, PlainRecord] | None]()

    def send(name: str, record: PlainRecord) -> None:
        # Where nobody listens any more, this ends the work.
        check_cancelled()
        loop.call_soon_threadsafe(sent.put_nowait, (name, record))

    async def listening() -> AsyncIterator[str]:
        task = asyncio.create_task(lanes.do(lambda: work(send)))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        task.add_done_callback(lambda _: sent.put_nowait(None))
        try:
            while (one := await sent.get()) is not None:
                yield f"event: {one[0]}\ndata: {encoded(one[1])}\n\n"
            error = task.exception()
            if error is None:
                name, record = "result", task.result()
            elif isinstance(error, FairAgentError):
                name, record = "error", {"error": str(error), "kind": type(error).__name__}
            else:
                log.error(FAULT, exc_info=error)
                name, record = "error", {"error": FAULT, "kind": "Exception"}
            yield f"event: {name}\ndata: {encoded(record)}\n\n"
        finally:
            task.cancel()

    return listening()
