"""Ending work from outside: whoever asked for it has left, or the program stops.

Work that may be ended runs in a block of `cancelled_by`; threads that share its context belong to it. It looks whether
it is cancelled where it waits (a socket, a lock, a pause) and at each `progress`, and ends there with `Cancelled`.
Outside of such a block nothing here costs or changes anything.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import TypeVar

T = TypeVar("T")

LOOK = 0.05
"""Seconds after which a wait that nothing can break off looks whether it is cancelled."""


class Cancelled(BaseException):
    """The work was cancelled. No Exception: nothing that handles failures may take it for one."""


class Cancellation:
    """Whether one piece of work is cancelled. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._event = threading.Event()
        self._ends: dict[object, Callable[[], None]] = {}

    def cancel(self) -> None:
        """End the work, now where it waits in a block of `ended_by`; more than once is as once."""
        with self._lock:
            self._event.set()
            # Within the lock: whoever has left such a block may close what `end` breaks off.
            for end in self._ends.values():
                end()

    @property
    def cancelled(self) -> bool:
        """Whether it is."""
        return self._event.is_set()

    def check(self) -> None:
        """Raise Cancelled where it is."""
        if self._event.is_set():
            raise Cancelled

    def wait(self, seconds: float) -> None:
        """Pause; Cancelled as soon as it is."""
        self._event.wait(seconds)
        self.check()

    @contextmanager
    def ending(self, end: Callable[[], None]) -> Iterator[None]:
        """A block that `end`, called from another thread, breaks off; it must neither wait nor raise."""
        key = object()
        with self._lock:
            self.check()
            self._ends[key] = end
        try:
            yield
        finally:
            with self._lock:
                del self._ends[key]
            self.check()


_current: ContextVar[Cancellation | None] = ContextVar("cancellation", default=None)


@contextmanager
def cancelled_by(cancellation: Cancellation) -> Iterator[None]:
    """What is done in the block ends with Cancelled when `cancellation` says so."""
    token = _current.set(cancellation)
    try:
        yield
    finally:
        _current.reset(token)


def is_cancelled() -> bool:
    """Whether the work of this thread is."""
    return (cancellation := _current.get()) is not None and cancellation.cancelled


def check_cancelled() -> None:
    """Raise Cancelled where the work of this thread is."""
    if cancellation := _current.get():
        cancellation.check()


@contextmanager
def ended_by(end: Callable[[], None]) -> Iterator[None]:
    """As `Cancellation.ending`, of the work of this thread."""
    if cancellation := _current.get():
        with cancellation.ending(end):
            yield
    else:
        yield


def sleep(seconds: float) -> None:
    """Pause; Cancelled as soon as the work is."""
    if cancellation := _current.get():
        cancellation.wait(seconds)
    else:
        time.sleep(seconds)


def waiting(wait: Callable[[float], T], seconds: float = math.inf) -> T:
    """One `wait(seconds)` of a loop that then looks again for what it waits for; a short one where it may be cancelled.

    Without an end it waits as long as the operating system can.
    """
    check_cancelled()
    return wait(min(seconds, LOOK if _current.get() else threading.TIMEOUT_MAX))


@contextmanager
def holding(lock: threading.Lock) -> Iterator[None]:
    """A block that holds `lock`; waiting for it can be cancelled."""
    while not waiting(lambda seconds: lock.acquire(timeout=seconds)):
        pass
    try:
        yield
    finally:
        lock.release()


def result_of(future: Future[T]) -> T:
    """The result of `future`, or what it raises; waiting for it can be cancelled."""
    while not future.done():
        try:
            waiting(future.exception)
        except TimeoutError:
            continue
    return future.result()


def abandonable(work: Callable[[], T], late: Callable[[T], None]) -> T:
    """What `work` returns or raises, though nothing can break it off: who is cancelled leaves it behind.

    It goes on in a thread of its own, and `late` gets what it returns after that.
    """
    if _current.get() is None:
        return work()
    future: Future[T] = Future()

    def working() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    context = copy_context()
    threading.Thread(target=context.run, args=(working,), name="abandonable", daemon=True).start()
    try:
        return result_of(future)
    except Cancelled:
        future.add_done_callback(lambda done: None if done.exception() else late(done.result()))
        raise
