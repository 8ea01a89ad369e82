"""The only layer that repeats a request: bounded attempts, full jitter, and the wait that a server asks for."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import tenacity

from fairagent.errors import TransientModelError

LONGEST_WAIT = 30.0
"""Seconds. A server that asks for more is not waited for: the call is given up at once."""

log = logging.getLogger(__name__)

T = TypeVar("T")

# AWS's "full jitter": a random wait below 0.5 s, 1 s, 2 s ..., so that threads that fail together return apart.
_jitter = tenacity.wait_random_exponential(multiplier=0.5, max=LONGEST_WAIT)


@dataclass(frozen=True, slots=True)
class Retry:
    """Repeats what fails transiently, `attempts` times in all; `sleep` takes seconds."""

    attempts: int = 5
    sleep: Callable[[float], None] = time.sleep

    def run(self, attempt: Callable[[], T]) -> T:
        """The result of `attempt`; raises what its last try raised.

        Only TransientModelError is worth another try, and not if its `retry_after` is above `LONGEST_WAIT`.
        """
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(_worth_another),
            stop=tenacity.stop_after_attempt(self.attempts),
            wait=_wait,
            sleep=self.sleep,
            before_sleep=_note,
            reraise=True,
        )
        return retrying(attempt)


def _worth_another(error: BaseException) -> bool:
    return isinstance(error, TransientModelError) and (error.retry_after or 0.0) <= LONGEST_WAIT


def _wait(state: tenacity.RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    asked_for = error.retry_after if isinstance(error, TransientModelError) else None
    return max(asked_for or 0.0, _jitter(state))


def _note(state: tenacity.RetryCallState) -> None:
    log.info("attempt %d failed; the next one in %.1f s", state.attempt_number, state.upcoming_sleep)
