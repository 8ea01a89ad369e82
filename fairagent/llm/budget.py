"""Budgets of calls, tokens, dollars and seconds, reserved before a request and settled after; ledgers of usage."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import replace
from typing import Any, TypeVar

from fairagent.errors import BudgetExceeded, ModelError
from fairagent.llm.exchange import exchanged
from fairagent.llm.request import ModelReply, ModelRequest
from fairagent.settings import BudgetSettings
from fairagent.storage.threads import waiting
from fairagent.types import Usage

T = TypeVar("T")
R = TypeVar("R")


class Budget:
    """Limits on calls, tokens, US dollars and seconds (from now), shared by all threads; None is no limit.

    A request reserves the most it can take. Where that would go over a limit only because of what other requests in
    the air have reserved, it waits for them; so no limit is ever passed, and none is given up while it can be held.
    """

    def __init__(self, limits: BudgetSettings | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits or BudgetSettings()
        self._clock = clock
        self._started = clock()
        self._changed = threading.Condition()
        self._calls = 0
        self._in_the_air = 0
        self.used = {"tokens": 0.0, "dollars": 0.0}
        self.reserved = {"tokens": 0.0, "dollars": 0.0}

    def reserve(self, tokens: int, dollars: float | None) -> Reservation:
        """Room for one request of at most `tokens` and `dollars` (None: not known); it counts as a call from now on.

        Raises BudgetExceeded, naming the limit, where there is none here, or in the `Limit` of this work.
        """
        limit = _limit.get()
        share = limit(tokens, dollars) if limit else None
        most = {"tokens": float(tokens), "dollars": dollars or 0.0}
        try:
            with self._changed:
                while not self._has_room(most):
                    waiting(self._changed.wait, 1.0)
                self._calls += 1
                self._in_the_air += 1
                for unit, amount in most.items():
                    self.reserved[unit] += amount
        except BaseException:
            if share:
                share.give_back()
            raise

        def settle(tokens: int, dollars: float) -> None:
            with self._changed:
                self._in_the_air -= 1
                for unit, amount in {"tokens": tokens, "dollars": dollars}.items():
                    self.used[unit] += amount
                    # What rounding leaves of the last one would be waited for, for ever.
                    self.reserved[unit] = self.reserved[unit] - most[unit] if self._in_the_air else 0.0
                self._changed.notify_all()
            if share:
                share.settle(tokens, dollars)

        return Reservation(settle)

    def _has_room(self, most: dict[str, float]) -> bool:
        """Whether so much fits now; raises BudgetExceeded where it would not even if nothing were reserved."""
        limits, elapsed = self.limits, self._clock() - self._started
        if limits.seconds is not None and elapsed >= limits.seconds:
            raise _exceeded("seconds", limits.seconds, f"{elapsed:.0f} have gone by")
        if limits.calls is not None and self._calls >= limits.calls:
            raise _exceeded("calls", limits.calls, f"{self._calls} were made")
        fits = True
        for unit, limit in (("tokens", limits.tokens), ("dollars", limits.dollars)):
            if limit is None:
                continue
            needed = self.used[unit] + most[unit]
            if needed > limit:
                state = f"{self.used[unit]:g} are used, the next call may take {most[unit]:g}"
                raise _exceeded(unit, limit, state)
            fits = fits and needed + self.reserved[unit] <= limit
        return fits


class Reservation:
    """What one request has reserved; a context manager that gives back what was not settled."""

    def __init__(self, settle: Callable[[int, float], None]) -> None:
        self._settle: Callable[[int, float], None] | None = settle

    def settle(self, tokens: int, dollars: float) -> None:
        """The request took this much."""
        settle, self._settle = self._settle, None
        if settle:
            settle(tokens, dollars)

    def __enter__(self) -> Reservation:
        return self

    def __exit__(self, *_: object) -> None:
        self.settle(0, 0.0)


def _exceeded(unit: str, limit: float, state: str) -> BudgetExceeded:
    return BudgetExceeded(
        f"the budget of {limit:g} {unit} is used up ({state}); what is done is kept: repeat the command, with more "
        f"under budget.{unit} where the rest needs more"
    )


Limit = Callable[[int, float | None], Any]
"""A limit besides the budget on the calls of some work, such as that of the user whom it is done for.

It is called with the most tokens and dollars (None: not known) that a request may take, and raises BudgetExceeded where
there is no room; else what it returns has `settle(tokens, dollars)`, and `give_back()` for a request that is not sent.
"""

_limit: ContextVar[Limit | None] = ContextVar("limit", default=None)
requester: ContextVar[str] = ContextVar("requester", default="")
"""The user whom the work is done for; "" where users have no names."""


@contextmanager
def limited_by(limit: Limit | None, user: str = "") -> Iterator[None]:
    """Every request to a model in the block, also in threads that share its context, is reserved in `limit` as well.

    The requests are for `user`, their `requester`.
    """
    of_limit, of_user = _limit.set(limit), requester.set(user)
    try:
        yield
    finally:
        _limit.reset(of_limit)
        requester.reset(of_user)


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
def ledger(opened: Ledger | None = None) -> Iterator[Ledger]:
    """A ledger, new or `opened`, of the calls in the block, also of those in other such blocks and in `in_threads`."""
    opened = opened or Ledger()
    token = _open.set((*_open.get(), opened))
    try:
        yield opened
    finally:
        _open.reset(token)


def spent(usage: Usage) -> None:
    """Write `usage` to every open ledger."""
    for opened in _open.get():
        opened.add(usage)


def charged(request: ModelRequest, ask: Callable[[], ModelReply], model: str = "") -> ModelReply:
    """What `ask` returns or raises, written to every open ledger and transcript: what models do with each call.

    `request` holds no secret; `model` is the model's name. Where a model calls another one, the outer one's answer
    counts what both took, and is all that is written.
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

    Results are in order. The first error is raised, and what has not begun by then is not started.
    """
    items = list(items)
    if workers == 1 or len(items) < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(workers, thread_name_prefix=name) as pool:
        # A context can be entered once at a time: each call gets a copy of its own.
        running = [pool.submit(copy_context().run, work, item) for item in items]
        try:
            return [future.result() for future in running]
        finally:
            for future in running:
                future.cancel()
