"""The `Model` protocol, its request and reply, and `ask`, which returns a validated reply."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar, runtime_checkable

from fairagent.errors import BudgetExceeded, ModelError, ReplyInvalid
from fairagent.llm.reply import Narrowed, Reply, parse_reply
from fairagent.types import Usage

Message = tuple[str, str]
"""(role, text); the roles are "system", "user", and "assistant" for the answers of examples."""

CORRECTIONS = 2
"""How often a model may mend an invalid reply. A correction is a new request, not a retry."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request to a model.

    `reply` is the form of the answer, None for free text. `temperature` None leaves it to the model's settings;
    `max_tokens` (>= 1) cuts the answer shorter than these do; `seed` makes it repeatable where a server can. `accept`
    looks at a reply of the right form and raises ReplyInvalid where its content cannot be right. `narrowed` is what the
    reply's schema has for this request alone, such as the ids that verdicts may have. `whole` False: a reply that was
    cut off at the limit will do, as in benchmarks that look at the first tokens alone. `choices` are letters (at least
    two) with one of which the answer begins: a server that can tells how likely each was (`ModelReply.chances`).
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


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A model's complete reply, and what it consumed.

    `calls` are the requests that were sent for it, failed ones included. `estimated` says that the server did not
    count the tokens. `finish` is the server's reason for ending, `seconds` the time including waits, `cost` US dollars
    (None where a price is not known), `notes` what had to be done to get it. `cached`: nothing was sent now.
    `chances` are the letters of `ModelRequest.choices` with their chances in (0, 1] to begin the answer; empty where
    the server does not tell those of all of them.
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


class Model(Protocol):
    """A language model: any object with this method will do. Several threads may call it."""

    def complete(self, request: ModelRequest) -> ModelReply:
        """The model's complete, non-empty answer; the implementation repeats what is worth repeating.

        Raises TransientModelError (given up), FatalModelError (no call can succeed), ReplyRefused, ReplyTruncated,
        ReplyInvalid (an empty answer), or ModelError (this request was not accepted); each with its `usage`.
        """
        ...


@runtime_checkable
class StreamingModel(Protocol):
    """A model that can stream its reply."""

    def stream(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
        """As `Model.complete`, telling `on_text` the answer piece by piece; the pieces are the reply's text.

        What fails after a piece was told is not tried again, and raises ModelError.
        """
        ...


R = TypeVar("R", bound=Reply)


def tell(model: Model, request: ModelRequest, on_text: Callable[[str], None]) -> ModelReply:
    """The model's answer in free text, streamed to `on_text`, or passed at once where `model` cannot stream.

    Raises what `Model.complete` raises.
    """
    if isinstance(model, StreamingModel):
        return model.stream(request, on_text)
    reply = model.complete(request)
    on_text(reply.text)
    return reply


def ask(model: Model, request: ModelRequest, reply: type[R]) -> tuple[R, Usage]:
    """The model's answer as a `reply`, and what it took.

    The answer is always validated here, whatever the server promises. An invalid one may be corrected twice: the
    same request with the last fault named, so that prompts do not grow. Raises ReplyInvalid with the last answer's
    text where that fails as well, and what `Model.complete` raises; the error's `usage` counts all calls.
    """
    found, answer = valid_reply(model, replace(request, reply=reply))
    return found, answer.usage


def valid_reply(model: Model, request: ModelRequest) -> tuple[Any, ModelReply]:
    """What `request` asks for, and the model's answer that holds it, with all that was spent to get it; see `ask`."""
    spent = Usage()
    asked = request
    corrections = CORRECTIONS
    while True:
        try:
            answer = model.complete(asked)
            spent = spent + answer.usage
            return read_reply(request, answer.text), answer if asked is request else _with(answer, spent)
        except (ModelError, BudgetExceeded) as error:
            spent = spent + error.usage
            error.usage = spent
            if not isinstance(error, ReplyInvalid) or error.final or not corrections:
                error.usage = replace(spent, unusable=spent.calls)
                if isinstance(error, ReplyInvalid):
                    error.final = True
                raise
            corrections -= 1
            asked = _corrected(request, str(error))


def _with(answer: ModelReply, spent: Usage) -> ModelReply:
    """`answer` as the outcome of all that was spent on it."""
    took = spent.whole
    return replace(
        answer,
        calls=took.calls,
        input_tokens=took.input_tokens,
        output_tokens=took.output_tokens,
        cost=took.cost,
        seconds=took.seconds,
        estimated=took.estimated,
        notes=took.notes,
        cached=False,
    )


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


def _corrected(request: ModelRequest, fault: str) -> ModelRequest:
    """`request` with `fault` added to its last message: two user messages in a row would upset some chat templates."""
    *before, (role, text) = request.messages
    note = f"Your previous reply could not be used: {fault}.\nReply again, with the JSON object alone."
    return replace(request, messages=(*before, (role, f"{text}\n\n{note}")))


def estimate_tokens(*texts: str) -> int:
    """About how many tokens the texts are: one for every four bytes of UTF-8, rounded up.

    >>> estimate_tokens("lawyers", "judges")
    4
    """
    return -(-sum(len(text.encode("utf-8", "replace")) for text in texts) // 4)
