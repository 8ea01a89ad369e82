"""Threads: those of the numerical libraries, a memo that threads share, and progress that is shown elsewhere.

Products as small as those of a search lose more by waiting for several BLAS threads than they gain.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from fairagent.errors import BudgetExceeded
from fairagent.storage.cancellation import Cancelled, check_cancelled, result_of

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


OF_LIBRARIES = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"),
)
"""What BLAS and OpenMP libraries look at when they are loaded, and not afterwards; OpenMP is torch's and faiss's."""

_LOCK = threading.Lock()
_inside = 0
_limits: list[Any] = []
_seen = 0


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS uses one thread until the last of all blocks that are open at the same time, in any thread, ends.

    A library that is loaded within a block is held from the next block on that is entered.
    """
    global _inside, _seen
    with _LOCK:
        _inside += 1
        # Looking for libraries takes a millisecond, and none comes without a module.
        if not _limits or _seen != len(sys.modules):
            _seen = len(sys.modules)
            _limits.append(_in_this_thread(partial(_blas_libraries(_seen).limit, limits=1)))
    try:
        yield
    finally:
        with _LOCK:
            _inside -= 1
            while not _inside and _limits:
                _in_this_thread(_limits.pop().restore_original_limits)


@lru_cache(maxsize=1)
def _blas_libraries(modules: int) -> ThreadpoolController:
    """Those that are loaded, with so many modules."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def _in_this_thread(act: Callable[[], Any]) -> Any:
    """What `act` returns, which may set OpenBLAS's threads in any thread.

    Since its version 3.7 threadpoolctl does so for the first thread that asks alone, as long as this thread lives.
    """
    from threadpoolctl import OpenBLASController

    if clear := getattr(OpenBLASController, "clear_controlling_thread", None):
        clear(force=True)
    return act()


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Torch computes in one thread; where it is not loaded, nothing happens."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class Memo:
    """Values by key; of several threads that ask for one key, one computes and the others share its value or error."""

    def __init__(self) -> None:
        self._made: dict[Hashable, Future[Any]] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The value of `key`, computed by `make` if it is not there; an error goes to those who wait and is dropped."""
        while True:
            with self._lock:
                future = self._made.get(key)
                mine = future is None
                if future is None:
                    future = self._made[key] = Future()
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
