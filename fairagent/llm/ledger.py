"""Usage accounting: a `ledger()` counts every model call made inside its block, failed ones too."""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import replace
from typing import TypeVar

from fairagent.errors import BudgetExceeded, ModelError
from fairagent.llm.exchange import exchanged
from fairagent.llm.request import ModelReply, ModelRequest
from fairagent.types import Usage

T = TypeVar("T")
R = TypeVar("R")


class Ledger:
    """The sum of what calls took, failed ones too. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.usage = Usage()

    def add(self, usage: Usage) -> None:
        """Count `usage`."""
        with self._lock:
            self.usage = self.usage + usage


_open: ContextVar[tuple[Ledger, ...]] = ContextVar("ledgers", default=())
_counting: ContextVar[bool] = ContextVar("counting", default=False)


@contextmanager
def ledger() -> Iterator[Ledger]:
    """A ledger of the calls that are made inside the block, whether it ends well or in an error.

    Blocks may stand inside each other: each counts its own calls. Threads that are begun inside see it where they are
    begun by `in_threads`.
    """
    kept = Ledger()
    token = _open.set((*_open.get(), kept))
    try:
        yield kept
    finally:
        _open.reset(token)


def counted(request: ModelRequest, ask: Callable[[], ModelReply], model: str = "") -> ModelReply:
    """What `ask` answers or raises, written to every open ledger and transcript: what models do with each call.

    `request` is what is asked, without a secret, `model` the name of the one who is asked.

    Where a model asks another one, the outer one's answer says what both took, and is all that is written.
    """
    if _counting.get():
        return ask()
    token = _counting.set(True)
    try:
        reply = exchanged(request, ask, model)
    except (ModelError, BudgetExceeded) as error:
        error.usage = replace(error.usage, unusable=error.usage.calls)
        spent(error.usage)
        raise
    finally:
        _counting.reset(token)
    spent(reply.usage)
    return reply


def in_threads(work: Callable[[T], R], items: Iterable[T], workers: int, name: str) -> list[R]:
    """`work` on each item, `workers` at a time, in threads that write to the ledgers and transcripts open here.

    Results are in order. The first error is raised, and what has not begun by then is not done.
    """
    with ThreadPoolExecutor(workers, thread_name_prefix=name) as pool:
        # A context can be entered once at a time: each call gets a copy of its own.
        running = [pool.submit(copy_context().run, work, item) for item in items]
        try:
            return [future.result() for future in running]
        finally:
            for future in running:
                future.cancel()


def spent(usage: Usage) -> None:
    """Write `usage` to every open ledger."""
    for kept in _open.get():
        kept.add(usage)
