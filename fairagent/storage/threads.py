"""Work side by side: ending it from outside, values that threads share, progress, BLAS threads, and processes.

Work that may be ended runs in a block of `cancelled_by`; threads that share its context belong to it. It looks whether
it is cancelled where it waits (a socket, a lock, a pause) and at each `progress`, and ends there with `Cancelled`.

What computes more than it waits needs processes. They are spawned, never forked: Java and torch do not survive a fork.
So a script needs the guard `if __name__ == "__main__":`, as everything does that starts processes.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar, copy_context
from functools import lru_cache, partial
from multiprocessing import get_context, parent_process
from typing import Any, TypeVar

from fairagent.errors import BackendUnavailable, BudgetExceeded
from fairagent.storage.signals import ENDING

T = TypeVar("T")

SHORT = 0.05
"""Seconds after which a wait that nothing can break off looks whether it is cancelled."""


class Cancelled(BaseException):
    """The work was cancelled. No Exception: nothing that handles failures may take it for one."""


class OutOfTime(Exception):
    """What was waited for has not come in time."""


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

    @contextmanager
    def ending(self, end: Callable[[], None]) -> Iterator[None]:
        """A block that `end`, called from another thread, breaks off; it must neither wait nor raise."""
        key = object()
        with self._lock:
            if self.cancelled:
                raise Cancelled
            self._ends[key] = end
        try:
            yield
        finally:
            with self._lock:
                del self._ends[key]
            if self.cancelled:
                raise Cancelled


_cancellation: ContextVar[Cancellation | None] = ContextVar("cancellation", default=None)


@contextmanager
def cancelled_by(cancellation: Cancellation) -> Iterator[None]:
    """What is done in the block ends with Cancelled when `cancellation` says so."""
    token = _cancellation.set(cancellation)
    try:
        yield
    finally:
        _cancellation.reset(token)


def is_cancelled() -> bool:
    """Whether the work of this thread is."""
    return (cancellation := _cancellation.get()) is not None and cancellation.cancelled


def check_cancelled() -> None:
    """Raise Cancelled where the work of this thread is."""
    if is_cancelled():
        raise Cancelled


def ended_by(end: Callable[[], None]) -> AbstractContextManager[None]:
    """As `Cancellation.ending`, of the work of this thread."""
    cancellation = _cancellation.get()
    return cancellation.ending(end) if cancellation else nullcontext()


def sleep(seconds: float) -> None:
    """Pause; Cancelled as soon as the work is."""
    if cancellation := _cancellation.get():
        cancellation._event.wait(seconds)
        check_cancelled()
    else:
        time.sleep(seconds)


def waiting(wait: Callable[[float], T], seconds: float = math.inf) -> T:
    """One `wait(seconds)` of a loop that then looks again for what it waits for; a short one where it may be cancelled.

    Without an end it waits as long as the operating system can.
    """
    check_cancelled()
    return wait(min(seconds, SHORT if _cancellation.get() else threading.TIMEOUT_MAX))


@contextmanager
def holding(lock: threading.Lock) -> Iterator[None]:
    """A block that holds `lock`; waiting for it can be cancelled."""
    while not waiting(lambda seconds: lock.acquire(timeout=seconds)):
        pass
    try:
        yield
    finally:
        lock.release()


def result_of(future: Future[T], seconds: float = math.inf) -> T:
    """The result of `future`, or what it raises; waiting for it can be cancelled, and ends after so many seconds."""
    end = time.monotonic() + seconds
    while not future.done():
        if (left := end - time.monotonic()) <= 0:
            raise OutOfTime
        with suppress(TimeoutError):
            waiting(future.exception, *(() if left == math.inf else (left,)))
    return future.result()


def abandonable(work: Callable[[], T], late: Callable[[T], None], seconds: float = math.inf) -> T:
    """What `work` returns or raises, though nothing can break it off; OutOfTime after so many `seconds`.

    Who is cancelled or out of time leaves it behind: it goes on in a thread of its own, `late` gets what it returns.
    """
    if _cancellation.get() is None and seconds == math.inf:
        return work()
    future: Future[T] = Future()

    def working() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    # No pool's: Python would wait for it when it ends.
    threading.Thread(target=copy_context().run, args=(working,), name="abandonable", daemon=True).start()
    try:
        return result_of(future, seconds)
    except (Cancelled, OutOfTime):
        future.add_done_callback(lambda done: None if done.exception() else late(done.result()))
        raise


class Memo:
    """Values by key; of several threads that ask for one key, one computes and the others share its value or error."""

    def __init__(self) -> None:
        self._made: dict[Hashable, Future[Any]] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The value of `key`, computed by `make` if it is not there; an error goes to those who wait and is dropped."""
        while True:
            with self._lock:
                mine = key not in self._made
                future = self._made.setdefault(key, Future())
            if mine:
                try:
                    future.set_result(make())
                except BaseException as error:
                    with self._lock:
                        del self._made[key]
                    future.set_exception(error)
            try:
                return result_of(future)
            except (Cancelled, BudgetExceeded):
                # Theirs who computed it, and have left, or may spend no more: then it is for the next one to compute.
                if mine:
                    raise
                check_cancelled()

    def take_over(self, other: Memo, wanted: Callable[[tuple[Any, ...]], bool]) -> None:
        """Take what another memo has under those keys, tuples, that are `wanted` and not here."""
        with other._lock:
            made = {key: future for key, future in other._made.items() if isinstance(key, tuple) and wanted(key)}
        with self._lock:
            self._made = made | self._made

    def values(self) -> list[Any]:
        """All values that were computed."""
        with self._lock:
            return [future.result() for future in self._made.values() if future.done() and not future.exception()]


Listener = Callable[[str], None]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
_current: ContextVar[str] = ContextVar("current", default="")


@contextmanager
def progress(what: str) -> Iterator[None]:
    """Report that `what` is being done inside the block, and after it, what was being done before.

    Raises Cancelled before it where the work is cancelled.

    >>> shown = []
    >>> with listening(shown.append), progress("searching"):
    ...     with progress("starting Java"):
    ...         pass
    >>> shown
    ['searching', 'starting Java', 'searching']
    """
    check_cancelled()
    listener, outer = _listener.get(), _current.get()
    if listener is None:
        yield
        return
    token = _current.set(what)
    listener(what)
    try:
        yield
    finally:
        _current.reset(token)
        if outer:
            listener(outer)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call `listener` with the progress inside the block of this thread, and of those that share its context.

    Whoever listens outside the block goes on doing so.
    """
    outer = _listener.get()

    def both(what: str) -> None:
        if outer:
            outer(what)
        listener(what)

    token = _listener.set(both)
    try:
        yield
    finally:
        _listener.reset(token)


OF_LIBRARIES = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"),
)
"""What BLAS and OpenMP libraries look at when they are loaded, and not afterwards; OpenMP is torch's and faiss's."""

_blas_lock, _limits = threading.Lock(), list[Any]()
_inside = _modules = 0


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS uses one thread until the last of all blocks that are open at the same time, in any thread, ends.

    Products as small as those of a search lose more by waiting for several threads than they gain. A library that is
    loaded within a block is held from the next block on that is entered.
    """
    global _inside, _modules
    with _blas_lock:
        _inside += 1
        # Looking for libraries takes a millisecond, and none comes without a module.
        if not _limits or _modules != len(sys.modules):
            _modules = len(sys.modules)
            _limits.append(_in_this_thread(partial(_blas_libraries(_modules).limit, limits=1)))
    try:
        yield
    finally:
        with _blas_lock:
            _inside -= 1
            while not _inside and _limits:
                _in_this_thread(_limits.pop().restore_original_limits)


@lru_cache(maxsize=1)
def _blas_libraries(modules: int) -> Any:
    """Those that are loaded, with so many modules."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def _in_this_thread(act: Callable[[], Any]) -> Any:
    """What `act` returns: since 3.7 threadpoolctl sets OpenBLAS's threads for the first thread that asks alone."""
    from threadpoolctl import OpenBLASController

    if clear := getattr(OpenBLASController, "clear_controlling_thread", None):
        clear(force=True)
    return act()


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Torch computes in one thread; where it is not loaded, nothing happens."""
    if (torch := sys.modules.get("torch")) is None:
        yield
        return
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def cores() -> int:
    """The processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Crew(ThreadPoolExecutor):
    """An executor that hands jobs to as many processes, of which this one is the first.

    The others start with the first jobs once it is to `grow`: a short run starts none. They end with `shutdown`, and
    with this process, whatever ends it. A job is a function of a module, its arguments and its result can be pickled,
    and what it raises is raised here; BackendUnavailable where a process has ended.
    """

    def __init__(self, count: int) -> None:
        super().__init__(count, thread_name_prefix="crew", initializer=self._begin)
        self._pool = ProcessPoolExecutor(max(1, count - 1), get_context("spawn"), _prepare)
        self._mine = threading.local()
        self._lock = threading.Lock()
        self._here, self._awake = True, threading.Event()

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
        self.grow()
        super().shutdown(wait, cancel_futures=cancel_futures)
        self.abandon()
        self._pool.shutdown(cancel_futures=True)

    def abandon(self) -> None:
        """End the processes at once: nobody waits for what they do."""
        self.grow()
        for one in list((self._pool._processes or {}).values()):
            one.kill()

    def _begin(self) -> None:
        with self._lock:
            self._mine.here, self._here = self._here, False
        if not self._mine.here:
            self._awake.wait()

    def _do(self, work: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        if self._mine.here:
            return work(*arguments)
        try:
            return self._pool.submit(work, *arguments).result()
        except BrokenProcessPool:
            raise BackendUnavailable(
                "a worker process has ended: was it killed, or is the memory used up? To go on, repeat the command, "
                "with fewer --workers where memory is short"
            ) from None


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
