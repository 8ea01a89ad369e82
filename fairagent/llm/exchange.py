"""`ask`, which returns a validated reply; and `Exchange`: what a model was sent and replied, for transcripts.

A listener gets what the thread of its block sends, and those threads that share its context (`in_threads`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import ConfigDict, TypeAdapter

from fairagent.errors import BudgetExceeded, FatalModelError, ModelError, ReplyInvalid, ReplyTruncated, UsageError
from fairagent.llm.replies import read_reply
from fairagent.llm.request import Message, Model, ModelReply, ModelRequest, Reply
from fairagent.storage.files import LineFile, explained, open_to_read, unsealed, whole_lines
from fairagent.storage.readers import parse_json
from fairagent.types import Usage


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request of an exchange that failed, and why: an overload, or a reply that could not be used.

    `correction` is what the next request adds to its last message, "" where it is the same again. `seconds` are those
    of this request alone.
    """

    error: str
    text: str = ""
    finish: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    correction: str = ""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request to a model, and its result.

    `at` is when it began (UTC, ISO 8601), `prompt` the id of its template ("" where there is none), `reply` the name of
    the requested form ("" for free text); `temperature`, `max_tokens` and `seed` are None where the model's settings
    decide. `error` is why there is no usable reply, "" where there is one; `text` is then the last that came.
    `attempts` failed before that. Calls, tokens, US dollars (None: not known) and seconds are those of all attempts; of
    a reply from the cache (`cached`) what it took when it was paid for, but for the seconds. `system` and `topic` are
    those of an experiment.
    """

    __pydantic_config__ = ConfigDict(allow_inf_nan=False)

    at: str
    prompt: str
    messages: tuple[Message, ...]
    reply: str
    temperature: float | None
    max_tokens: int | None
    seed: int | None
    model: str
    text: str
    error: str
    finish: str
    calls: int
    input_tokens: int
    output_tokens: int
    estimated: bool
    cost: float | None
    seconds: float
    cached: bool
    notes: tuple[str, ...]
    attempts: tuple[Attempt, ...]
    system: str = ""
    topic: str = ""


Listener = Callable[[Exchange], None]

_listeners: ContextVar[tuple[Listener, ...]] = ContextVar("listeners", default=())
_attempts: ContextVar[list[Attempt] | None] = ContextVar("attempts", default=None)


@contextmanager
def exchanges_to(listener: Listener) -> Iterator[None]:
    """Call `listener`, maybe from several threads at once, with every exchange inside the block."""
    token = _listeners.set((*_listeners.get(), listener))
    try:
        yield
    finally:
        _listeners.reset(token)


def exchanged(request: ModelRequest, ask: Callable[[], ModelReply], model: str) -> ModelReply:
    """What `ask` returns or raises, passed to every listener; `model` is the model's name."""
    listeners = _listeners.get()
    if not listeners:
        return ask()
    at, started = datetime.now(UTC).isoformat(timespec="milliseconds"), time.perf_counter()
    attempts: list[Attempt] = []
    token = _attempts.set(attempts)
    error = ""
    try:
        reply = attempt(ask)
    except BaseException as raised:
        error, usage = str(raised) or type(raised).__name__, getattr(raised, "usage", Usage())
        reply = ModelReply(attempts[-1].text, 0, 0, model, attempts[-1].finish)
        reply = reply.with_usage(replace(usage, seconds=time.perf_counter() - started))
        raise
    finally:
        _attempts.reset(token)
        told = {one.name: getattr(reply, one.name) for one in fields(ModelReply)}
        failed = attempts[:-1] if attempts and attempts[-1].error == error else attempts
        exchange = Exchange(
            at=at,
            reply=request.reply.__name__ if request.reply else "",
            model=reply.model or model,
            error=error,
            attempts=() if reply.cached else tuple(failed),
            **{name: getattr(request, name) for name in ("prompt", "messages", "temperature", "max_tokens", "seed")},
            **{name: value for name, value in told.items() if name not in ("model", "chances", "cached_tokens")},
        )
        for listener in listeners:
            listener(exchange)
    return reply


def attempt(ask: Callable[[], ModelReply], streamed: Callable[[], str] = str) -> ModelReply:
    """What `ask` returns or raises, recorded as an attempt unless it records its own; `streamed` is what has come."""
    attempts = _attempts.get()
    if attempts is None:
        return ask()
    before, started = len(attempts), time.perf_counter()
    done = Attempt("")
    try:
        reply = ask()
        done = Attempt("", reply.text, reply.finish, reply.input_tokens, reply.output_tokens)
        return reply
    except BaseException as raised:
        usage = getattr(raised, "usage", Usage())
        raw = raised.text if isinstance(raised, ReplyTruncated) else getattr(raised, "raw", "")
        # Ctrl-C has no words.
        error = str(raised) or type(raised).__name__
        done = Attempt(error, raw or streamed(), "", usage.input_tokens, usage.output_tokens)
        raise
    finally:
        if len(attempts) == before:
            attempts.append(replace(done, seconds=time.perf_counter() - started))


def mark_unusable(error: str, correction: str = "") -> None:
    """Record that the reply of the last attempt cannot be used, and what the next request adds to its last message."""
    if attempts := _attempts.get():
        attempts[-1] = replace(attempts[-1], error=attempts[-1].error or error, correction=correction)


BEGINNING = b'{"exchange":1,'
"""Every line's: what begins otherwise is no transcript of this format, and nothing is added to it."""

_EXCHANGE = TypeAdapter(Exchange)


class Transcript(LineFile):
    """The transcript at `path`, to be added to; to be used as a context. Threads may share it.

    An existing file is continued. Raises UsageError where it holds something else, BackendUnavailable where it cannot
    be written: both before anything is sent.
    """

    def __init__(self, path: Path | str) -> None:
        # A power cut may take the last lines, which no result depends on; the end of the process may not.
        super().__init__(Path(path), forced=False, private=True)

    def __enter__(self) -> Transcript:
        with explained(self.path):
            if self.path.exists():
                with open_to_read(self.path, within=self.path.parent) as file:
                    begun = file.read(len(BEGINNING))
                if not BEGINNING.startswith(begun):
                    raise UsageError(f"{self.path} is there and is no transcript; name another file")
        super().__enter__()
        return self

    def add(self, exchange: Exchange) -> None:
        """Write an exchange as one line; BackendUnavailable where that cannot be."""
        self.write(json.dumps({"exchange": 1, **asdict(exchange)}, separators=(",", ":")))


@contextmanager
def transcript(path: Path | str | None) -> Iterator[None]:
    """Add every exchange inside the block to the `Transcript` at `path`; None: nothing is written."""
    if path is None:
        yield
    else:
        with Transcript(path) as file, exchanges_to(file.add):
            yield


def read_transcript(path: Path | str) -> Iterator[Exchange | None]:
    """Every whole line as an exchange, in their order, None for a damaged one; none where there is no file."""
    for line in whole_lines(Path(path), within=Path(path).parent):
        try:
            entry = parse_json(unsealed(line).decode())
            yield _EXCHANGE.validate_python(entry) if entry.pop("exchange") == 1 else None
        except (ValueError, AttributeError, KeyError):
            yield None


@dataclass(frozen=True, slots=True)
class OneSearch:
    """What the calls of one search share: whether what was reached is served, and which server is silent since when.

    Where it serves, one reply may be corrected; `spare` is empty then.
    """

    serves: bool
    silent_since: dict[str, float] = field(default_factory=dict)
    spare: list[str] = field(default_factory=lambda: ["a correction"])

    def may_correct(self) -> bool:
        """Whether one more reply may be corrected, which is then counted."""
        with suppress(IndexError):
            return not self.serves or bool(self.spare.pop())
        return False


searching: ContextVar[OneSearch | None] = ContextVar("searching", default=None)


@contextmanager
def one_search(serves: bool = True) -> Iterator[None]:
    """All calls of models in the block, and in threads that share its context, are those of one search (`OneSearch`).

    From a failure until the server answers again they have one `model.deadline` together. Where a search `serves` what
    it has reached, a server that answered before and then refuses (a key that has expired) is no FatalModelError. The
    outermost block counts.
    """
    token = None if searching.get() else searching.set(OneSearch(serves))
    try:
        yield
    finally:
        if token:
            searching.reset(token)


T = TypeVar("T")
R = TypeVar("R", bound=Reply)

OnError = Literal["keep", "drop", "fallback", "fail"]
"""What a stage may do; each allows those that make sense for it.

keep: what was there before stays as it is, or what has come of the reply. drop: what has no verdict is left out.
fallback: what works without a model takes its place. fail: the error is raised, and ends the query, topic or item.
Whichever it is, it is in the trace.
"""


def ask(model: Model, request: ModelRequest, reply: type[R]) -> tuple[R, Usage]:
    """The model's answer as a `reply`, and its usage.

    The answer is always validated here, whatever the server promises. An invalid one may be corrected twice (one in
    all the search, where that serves): the same request with the last error named, so that prompts do not grow; one
    that only repeats the prompt once, without the prompt's examples. Raises ReplyInvalid with the last answer's text
    where that fails as well, and what `Model.complete` raises; the error's `usage` counts all calls.
    """
    value, answer = valid_reply(model, replace(request, reply=reply))
    return value, answer.usage


def valid_reply(model: Model, request: ModelRequest) -> tuple[Any, ModelReply]:
    """The reply that `request` describes, and the answer that holds it, with the usage of all calls; see `ask`."""
    # A correction is a new request, not a retry.
    total, current, corrections, search = Usage(), request, 2, searching.get() or OneSearch(serves=False)
    while True:
        try:
            answer = attempt(partial(model.complete, current))
            total = total + answer.usage
            value, mended = read_reply(request, answer.text)
            if mended:
                total = replace(total, notes=(*total.notes, f"a reply was mended: {', '.join(mended)}"))
            return value, answer if current is request and not mended else answer.with_usage(total.whole)
        except (ModelError, BudgetExceeded) as error:
            total = error.usage = total + error.usage
            if not isinstance(error, ReplyInvalid) or error.final or not corrections or not search.may_correct():
                error.usage = replace(total, unusable=total.calls)
                if isinstance(error, ReplyInvalid):
                    error.final = True
                    mark_unusable(str(error))
                raise
            corrections = 0 if error.echo else corrections - 1
            note = f"Your previous reply could not be used: {error}.\nReply again, with the JSON object alone."
            mark_unusable(str(error), note)
            # In the last message: two user messages in a row would upset some chat templates.
            *before, (role, text) = request.messages
            shown = [one for one in before if one[0] == "system"] if error.echo else before
            current = replace(request, messages=(*shown, (role, f"{text}\n\n{note}")))


def unless_failing(
    ask: Callable[[], T],
    on_error: OnError,
    otherwise: Callable[[ModelError | BudgetExceeded], T],
    unpaid: bool = False,
) -> T:
    """What `ask` returns, or where its model gave no usable reply what `otherwise` makes of the error.

    FatalModelError (key, quota, unknown model) is always raised, and all else with "fail"; BudgetExceeded too, unless
    the stage works `unpaid`, without a model.
    """
    try:
        return ask()
    except (ModelError, BudgetExceeded) as error:
        fatal = isinstance(error, FatalModelError) or (isinstance(error, BudgetExceeded) and not unpaid)
        if fatal or on_error == "fail":
            raise
        return otherwise(error)
