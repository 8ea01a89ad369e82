"""A model at a server: address, key and errors, health (breaker), retries, budget and price, for every API of it.

`ServerModel._request` is the one place where a request leaves.
"""

from __future__ import annotations

import ipaddress
import math
import os
import re
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from urllib.parse import parse_qsl, urljoin, urlsplit, urlunsplit

from pydantic import BaseModel, BeforeValidator, Field, SecretStr, ValidationError
from pydantic_core import from_json

from fairagent.errors import (
    BackendUnavailable,
    BudgetExceeded,
    FatalModelError,
    ModelError,
    ReplyRefused,
    SettingsError,
    TransientModelError,
)
from fairagent.llm.budget import Budget, requester
from fairagent.llm.capabilities import Capabilities
from fairagent.llm.exchange import OneSearch, searching
from fairagent.llm.request import key_of
from fairagent.settings import ModelSettings, Price
from fairagent.settings.tree import cost_of
from fairagent.storage.threads import sleep as pause
from fairagent.storage.threads import waiting
from fairagent.types import Usage
from fairagent.types.clean import logger, visible

if TYPE_CHECKING:
    from fairagent.llm.cache import ReplyCache

KEY_VARIABLE = "OPENAI_API_KEY"
URL_VARIABLE = "OPENAI_BASE_URL"
OPENAI = "https://api.openai.com/v1"
CODES = {
    **dict.fromkeys(("insufficient_quota", "billing_hard_limit_reached", "billing_not_active"), "quota"),
    **dict.fromkeys(("invalid_api_key", "account_deactivated"), "key"),
    **dict.fromkeys(("content_filter", "content_policy_violation"), "filter"),
    **dict.fromkeys(("server_error", "internal_server_error", "rate_limit_exceeded", "overloaded_error"), "overload"),
    "model_not_found": "model",
}
"""What the codes of providers say."""
LONGEST_QUOTE = 300
MOST_VALUES = 500_000
"""Brackets and commas of an answer, each of which may take 150 bytes when its JSON is read; lines of a stream."""
MOST_TOKENS = 100_000_000
"""More than any model reads or writes at once: a larger count is none."""
LONGEST_WAIT = 30.0
"""Seconds. A server that demands more is not waited for: the call is given up at once."""
MOST_FAILURES = 5
"""Transient failures in a row after which the endpoint is left alone; one where there has never been a connection."""
PAUSE = 30.0
"""Seconds that it is left alone."""


def _whole(number: object) -> object:
    return int(number) if isinstance(number, float) and number.is_integer() else number


# Strict: neither 3.5 nor true is a count, but 10.0 is.
TokenCount = Annotated[int, Field(ge=0, le=MOST_TOKENS, strict=True), BeforeValidator(_whole)]

log = logger(__name__)

T = TypeVar("T")
B = TypeVar("B", bound="Body")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An OpenAI-compatible server: its address, its host with port (for people), and its key ("" for none)."""

    host: str
    base_url: str = field(repr=False)
    key: SecretStr = field(repr=False)
    query: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """That of every request, such as Azure's api-version."""

    @classmethod
    def find(cls, base_url: str, environ: Mapping[str, str] | None = None) -> Endpoint:
        """The server at `base_url`, else at OPENAI_BASE_URL, else OpenAI itself; the key is OPENAI_API_KEY.

        A user name and password in the address are dropped, and so is the path of one call (/chat/completions).
        Raises SettingsError for an address or key that cannot be one, BackendUnavailable where a server that is not
        local would be called without a key.
        """
        environ = os.environ if environ is None else environ
        try:
            parts = urlsplit(base_url.strip() or environ.get(URL_VARIABLE, "").strip() or OPENAI)
            name, _ = parts.hostname, parts.port
        except ValueError:
            name = None
        if not name or parts.scheme not in ("http", "https"):
            raise SettingsError(
                f"model.base_url (or {URL_VARIABLE}) is no address of a server; expected e.g. http://localhost:11434/v1"
            )
        host = parts.netloc.rpartition("@")[2]
        key = environ.get(KEY_VARIABLE, "").strip()
        if not (key.isascii() and key.isprintable()):
            raise SettingsError(f"{KEY_VARIABLE} holds characters that no key has; copy the key again")
        if not key and not is_local(name):
            raise BackendUnavailable(
                f"no key for the language model at {host}: set {KEY_VARIABLE}; for a model on your own machine set "
                f"{URL_VARIABLE} (or model.base_url in the settings) to its address, e.g. http://localhost:11434/v1. "
                "`profile: offline` works without a model"
            )
        path = re.sub(r"/+(?:chat/completions|completions|embeddings|responses)?/*$", "", parts.path)
        address = urlunsplit(parts._replace(netloc=host, path=path, query="", fragment=""))
        return cls(host, address, SecretStr(key), tuple(parse_qsl(parts.query)))

    def hide(self, text: str) -> str:
        """`text` without the key, wherever a server may have echoed it."""
        key = self.key.get_secret_value()
        # Shorter ones ("none", "ollama") are placeholders; without them replies that hold the word would be spoiled.
        return text.replace(key, "***") if len(key) >= 8 else text

    def quote(self, words: str) -> str:
        """A server's words in one short line without the key; of a web page only that it is one."""
        # Hidden characters first: without them what stands there may be the key.
        text = " ".join(self.hide(visible(words)).split())
        if text[:1] == "<":
            return "(a web page)"
        return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]} ..."


def is_local(host: str) -> bool:
    """Whether `host` is this machine or one of the local network, where servers usually need no key."""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".localhost", ".local", ".internal"))


class NotConnected(TransientModelError):
    """The server sent nothing: it refused, was not found, or was silent until the time was over."""


class Refused(ModelError):
    """The server did not accept the request; `body` is its explanation, `error` the error if nothing can be done."""

    def __init__(self, error: ModelError, body: str) -> None:
        super().__init__(str(error))
        self.error = error
        self.body = body


def read_error(body: object) -> tuple[str, str]:
    """The code and the words of an error body, whatever its shape; "" where there is none.

    >>> read_error({"message": "no such model", "code": "model_not_found", "type": "invalid_request_error"})
    ('model_not_found', 'no such model')
    >>> read_error({"error": "model 'x' not found"})
    ('', "model 'x' not found")
    """
    if isinstance(body, list) and body:
        return read_error(body[0])
    if not isinstance(body, Mapping):
        return "", str(body or "")
    if body.get("error"):
        return read_error(body["error"])
    # Some providers name the error in `type` alone; FastAPI's servers describe it in `detail`.
    code, category = str(body.get("code") or ""), str(body.get("type") or "")
    words = str(body.get("message") or body.get("detail") or "")
    return category if category in CODES and code not in CODES else code, words


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """The wait (seconds >= 0) that the server demands by retry-after-ms or Retry-After; None without a usable value.

    >>> retry_after({"retry-after": "2"}), retry_after({"retry-after": "nan"}), retry_after({"retry-after": "-1"})
    (2.0, None, None)
    """
    given = headers.get("retry-after", "").strip()
    for text, scale in ((headers.get("retry-after-ms", ""), 1000), (given, 1)):
        with suppress(ValueError):
            seconds = float(text) / scale
            if math.isfinite(seconds) and seconds >= 0:
                return seconds
    with suppress(ValueError, OverflowError):
        date = parsedate_to_datetime(given)
        date = date if date.tzinfo else date.replace(tzinfo=UTC)
        return max(0.0, (date - (now or datetime.now(UTC))).total_seconds())
    return None


class Body(BaseModel):
    """What all answers of a server have in common."""

    error: Any = None
    usage: Any = None


def broken_off(host: str, why: str = "") -> TransientModelError:
    """The error for an answer that ends too early."""
    return TransientModelError(f"the answer of {host} broke off on the way{why}")


class Breaker:
    """A circuit breaker: keeps requests from a server that cannot answer them.

    * Until the server has answered a sort of request once, one request of it at a time: a wrong key costs one request,
      not one a thread, and what a server cannot take is learned once. A turn ends with the request's own time.
    * A FatalModelError stays: every later call raises it without a request.
    * After 5 transient failures in a row it opens: for 30 s calls fail at once, then one request tries the server. One
      that was never reached is not waited for, not even while it is tried; where a call is `vital`, that is fatal.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._answered: set[Hashable] = set()
        self._reached = False
        self.served = False
        self._turn: object | None = None
        self._turn_ends = math.inf
        self._failures = 0
        self._failure = ""
        self._open_until = 0.0
        self._fatal: str | None = None

    def run(self, request: Callable[[], T], sort: Hashable = None, seconds: float = math.inf, vital: bool = False) -> T:
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
            if vital and isinstance(raised, NotConnected) and not self._reached:
                error = FatalModelError(str(raised))
                raise error from raised
            raise
        finally:
            self._leave(turn, sort, error)

    def _enter(self, sort: Hashable, end: float) -> object | None:
        """The turn of a request that has to be the only one of those that try the server, waited for; else None."""
        with self._changed:
            while True:
                if self._fatal is not None:
                    raise FatalModelError(self._fatal)
                if wait := self._wait():
                    why = f"the server failed {self._failures} times in a row and" if self._reached else self._failure
                    left = f"is left alone for {min(self._open_until - self._clock(), PAUSE):.0f} s"
                    raise TransientModelError(f"{why} {left}", retry_after=wait)
                if sort in self._answered:
                    return None
                now = self._clock()
                if now >= end:
                    raise TransientModelError("no time is left to wait for the first answer of the server")
                if self._turn is None or now >= self._turn_ends:
                    self._turn, self._turn_ends = object(), end
                    if self._open_until and not self._reached:
                        self._open_until = end
                    return self._turn
                waiting(self._changed.wait, min(end - now, self._turn_ends - now, 60.0))

    def _leave(self, turn: object | None, sort: Hashable, error: BaseException | None) -> None:
        """Take note of what became of a request, and tell a transient error how long the server is left alone."""
        with self._changed:
            if mine := turn is not None and turn is self._turn:
                self._turn = None
            answered = error is None or (isinstance(error, ModelError) and not isinstance(error, NotConnected))
            self._reached, self.served = self._reached or answered, self.served or error is None
            if isinstance(error, FatalModelError):
                self._fatal = str(error)
            elif isinstance(error, TransientModelError):
                self._failures += 1
                stop = "" if str(error).endswith(("?", ".")) else "."
                self._failure = f"{error}{stop} It"
                # Requests that were on their way when it opened do not lengthen the pause.
                again = mine and self._failures > MOST_FAILURES
                if self._failures == MOST_FAILURES or again or not self._reached:
                    log.info("%d failures in a row: no request for %.0f s", self._failures, PAUSE)
                    self._open_until = self._clock() + PAUSE
                    self._answered.clear()
                if wait := self._wait():
                    error.retry_after = max(error.retry_after or 0.0, wait)
            elif answered:
                # The server answered, though maybe not as hoped; anything else, as Ctrl-C, says nothing about it.
                self._failures, self._open_until = 0, 0.0
                self._answered.add(sort)
            self._changed.notify_all()

    def _wait(self) -> float:
        """The seconds until the server may be called again, which nobody waits for where it was never reached."""
        # Not a rounding error more than PAUSE, which a caller may just be willing to wait.
        left = min(max(self._open_until - self._clock(), 0.0), PAUSE) if self._open_until else 0.0
        return math.inf if left and not self._reached else left


deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)
"""When what this thread sends and receives has to be done, by `time.monotonic`."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """All that this thread sends and receives inside the block may take so many seconds together, waits included."""
    token = deadline.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        deadline.reset(token)


@dataclass(slots=True)
class Call:
    """A call with all its attempts: the requests sent, what the earlier ones took; over at `end`, by the clock."""

    started: float
    seconds: float
    sent: int = 0
    spent: Usage = field(default_factory=Usage)

    @property
    def end(self) -> float:
        """When it is over."""
        return self.started + self.seconds


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
        # Here and not above: it loads httpx, which who asks no model need not wait for.
        from fairagent.llm import transport

        self.settings = settings
        self.endpoint = Endpoint.find(settings.base_url, environ)
        if not settings.name:
            raise SettingsError(
                "no language model is named: set `model: {name: ...}` in the settings file, FAIRAGENT_MODEL__NAME in "
                'the environment, or model={"name": ...} in the call'
            )
        self._breakers: dict[str, Breaker] = {}
        self.capabilities = Capabilities()
        self._budget = budget or Budget()
        self._price = price
        self._clock = clock
        self._sleep = sleep
        self._client = transport.open_client(self.endpoint, settings)
        self._send = transport.send

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.settings.name!r} at {self.endpoint.host})"

    @property
    def name(self) -> str:
        """The model's name at its server."""
        return self.settings.name

    @property
    def breaker(self) -> Breaker:
        """That of whoever the request is for: what fails for one user says little about another's."""
        return self._breakers.setdefault(requester.get(), Breaker(self._clock))

    def share(self, other: Any) -> None:
        """Use what the `other` model of the same sort, server and name knows of its server."""
        self._breakers, self.capabilities = other._breakers, other.capabilities

    def remember_in(self, cache: ReplyCache) -> None:
        """Begin with what the cache has kept of this server and model, and keep there what is learned from now on."""
        key = key_of({"format": 1, "kind": type(self).__name__, "server": self.endpoint.base_url, "model": self.name})
        self.capabilities.keep_in(partial(cache.remember, key), cache.recall(key))

    def hide(self, text: str) -> str:
        """`text` without the key."""
        return self.endpoint.hide(text)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def cost(self, input_tokens: int, output_tokens: int = 0, cached_tokens: int = 0) -> float | None:
        """US dollars for so many tokens, of whose input the server had some cached; None for an unknown price."""
        return cost_of(self._price, input_tokens, output_tokens, cached_tokens)

    def _repeat(
        self,
        attempt: Callable[[], tuple[T, Usage]],
        sort: Hashable,
        call: Call,
        notes: Callable[[], tuple[str, ...]] = tuple,
    ) -> tuple[T, Usage]:
        """What `attempt`, a request of this `sort`, comes to, and the usage of all; the only layer that retries.

        Only TransientModelError is worth another try, after the wait that the server or the breaker demands by
        `retry_after`, if that is at most `LONGEST_WAIT`, or a random one. An error has the `usage` of all as well.
        """
        # Here and not above: who asks no model need not wait for it.
        import tenacity

        # AWS's "full jitter", so that threads that fail together return apart.
        jitter = tenacity.wait_random_exponential(multiplier=0.5, max=LONGEST_WAIT)

        def demanded(state: tenacity.RetryCallState) -> float:
            error = state.outcome.exception() if state.outcome else None
            return getattr(error, "retry_after", None) or 0.0

        def over(state: tenacity.RetryCallState) -> bool:
            last = state.attempt_number >= self.settings.attempts or self._clock() + state.upcoming_sleep > call.end
            return last or demanded(state) > LONGEST_WAIT

        def total(last: Usage) -> Usage:
            took = call.spent + replace(last, cost=last.cost or self.cost(last.input_tokens, last.output_tokens))
            return replace(
                took,
                calls=call.sent,
                seconds=self._clock() - call.started,
                notes=tuple(dict.fromkeys((*notes(), *took.notes))),
            )

        search, server = searching.get() or OneSearch(serves=False), self.endpoint.base_url
        # Topics that were done without their model would be counted as its own.
        since, vital = search.silent_since, not (search.serves or searching.get() is None)

        def within_deadline() -> tuple[T, Usage]:
            call.seconds = min(call.seconds, since.get(server, math.inf) + self.settings.deadline - call.started)
            if (left := call.end - self._clock()) <= 0:
                raise self._no_time()
            return self.breaker.run(attempt, sort, left, vital=vital)

        def failed(state: tenacity.RetryCallState) -> None:
            since.setdefault(server, call.started)
            log.info("attempt %d failed", state.attempt_number)

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(TransientModelError),
            wait=lambda state: max(demanded(state), jitter(state)),
            stop=over,
            sleep=self._sleep,
            after=failed,
            reraise=True,
        )
        try:
            value, last = retrying(within_deadline)
            since.pop(server, None)
            return value, total(last)
        except (ModelError, BudgetExceeded) as error:
            if isinstance(error, ModelError) and not isinstance(error, TransientModelError):
                since.pop(server, None)
            error.usage = usage = total(error.usage)
            if not (isinstance(error, FatalModelError) and search.serves and self.breaker.served):
                raise
            ended = ModelError(f"{error}. It answered before, and is asked nothing more")
        # Out of the handler, as what was reached is served.
        ended.usage = usage
        raise ended

    def _no_time(self) -> TransientModelError:
        return TransientModelError(f"no time is left to ask {self.endpoint.host} (model.deadline in the settings)")

    def _request(
        self,
        path: str,
        payload: Mapping[str, Any],
        call: Call,
        tokens: tuple[int, int],
        read: Callable[[Any], tuple[T, Usage]],
        given_up: Callable[[], int] = int,
        refusable: bool = False,
    ) -> tuple[T, Usage]:
        """What `read` makes of the response to one request, if the budget has room for so many `tokens` in and out.

        `given_up` are the tokens that have come where the caller has left. `refusable`: it raises `Refused` where
        another form of the request may do.
        """
        left, (most_in, most_out) = call.end - self._clock(), tokens
        if left <= 0:
            raise self._no_time()
        with self._budget.reserve(sum(tokens), self.cost(*tokens)) as reservation:
            call.sent += 1
            # Unless there is an answer, what was sent is paid for all the same.
            used, charge = (most_in, most_out), None
            error: ModelError
            try:
                # A stream may go on while something comes; what comes as a whole is one wait.
                with within(left if "stream" in payload else min(left, self.settings.timeout)):
                    response, failure = self._send(self._client, path, payload)
                    if failure is None:
                        value, usage = read(response)
                        used, charge = (usage.input_tokens, usage.output_tokens), usage.cost
                        return value, usage
                log.info("%s: %s", self, type(failure.__cause__ or failure).__name__)
                error = self._client_error(failure)
                if refusable and getattr(failure, "status_code", 0) in (400, 404, 413, 422, 500, 501):
                    error = Refused(error, self.hide(failure.response.text))
                raise error
            except ModelError as raised:
                used, charge = (raised.usage.input_tokens, raised.usage.output_tokens), raised.usage.cost
                raise
            except BaseException:
                used = most_in, given_up()
                raise
            finally:
                reservation.settle(sum(used), charge or self.cost(*used) or 0.0)

    def _read_body(self, form: type[B], response: Any, api: str) -> B:
        """The JSON in the `response`, without the key.

        Raises ModelError for too many values, TransientModelError where it broke off, FatalModelError where the server
        is no such `api`, and the error that it holds.
        """
        body, content_type = self.hide(response.text), response.headers.get("content-type", "")
        if sum(map(body.count, "[{,")) > MOST_VALUES:
            raise ModelError(
                f"{self.endpoint.host} sent an answer of more than {MOST_VALUES:,} values; it was not read"
            )
        try:
            answer = form.model_validate_json(body)
        except ValidationError as error:
            cut_off = error.errors()[0]["type"] == "json_invalid" and "json" in content_type
        else:
            if answer.error:
                raise self._error_in_body(answer.error)
            return answer
        # Out of the handler: what the server wrote must not be the error's context.
        if cut_off:
            raise broken_off(self.endpoint.host)
        got = self.endpoint.quote(content_type.partition(";")[0]) or "no content type"
        raise FatalModelError(f"{self.endpoint.host} is not {api} API (got {got}); check model.base_url")

    def _client_error(self, error: Exception) -> ModelError:
        """The error that the `openai` package raised, as one of ours; no key is in it."""
        host, quote, response = self.endpoint.host, self.endpoint.quote, getattr(error, "response", None)
        if response is None:
            # What the transport raised is its cause; any other error is the client's own, which no other attempt mends.
            cause = error.__cause__
            return cause if isinstance(cause, ModelError) else FatalModelError(f"{host}: {quote(str(cause or error))}")
        status, headers = response.status_code, response.headers
        if 300 <= status < 400:
            # Of the new place no path is told, in which a key may stand.
            where, location = "an address that it does not name", headers.get("location", "")
            with suppress(ValueError):
                parts = urlsplit(urljoin(str(response.request.url), location))
                if location and parts.hostname:
                    where = f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}"
            return FatalModelError(
                f"{host} answered {status}: it sends requests on to {quote(where)}, where nothing was sent. If your "
                "server is there, set model.base_url in the settings to its address"
            )
        body: object = response.text
        # No JSON, or nested too deeply to be read: then it is the words.
        with suppress(ValueError):
            body = from_json(response.text)
        return self._status_error(status, *read_error(body), retry_after(headers))

    def _error_in_body(self, error: object) -> ModelError:
        """The error for an error body that came with HTTP 200: transient if its code means overload, else fatal."""
        code, words = read_error(error)
        status = int(code) if code.isdecimal() and len(code) == 3 else 503 if CODES.get(code) == "overload" else 0
        return self._status_error(status if status == 429 or status >= 500 else 0, code, words)

    def _status_error(self, status: int, code: str, words: str, wait: float | None = None) -> ModelError:
        """The error for an HTTP `status` (0: it came as a success), the provider's `code` and its words."""
        named, sort = "" if code.isdecimal() else self.endpoint.quote(code), CODES.get(code, "")
        answered = f"{status or 'with an error'} {named}".strip()
        what = f"{self.endpoint.host} answered {answered}: {self.endpoint.quote(words) or 'no explanation'}"
        if status == 402 or sort == "quota":
            return FatalModelError(
                f"{what}. The quota or credit of the account is used up; add to it or use another server"
            )
        if status in (401, 403, 407) or sort == "key":
            return FatalModelError(f"{what}. Set {KEY_VARIABLE} to a key that may use {self.name!r} there")
        hint = "" if "/v1" in self.endpoint.base_url else "; most servers' addresses end with /v1"
        if status == 404 or sort == "model":
            return FatalModelError(f"{what}. Check model.name ({self.name!r}) and model.base_url in the settings{hint}")
        if sort == "filter":
            return ReplyRefused(what, raw=self.hide(words))
        if status in (408, 409, 425, 429) or status >= 500:
            return TransientModelError(what, retry_after=wait)
        if status == 405 or (not status and "endpoint" in words.lower()):
            return FatalModelError(f"{what}. Check model.base_url in the settings{hint}")
        if not status:
            return FatalModelError(what)
        return ModelError(what)
