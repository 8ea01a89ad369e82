"""A model at a server, as chat, embeddings and likelihoods share it: health (breaker), retries, budget and price."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from fairagent.errors import FatalModelError, ModelError, TransientModelError
from fairagent.llm.budget import Budget
from fairagent.llm.endpoint import Endpoint, check_named, client_error
from fairagent.settings import ModelSettings, Price
from fairagent.settings.models import cost_of
from fairagent.storage.threads import sleep as pause
from fairagent.storage.threads import waiting
from fairagent.types import Usage
from fairagent.types.clean import logger

LONGEST_WAIT = 30.0
"""Seconds. A server that demands more is not waited for: the call is given up at once."""
MOST_FAILURES = 5
"""Transient failures in a row after which the endpoint is left alone; one where there has never been a connection."""
PAUSE = 30.0
"""Seconds that it is left alone."""
LONGEST_LOOK = 60.0
"""Seconds after which whoever waits looks at the clock again."""
RETRIES, RETRIES_A_CALL = 10.0, 0.2
"""Retries that all callers together may make: so many, and a fifth of the first attempts."""

log = logger(__name__)

T = TypeVar("T")


class Breaker:
    """A circuit breaker: keeps requests from a server that cannot answer them.

    * Until the server has answered a sort of request once, one request of it at a time: a wrong key costs one request,
      not one a thread, and what a server cannot take is learned once. A turn ends with the request's own time.
    * A FatalModelError stays: every later call raises it without a request.
    * After 5 transient failures in a row it opens: for 30 s calls fail at once, then one request tries the server. One
      that was never reached is not waited for.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._answered: set[Hashable] = set()
        self._reached = False
        self._turn: object | None = None
        self._turn_ends = math.inf
        self._failures = 0
        self._open_until = 0.0
        self._fatal: str | None = None
        self._retries = RETRIES

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
            wait = self._leave(turn, sort, error)
            if wait and isinstance(error, TransientModelError):
                error.retry_after = max(error.retry_after or 0.0, wait)

    def may_retry(self) -> bool:
        """Whether one more retry may be made; it then counts.

        Without a limit, every thread would answer an overload with five times the load.
        """
        with self._changed:
            if self._retries < 1:
                return False
            self._retries -= 1
            return True

    def count_call(self) -> None:
        """A first attempt is made."""
        with self._changed:
            self._retries = min(RETRIES, self._retries + RETRIES_A_CALL)

    def _enter(self, sort: Hashable, end: float) -> object | None:
        """The turn of a request that has to be the only one of those that try the server, waited for; else None."""
        with self._changed:
            while True:
                if self._fatal is not None:
                    raise FatalModelError(self._fatal)
                if wait := self._wait():
                    times = f"failed {self._failures} times in a row" if self._reached else "cannot be reached"
                    left = f"is left alone for {self._open_until - self._clock():.0f} s"
                    raise TransientModelError(f"the server {times} and {left}", retry_after=wait)
                if sort in self._answered:
                    return None
                now = self._clock()
                if now >= end:
                    raise TransientModelError("no time is left to wait for the first answer of the server")
                if self._turn is None or now >= self._turn_ends:
                    self._turn, self._turn_ends = object(), end
                    return self._turn
                waiting(self._changed.wait, min(end - now, self._turn_ends - now, LONGEST_LOOK))

    def _leave(self, turn: object | None, sort: Hashable, error: BaseException | None) -> float:
        """Take note of what became of a request; the seconds for which the server is to be left alone."""
        # Here and not above: it loads httpx, which who asks no model need not wait for.
        from fairagent.llm.transport import NotConnected

        with self._changed:
            mine = turn is not None and turn is self._turn
            if mine:
                self._turn = None
            self._reached = self._reached or (
                error is None or (isinstance(error, ModelError) and not isinstance(error, NotConnected))
            )
            if isinstance(error, FatalModelError):
                self._fatal = str(error)
            elif isinstance(error, TransientModelError):
                self._failures += 1
                # Requests that were on their way when it opened do not lengthen the pause.
                again = mine and self._failures > MOST_FAILURES
                if self._failures == MOST_FAILURES or again or not self._reached:
                    log.info("%d failures in a row: no request for %.0f s", self._failures, PAUSE)
                    self._open_until = self._clock() + PAUSE
                    self._answered.clear()
            elif error is None or isinstance(error, ModelError):
                # The server answered, though maybe not as hoped; anything else, as Ctrl-C, says nothing about it.
                self._failures, self._open_until = 0, 0.0
                self._answered.add(sort)
            self._changed.notify_all()
            return self._wait()

    def _wait(self) -> float:
        """The seconds until the server may be asked again, which nobody waits for where it was never reached."""
        # Not a rounding error more than PAUSE, which a caller may just be willing to wait.
        left = min(max(self._open_until - self._clock(), 0.0), PAUSE) if self._open_until else 0.0
        return math.inf if left and not self._reached else left


@dataclass(slots=True)
class Call:
    """A call with all its attempts: the requests sent, what the earlier ones took; over at `end`, by the clock."""

    started: float
    end: float
    sent: int = 0
    spent: Usage = field(default_factory=Usage)


class Refused(ModelError):
    """The server did not accept the request; `body` is its explanation, `error` the error if nothing can be done."""

    def __init__(self, error: ModelError, body: str) -> None:
        super().__init__(str(error))
        self.error = error
        self.body = body


class ServerModel:
    """A model behind an OpenAI-compatible API, called through the `openai` package; threads may share it.

    The key is OPENAI_API_KEY of `environ`. `budget` is checked before every request that leaves. `price` turns tokens
    into dollars; without it costs are not known. `sleep` waits between attempts and takes seconds, `clock` returns
    them. Nothing is called yet.

    Raises BackendUnavailable without a key (a local server needs none), SettingsError without a model's name.
    """

    def __init__(
        self,
        settings: ModelSettings,
        environ: Mapping[str, str] | None = None,
        budget: Budget | None = None,
        price: Price | None = None,
        sleep: Callable[[float], None] = pause,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        from fairagent.llm.transport import open_client

        self.settings = settings
        self.endpoint = Endpoint.find(settings.base_url, environ)
        check_named(settings)
        self.breaker = Breaker(clock)
        self._budget = budget or Budget()
        self._price = price
        self._clock = clock
        self._sleep = sleep
        self._client = open_client(self.endpoint, settings)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.settings.name!r} at {self.endpoint.host})"

    @property
    def name(self) -> str:
        """The model's name at its server."""
        return self.settings.name

    def share(self, other: Any) -> None:
        """Use what the `other` model of the same sort, server and name knows of its server."""
        self.breaker = other.breaker

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def cost(self, input_tokens: int, output_tokens: int = 0) -> float | None:
        """US dollars for so many tokens; None where the price is not known."""
        return cost_of(self._price, input_tokens, output_tokens)

    def _times(self) -> tuple[float, float]:
        """When a call that begins now has started and ends."""
        now = self._clock()
        return now, now + self.settings.deadline

    def _repeat(self, attempt: Callable[[], T], sort: object, call: Call) -> T:
        """What `attempt`, a request of this `sort`, comes to; the only layer that retries.

        Only TransientModelError is worth another try, after the wait that the server or the breaker demands by
        `retry_after`, if that is at most `LONGEST_WAIT`, or a random one. The breaker bounds the retries of all callers
        together; those that a `retry_after` schedules are free.
        """
        # Here and not above: who asks no model need not wait for it.
        import tenacity

        # AWS's "full jitter", so that threads that fail together return apart.
        jitter = tenacity.wait_random_exponential(multiplier=0.5, max=LONGEST_WAIT)

        def demanded(state: tenacity.RetryCallState) -> float | None:
            error = state.outcome.exception() if state.outcome else None
            return error.retry_after if isinstance(error, TransientModelError) else None

        def over(state: tenacity.RetryCallState) -> bool:
            last = state.attempt_number >= self.settings.attempts or self._clock() + state.upcoming_sleep > call.end
            wait = demanded(state)
            return last or (wait or 0.0) > LONGEST_WAIT or (wait is None and not self.breaker.may_retry())

        self.breaker.count_call()
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(TransientModelError),
            wait=lambda state: max(demanded(state) or 0.0, jitter(state)),
            stop=over,
            sleep=self._sleep,
            before_sleep=lambda state: log.info("attempt %d failed", state.attempt_number),
            reraise=True,
        )
        return retrying(lambda: self.breaker.run(attempt, sort, call.end - self._clock()))

    def _total(self, call: Call, last: Usage, notes: tuple[str, ...] = ()) -> Usage:
        """The usage of the whole call, `last` being that of its last attempt."""
        read, written = call.spent.input_tokens + last.input_tokens, call.spent.output_tokens + last.output_tokens
        return replace(
            last,
            calls=call.sent,
            input_tokens=read,
            output_tokens=written,
            cost=self.cost(read, written),
            seconds=self._clock() - call.started,
            notes=tuple(dict.fromkeys((*notes, *call.spent.notes, *last.notes))),
        )

    def _request(
        self,
        create: Callable[..., Any],
        payload: dict[str, Any],
        call: Call,
        tokens: tuple[int, int],
        read: Callable[[Any], tuple[T, Usage]],
        given_up: Callable[[], int] = int,
        refusable: bool = False,
    ) -> T:
        """What `read` makes of the response to one request, if the budget has room for so many `tokens` in and out.

        `given_up` are the tokens that have come where who asked has left. `refusable`: it raises `Refused` where
        another form of the request may do.
        """
        from fairagent.llm.transport import within

        left, (most_in, most_out) = call.end - self._clock(), tokens
        if left <= 0:
            raise TransientModelError(f"no time is left to ask {self.endpoint.host} (model.deadline in the settings)")
        with self._budget.reserve(sum(tokens), self.cost(*tokens)) as reservation:
            call.sent += 1
            # Unless there is an answer, what was sent is paid for all the same.
            used = most_in, most_out
            try:
                # A stream may go on while something comes; what comes as a whole is one wait.
                with within(left if "stream" in payload else min(left, self.settings.timeout)):
                    value, usage = read(self._send(create, payload, refusable))
                used = usage.input_tokens, usage.output_tokens
                return value
            except ModelError as error:
                used = error.usage.input_tokens, error.usage.output_tokens
                raise
            except BaseException:
                used = most_in, given_up()
                raise
            finally:
                reservation.settle(sum(used), self.cost(*used) or 0.0)

    def _send(self, create: Callable[..., Any], payload: dict[str, Any], refusable: bool) -> Any:
        """The response to a request by the `openai` client."""
        import openai

        error: ModelError
        try:
            return create(**payload).http_response
        except openai.OpenAIError as raised:
            log.info("%s: %s", self, type(raised.__cause__ or raised).__name__)
            error = client_error(raised, self.endpoint, self.name)
            if refusable and isinstance(raised, openai.APIStatusError) and raised.status_code in (400, 422, 500, 501):
                error = Refused(error, self.endpoint.hide(raised.response.text))
        # Out of the handler, so that the client's error, which knows the key, is not its context.
        raise error
