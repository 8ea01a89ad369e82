"""Threads of the numerical libraries: products as small as those of a search lose more by waiting than they gain."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
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
