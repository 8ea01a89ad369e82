"""`Exchange`: what a model was asked and what it said, told to whoever listens while it is asked.

A listener hears what the thread of its block asks, and those threads that share its context (`in_threads`). Where
nobody listens, nothing is noted.

Transcripts: exchanges with models in a file of JSON lines, each line whole or absent.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from fairagent.errors import ReplyError, ReplyTruncated, UsageError
from fairagent.llm.request import Message, ModelReply, ModelRequest
from fairagent.storage.digests import unsealed
from fairagent.storage.files import explained
from fairagent.storage.lines import LineFile, whole_lines
from fairagent.storage.readers import parse_json
from fairagent.types import Usage


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request of an exchange that came to nothing, and why: an overload, or a reply that could not be used.

    `correction` is what was added to the last message of the next request, "" where that was the same again. `seconds`
    are those of this request alone.
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
    """One question to a model, and what came of it.

    `at` is when it began (UTC, ISO 8601), `prompt` the id of its template ("" where there is none), `reply` the name of
    the form that was asked for ("" for free text); `temperature`, `max_tokens` and `seed` are None where the model's
    settings say them. `error` is why there is no usable reply, "" where there is one; `text` is then the last that
    came. `attempts` came to nothing before that. Calls, tokens, US dollars (None: not known) and seconds are those of
    all attempts; of a reply from the cache (`cached`) what it took when it was paid for, but for the seconds.
    `system` and `topic` are those of an experiment.
    """

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
    """Tell `listener` of every exchange with a model inside the block, as soon as it is over, whatever came of it.

    Threads may call it at the same time. Blocks may stand inside each other: each hears its own.
    """
    token = _listeners.set((*_listeners.get(), listener))
    try:
        yield
    finally:
        _listeners.reset(token)


def exchanged(request: ModelRequest, ask: Callable[[], ModelReply], model: str) -> ModelReply:
    """What `ask` answers to the request or raises, told to every listener; `model` is the name of the one asked."""
    listeners = _listeners.get()
    if not listeners:
        return ask()
    at, started = datetime.now(UTC).isoformat(timespec="milliseconds"), time.perf_counter()
    made: list[Attempt] = []
    token = _attempts.set(made)
    error = ""
    try:
        reply = attempt(ask)
    except BaseException as raised:
        # Ctrl-C has no words, and a listener who has gone no usage.
        error = str(raised) or type(raised).__name__
        took: Usage = getattr(raised, "usage", Usage())
        reply = ModelReply(
            made[-1].text if made else "",
            took.input_tokens,
            took.output_tokens,
            model,
            made[-1].finish if made else "",
            time.perf_counter() - started,
            took.estimated,
            took.calls,
            took.cost,
            took.notes,
        )
        raise
    finally:
        _attempts.reset(token)
        before = made[:-1] if made and made[-1].error == error else made
        told = Exchange(
            at,
            request.prompt,
            request.messages,
            request.reply.__name__ if request.reply else "",
            request.temperature,
            request.max_tokens,
            request.seed,
            reply.model or model,
            reply.text,
            error,
            reply.finish,
            reply.calls,
            reply.input_tokens,
            reply.output_tokens,
            reply.estimated,
            reply.cost,
            reply.seconds,
            reply.cached,
            reply.notes,
            () if reply.cached else tuple(before),
        )
        for listener in listeners:
            listener(told)
    return reply


def attempt(ask: Callable[[], ModelReply], heard: Callable[[], str] = str) -> ModelReply:
    """What `ask` answers or raises, noted as one attempt at the exchange under way, unless it notes its own.

    `heard` says what has come of a reply that is not to be had as a whole.
    """
    made = _attempts.get()
    if made is None:
        return ask()
    before, started = len(made), time.perf_counter()
    try:
        reply = ask()
    except BaseException as error:
        if len(made) == before:
            used: Usage = getattr(error, "usage", Usage())
            said = str(error) or type(error).__name__
            seconds = time.perf_counter() - started
            made.append(Attempt(said, _came_of(error) or heard(), "", used.input_tokens, used.output_tokens, seconds))
        raise
    if len(made) == before:
        seconds = time.perf_counter() - started
        made.append(Attempt("", reply.text, reply.finish, reply.input_tokens, reply.output_tokens, seconds))
    return reply


def _came_of(error: BaseException) -> str:
    if isinstance(error, ReplyTruncated):
        return error.text
    return error.raw if isinstance(error, ReplyError) else ""


def spoiled(fault: str, correction: str = "") -> None:
    """Note that the reply of the last attempt cannot be used, and what the next request adds to its last message."""
    made = _attempts.get()
    if made:
        made[-1] = replace(made[-1], error=made[-1].error or fault, correction=correction)


FORMAT = 1
"""Of the lines."""
BEGINNING = f'{{"exchange":{FORMAT},'.encode()
"""Every line's: what begins otherwise is no transcript, and nothing is added to it."""
PRIVATE = 0o600
"""Rights of a new file: prompts hold documents and what was searched for."""

_EXCHANGE = TypeAdapter(Exchange)


class Transcript(LineFile):
    """The transcript at `path`, to be added to; to be used as a context. Threads may share it.

    A file that is there is continued. Raises UsageError where it holds something else, BackendUnavailable where it
    cannot be written: both before anything is asked.
    """

    def __init__(self, path: Path | str) -> None:
        # A power cut may take the last lines, which no result depends on; not the end of the process.
        super().__init__(Path(path), forced=False, mode=PRIVATE)
        self._lock = threading.Lock()

    def __enter__(self) -> Transcript:
        with explained(self.path):
            if self.path.exists():
                with self.path.open("rb") as file:
                    begun = file.read(len(BEGINNING))
                if not BEGINNING.startswith(begun):
                    raise UsageError(f"{self.path} is there and is no transcript; name another file")
        super().__enter__()
        return self

    def __exit__(self, *about: Any) -> None:
        """Close the file; a thread that nobody waits for any more finds it closed."""
        with self._lock:
            super().__exit__(*about)

    def add(self, exchange: Exchange) -> None:
        """Write an exchange as one line; BackendUnavailable where that cannot be."""
        line = json.dumps({"exchange": FORMAT, **asdict(exchange)}, separators=(",", ":"))
        with self._lock:
            self.write(line)


@contextmanager
def transcript(path: Path | str | None) -> Iterator[None]:
    """Add every exchange with a model inside the block to the file at `path`; None: nothing is kept.

    See `Transcript`, and `exchanges_to` for which threads are heard.
    """
    with ExitStack() as opened:
        if path is not None:
            opened.enter_context(exchanges_to(opened.enter_context(Transcript(path)).add))
        yield


def read_transcript(path: Path | str) -> Iterator[Exchange | None]:
    """Every whole line as an exchange, in the order in which they ended; None for a line that is damaged.

    Nothing where there is no file.
    """
    return map(exchange_in, whole_lines(Path(path)))


def exchange_in(line: bytes) -> Exchange | None:
    """The exchange in a line; None where that is damaged, or another version's."""
    try:
        said = parse_json(unsealed(line).decode())
        if said.pop("exchange") != FORMAT:
            return None
        return _EXCHANGE.validate_python(said)
    except (ValueError, AttributeError, KeyError):
        return None
