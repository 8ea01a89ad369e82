"""Threads of the numerical libraries: products as small as those of a search lose more by waiting than they gain."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

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
    return ThreadpoolController().select(user_api="blas")
