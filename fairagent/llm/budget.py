"""Budgets of calls, tokens, dollars and seconds: reserved before a request, settled after its reply."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from fairagent.errors import BudgetExceeded
from fairagent.settings import BudgetSettings


class Budget:
    """Limits on calls, tokens, US dollars and seconds (from now), shared by all threads; None is no limit.

    A request reserves the most it can take. Where that would go over a limit only because of what other requests in
    the air have reserved, it waits for them; so no limit is ever passed, and none is given up while it can be kept.
    """

    def __init__(self, limits: BudgetSettings | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits or BudgetSettings()
        self._clock = clock
        self._started = clock()
        self._settled = threading.Condition()
        self._calls = 0
        self._in_the_air = 0
        self._tokens = _Account("tokens", self.limits.tokens)
        self._dollars = _Account("dollars", self.limits.dollars)

    def reserve(self, tokens: int, dollars: float) -> Reservation:
        """Room for one request of at most `tokens` and `dollars`; it counts as a call from now on.

        Raises BudgetExceeded, naming the limit, where there is none.
        """
        with self._settled:
            while True:
                self._check_seconds()
                if self.limits.calls is not None and self._calls >= self.limits.calls:
                    raise _exceeded("calls", self.limits.calls, f"{self._calls} were made")
                # A list, so that both accounts are asked: either may say that the request can never fit.
                if all([self._tokens.has_room(tokens), self._dollars.has_room(dollars)]):
                    break
                self._settled.wait(timeout=1.0)
            self._calls += 1
            self._in_the_air += 1
            self._tokens.reserved += tokens
            self._dollars.reserved += dollars
        return Reservation(self, tokens, dollars)

    def _check_seconds(self) -> None:
        limit, gone = self.limits.seconds, self._clock() - self._started
        if limit is not None and gone >= limit:
            raise _exceeded("seconds", limit, f"{gone:.0f} have gone by")

    def _settle(self, held: Reservation, tokens: int, dollars: float) -> None:
        with self._settled:
            self._tokens.settle(held.tokens, tokens)
            self._dollars.settle(held.dollars, dollars)
            self._in_the_air -= 1
            if not self._in_the_air:
                # What rounding has left would be waited for, for ever.
                self._tokens.reserved = self._dollars.reserved = 0.0
            self._settled.notify_all()


class Reservation:
    """What one request has reserved; a context manager that gives back what was not settled."""

    def __init__(self, budget: Budget, tokens: int, dollars: float) -> None:
        self.tokens = tokens
        self.dollars = dollars
        self._budget: Budget | None = budget

    def settle(self, tokens: int, dollars: float) -> None:
        """The request took this much."""
        if self._budget:
            self._budget._settle(self, tokens, dollars)
            self._budget = None

    def __enter__(self) -> Reservation:
        return self

    def __exit__(self, *_: object) -> None:
        self.settle(0, 0.0)


class _Account:
    """What of one limit is used, and what is reserved on top."""

    def __init__(self, what: str, limit: float | None) -> None:
        self.what = what
        self.limit = limit
        self.used = 0.0
        self.reserved = 0.0

    def has_room(self, amount: float) -> bool:
        """Whether `amount` fits now; raises BudgetExceeded where it would not even if nothing were reserved."""
        if self.limit is None:
            return True
        if self.used + amount > self.limit:
            raise _exceeded(self.what, self.limit, f"{self.used:g} are used, the next call may take {amount:g}")
        return self.used + self.reserved + amount <= self.limit

    def settle(self, reserved: float, used: float) -> None:
        self.reserved -= reserved
        self.used += used


def _exceeded(what: str, limit: float, state: str) -> BudgetExceeded:
    return BudgetExceeded(
        f"the budget of {limit:g} {what} is used up ({state}); what is done is kept: repeat the command, with more "
        f"under budget.{what} where the rest needs more"
    )
