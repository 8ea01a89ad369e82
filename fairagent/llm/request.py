"""The `Model` protocol, its request and its reply, and whether a request fits into a model's context."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

from fairagent.errors import ModelError, ReplyInvalid
from fairagent.llm.reply import Narrowed, Reply, parse_reply
from fairagent.settings import ModelSettings
from fairagent.types import Usage

Message = tuple[str, str]
"""(role, text); the roles are "system", "user", and "assistant" for the answers of examples."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request to a model.

    `reply` is the form of the answer, None for free text. `temperature` None leaves it to the model's settings;
    `max_tokens` (>= 1) cuts the answer shorter than these do; `seed` makes it repeatable where a server can. `accept`
    looks at a reply of the right form and raises ReplyInvalid where its content cannot be right. `narrowed` is what the
    reply's schema has for this request alone, such as the ids that verdicts may have. `whole` False: a reply that was
    cut off at the limit will do, as in benchmarks that look at the first tokens alone. `choices` are letters (at least
    two) with one of which the answer begins: some servers report how likely each was (`ModelReply.chances`). `prompt`
    is the id of the template that the messages come from, for whoever reads a transcript.
    """

    messages: tuple[Message, ...]
    reply: type[Reply] | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    whole: bool = True
    accept: Callable[[Any], None] | None = field(default=None, compare=False)
    narrowed: Narrowed | None = field(default=None, compare=False)
    choices: str = ""
    prompt: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A model's complete reply, and what it consumed.

    `calls` are the requests that were sent for it, failed ones included. `estimated`: the server did not count the
    tokens. `finish` is the server's reason for ending, `seconds` the time including waits, `cost` US dollars (None
    where a price is not known), `notes` what had to be done to get it. `cached`: nothing was sent now. `chances` are
    the letters of `ModelRequest.choices` with their chances in (0, 1] to begin the answer; empty where the server does
    not report all of them.
    """

    text: str
    input_tokens: int
    output_tokens: int
    model: str = ""
    finish: str = "stop"
    seconds: float = 0.0
    estimated: bool = False
    calls: int = 1
    cost: float | None = None
    notes: tuple[str, ...] = ()
    cached: bool = False
    chances: tuple[tuple[str, float], ...] = ()

    @property
    def usage(self) -> Usage:
        """What the answer took."""
        seconds = 0.0 if self.cached else self.seconds
        took = Usage(self.calls, self.input_tokens, self.output_tokens, self.cost, seconds, self.estimated, self.notes)
        return Usage(seconds=self.seconds, saved=took) if self.cached else took

    def with_usage(self, usage: Usage) -> ModelReply:
        """The reply as the result of all calls that `usage` counts."""
        counts = ("calls", "input_tokens", "output_tokens", "cost", "seconds", "estimated", "notes")
        return replace(self, cached=False, **{name: getattr(usage, name) for name in counts})


class Model(Protocol):
    """A language model: any object with this method will do. Several threads may call it."""

    def complete(self, request: ModelRequest) -> ModelReply:
        """The model's complete, non-empty answer; the implementation repeats what is worth repeating.

        Raises TransientModelError (given up), FatalModelError (no call can succeed), ReplyRefused, ReplyTruncated,
        ReplyInvalid (an empty answer), or ModelError (this request was not accepted); each with its `usage`.
        """


@runtime_checkable
class StreamingModel(Protocol):
    """A model that can stream its reply."""

    def stream(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        """As `Model.complete`, calling `on_text` with each piece of the answer; the pieces are the reply's text.

        What fails after the first piece is not tried again, and raises ModelError.
        """


def stream(model: Model, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
    """The model's answer in free text, streamed to `on_text`, or passed at once where `model` cannot stream."""
    if isinstance(model, StreamingModel):
        return model.stream(request, on_text)
    reply = model.complete(request)
    on_text(reply.text)
    return reply


def read_reply(request: ModelRequest, text: str) -> Any:
    """`text` as the reply that `request` asks for; ReplyInvalid where it is none or is not accepted."""
    assert request.reply is not None
    reply = parse_reply(text, request.reply)
    for role, example in request.messages:
        # An example shows the form; its answer is one to another question.
        if role == "assistant" and reply == parse_reply(example, request.reply):
            raise ReplyInvalid("the reply repeats the answer of an example", raw=text)
    if request.accept is not None:
        try:
            request.accept(reply)
        except ReplyInvalid as error:
            raise ReplyInvalid(str(error), raw=error.raw or text) from None
    return reply


def estimate_tokens(*texts: str) -> int:
    """About how many tokens the texts have: one for every four bytes of UTF-8, rounded up.

    >>> estimate_tokens("lawyers", "judges")
    4
    """
    return -(-sum(len(text.encode("utf-8", "replace")) for text in texts) // 4)


def check_room(settings: ModelSettings, request: ModelRequest) -> None:
    """Raise ModelError where the estimated prompt and the longest reply exceed `settings.context`, if that is set."""
    if settings.context is None:
        return
    read = estimate_tokens(*(text for _, text in request.messages))
    written = min(settings.max_tokens, request.max_tokens or settings.max_tokens)
    if read + written > settings.context:
        raise ModelError(
            f"the prompt has about {read:,} tokens and the reply up to {written:,}, but the context of "
            f"{settings.name!r} is {settings.context:,} tokens (model.context in the settings): nothing was sent. Give "
            "it less to read (context.documents, context.tokens), a shorter reply (model.max_tokens), or a longer "
            "context (fairagent model serve --context)"
        )
