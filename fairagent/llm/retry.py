"""What keeps load from a server: a limit on retries, and a circuit breaker, shared by all threads that call it."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Hashable
from typing import TypeVar

from fairagent.errors import FatalModelError, ModelError, TransientModelError
from fairagent.types.clean import logger

log = logger(__name__)

T = TypeVar("T")


class Allowance:
    """A limit on retries: a fifth of all first attempts, plus 10.

    Without it, every thread would answer an overload with five times the load.
    """

    SHARE = 0.2
    MOST = 10.0

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left = self.MOST

    def earn(self) -> None:
        """A first attempt was made."""
        with self._lock:
            self._left = min(self.MOST, self._left + self.SHARE)

    def spend(self) -> bool:
        """Whether one more retry may be made; it then counts."""
        with self._lock:
            if self._left < 1:
                return False
            self._left -= 1
            return True


MOST_FAILURES = 5
"""Transient failures in a row after which the endpoint is left alone."""
PAUSE = 30.0
"""Seconds that it is left alone."""
LONGEST_LOOK = 60.0
"""Seconds after which whoever waits looks at the clock again."""


class Breaker:
    """A circuit breaker: keeps requests from a server that cannot answer them.

    * Until the server has answered a sort of request once, one request of it at a time: a wrong key costs one request,
      not one a thread, and what a server cannot take is learned once. A turn ends with the request's own time.
    * A FatalModelError stays: every later call raises it without a request.
    * After 5 transient failures in a row it opens: for 30 s calls fail at once, then one request tries the server.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._answered: set[Hashable] = set()
        self._turn: object | None = None
        self._turn_ends = math.inf
        self._failures = 0
        self._open_until = 0.0
        self._fatal: str | None = None

    def run(self, request: Callable[[], T], sort: Hashable = None, seconds: float = math.inf) -> T:
        """The result of `request`, which is of this `sort`, or what it raises; TransientModelError while it is open.

        The request and the wait for its turn have so many `seconds`. A transient error that opens it, or comes while it
        is open, says by `retry_after` when to come back.
        """
        turn = self._enter(sort, self._clock() + seconds)
        error: BaseException | None = None
        try:
            return request()
        except BaseException as raised:
            error = raised
            raise
        finally:
            pause = self._leave(turn, sort, error)
            if pause and isinstance(error, TransientModelError):
                error.retry_after = max(error.retry_after or 0.0, pause)

    def _enter(self, sort: Hashable, end: float) -> object | None:
        """The turn of a request that has to be the only one of those that try the server, waited for; else None."""
        with self._changed:
            while True:
                if self._fatal is not None:
                    raise FatalModelError(self._fatal)
                if pause := self._pause():
                    message = f"the server failed {self._failures} times in a row and is left alone for {pause:.0f} s"
                    raise TransientModelError(message, retry_after=pause)
                if sort in self._answered:
                    return None
                now = self._clock()
                if now >= end:
                    raise TransientModelError("no time is left to wait for the first answer of the server")
                if self._turn is None or now >= self._turn_ends:
                    self._turn, self._turn_ends = object(), end
                    return self._turn
                self._changed.wait(min(end - now, self._turn_ends - now, LONGEST_LOOK))

    def _leave(self, turn: object | None, sort: Hashable, error: BaseException | None) -> float:
        """Take note of what became of a request; the seconds for which the server is to be left alone."""
        with self._changed:
            mine = turn is not None and turn is self._turn
            if mine:
                self._turn = None
            if isinstance(error, FatalModelError):
                self._fatal = str(error)
            elif isinstance(error, TransientModelError):
                self._failures += 1
                # Requests that were on their way when it opened do not lengthen the pause.
                if self._failures == MOST_FAILURES or (mine and self._failures > MOST_FAILURES):
                    log.info("%d failures in a row: no request for %.0f s", self._failures, PAUSE)
                    self._open_until = self._clock() + PAUSE
                    self._answered.clear()
            elif error is None or isinstance(error, ModelError):
                # The server answered, though maybe not as hoped; anything else, as Ctrl-C, says nothing about it.
                self._failures, self._open_until = 0, 0.0
                self._answered.add(sort)
            self._changed.notify_all()
            return self._pause()

    def _pause(self) -> float:
        # Not a rounding error more than PAUSE, which a caller may just be willing to wait.
        return min(max(self._open_until - self._clock(), 0.0), PAUSE) if self._open_until else 0.0
