"""Retries, in this layer only: limited in number and time, with full jitter and the wait that a server asks for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from fairagent.clean import logger
from fairagent.errors import TransientModelError

if TYPE_CHECKING:
    import tenacity

LONGEST_WAIT = 30.0
"""Seconds. A server that asks for more is not waited for: the call is given up at once."""

log = logger(__name__)

T = TypeVar("T")


# AWS's "full jitter": a random wait below 0.5 s, 1 s, 2 s ..., so that threads that fail together return apart.
@cache
def _jitter() -> Callable[[tenacity.RetryCallState], float]:
    import tenacity

    return tenacity.wait_random_exponential(multiplier=0.5, max=LONGEST_WAIT)


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


@dataclass(frozen=True, slots=True)
class Retry:
    """Repeats what fails transiently: `attempts` times in all, within `deadline` seconds of the first.

    `sleep` takes seconds, `clock` tells them.
    """

    attempts: int = 5
    deadline: float = 300.0
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def run(self, attempt: Callable[[], T], allowance: Allowance) -> T:
        """The result of `attempt`; raises what its last try raised.

        Only TransientModelError is worth another try, and not if its `retry_after` is above `LONGEST_WAIT`.
        `allowance` bounds the retries of all callers together; those that a `retry_after` asks for are free.
        """
        # Here and not above: who asks no model need not wait for it.
        import tenacity

        end = self.clock() + self.deadline

        def over(state: tenacity.RetryCallState) -> bool:
            late = self.clock() + state.upcoming_sleep > end
            if late or state.attempt_number >= self.attempts:
                return True
            # Who comes back when he is asked to adds nothing to an overload.
            return _asked_for(state) is None and not allowance.spend()

        allowance.earn()
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(_worth_another),
            stop=over,
            wait=_wait,
            sleep=self.sleep,
            before_sleep=_note,
            reraise=True,
        )
        return retrying(attempt)


def _worth_another(error: BaseException) -> bool:
    return isinstance(error, TransientModelError) and (error.retry_after or 0.0) <= LONGEST_WAIT


def _wait(state: tenacity.RetryCallState) -> float:
    return max(_asked_for(state) or 0.0, _jitter()(state))


def _asked_for(state: tenacity.RetryCallState) -> float | None:
    """The wait in seconds that the server, or the breaker, named."""
    error = state.outcome.exception() if state.outcome else None
    return error.retry_after if isinstance(error, TransientModelError) else None


def _note(state: tenacity.RetryCallState) -> None:
    log.info("attempt %d failed; the next one in %.1f s", state.attempt_number, state.upcoming_sleep)
