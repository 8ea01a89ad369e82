"""Threads of the numerical libraries: products as small as those of a search lose more by waiting than they gain.

Thread-safe memo: compute each key once, other threads wait for the value.

What this thread is doing that may take its time, told to whoever shows it: a command does on a terminal.

Where nobody asked to be told, saying it costs nothing.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


OF_BLAS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
"""What BLAS libraries look at when they are loaded, and not afterwards."""
OF_ALL = ("OMP_NUM_THREADS", *OF_BLAS)
"""The same with OpenMP, which torch and faiss use."""

_LOCK = threading.Lock()
_inside = 0
_limit: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS uses one thread until the last of all blocks that are open at the same time, in any thread, ends."""
    global _inside, _limit
    with _LOCK:
        _inside += 1
        if _inside == 1:
            _limit = blas_libraries().limit(limits=1)
    try:
        yield
    finally:
        with _LOCK:
            _inside -= 1
            if not _inside:
                _limit.restore_original_limits()


@contextmanager
def one_blas_thread_in_a_run() -> Iterator[None]:
    """As `one_blas_thread`, also in BLAS libraries that are loaded within the block and in processes started there."""
    before = {name: os.environ.get(name) for name in OF_BLAS}
    os.environ.update(dict.fromkeys(OF_BLAS, "1"))
    try:
        with one_blas_thread():
            yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def one_thread_from_now_on() -> None:
    """Libraries that are loaded afterwards use one thread: the beginning of a process that is one of several."""
    os.environ.update(dict.fromkeys(OF_ALL, "1"))


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """What this thread asks of torch uses one thread; where torch is not loaded, nothing asks it."""
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


@cache
def blas_libraries() -> ThreadpoolController:
    """The BLAS libraries that are loaded when this is first called: looking for them takes a millisecond."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


class Memo:
    """Values by key; of several threads that ask for one key, one computes and the others share its value or error."""

    def __init__(self) -> None:
        self._made: dict[Hashable, Future[Any]] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The value of `key`, computed by `make` if nobody has; a failure is not kept for those who come later."""
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
        return future.result()

    def values(self) -> list[Any]:
        """All values that were computed."""
        with self._lock:
            return [future.result() for future in self._made.values() if future.done() and not future.exception()]


Listener = Callable[[str], None]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
_current: ContextVar[str] = ContextVar("current", default="")


@contextmanager
def progress(what: str) -> Iterator[None]:
    """Say that `what` is being done inside the block, and after it, what was being done before.

    >>> said = []
    >>> with listening(said.append), progress("searching"):
    ...     with progress("starting Java"):
    ...         pass
    >>> said
    ['searching', 'starting Java', 'searching']
    """
    tell, outer = _listener.get(), _current.get()
    if tell is None:
        yield
        return
    token = _current.set(what)
    tell(what)
    try:
        yield
    finally:
        _current.reset(token)
        if outer:
            tell(outer)


@contextmanager
def listening(tell: Listener) -> Iterator[None]:
    """Tell `tell` of everything that is done inside the block by this thread, and by those that share its context."""
    token = _listener.set(tell)
    try:
        yield
    finally:
        _listener.reset(token)
