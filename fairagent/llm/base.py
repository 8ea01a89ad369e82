"""What a language model is to fairagent: a request, a reply, one method, and `ask` for checked values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from fairagent.errors import ModelError, ReplyInvalid
from fairagent.llm.reply import Reply, parse_reply
from fairagent.types import Usage

Message = tuple[str, str]
"""(role, text); the roles are "system" and "user"."""

CORRECTIONS = 1
"""How often a model may mend an invalid reply. A correction is a new request, not a retry."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One question to a model, complete in itself.

    `reply` is the form of the answer, None for free text. `temperature` None leaves it to the model's settings;
    `max_tokens` (>= 1) cuts the answer shorter than these do; `seed` makes it repeatable where a server can.
    """

    messages: tuple[Message, ...]
    reply: type[Reply] | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A model's complete answer, and what it took.

    `calls` are the requests that were sent for it, failed ones included (0 where none was). `estimated` says that
    the server did not count the tokens. `finish` is the server's reason for ending, `seconds` the time including waits.
    """

    text: str
    input_tokens: int
    output_tokens: int
    model: str = ""
    finish: str = "stop"
    seconds: float = 0.0
    estimated: bool = False
    calls: int = 1

    @property
    def usage(self) -> Usage:
        """What the answer took; its cost is not known here."""
        return Usage(self.calls, self.input_tokens, self.output_tokens, None if self.calls else 0.0, self.seconds)


class Model(Protocol):
    """A language model: any object with this method will do. Several threads may call it."""

    def complete(self, request: ModelRequest) -> ModelReply:
        """The model's complete, non-empty answer; the implementation repeats what is worth repeating.

        Raises TransientModelError (given up), FatalModelError (no call can succeed), ReplyRefused, ReplyTruncated,
        ReplyInvalid (an empty answer), or ModelError (this request was not accepted); each with its `usage`.
        """
        ...


R = TypeVar("R", bound=Reply)


def ask(model: Model, request: ModelRequest, reply: type[R]) -> tuple[R, Usage]:
    """The model's answer as a `reply`, and what it took.

    The answer is always validated here, whatever the server promises. An invalid one may be corrected once: the
    same request with the fault named, so that prompts do not grow. Raises ReplyInvalid with the last answer's
    text where that fails as well, and what `Model.complete` raises; the error's `usage` counts all calls.
    """
    request = replace(request, reply=reply)
    spent = Usage()
    asked = request
    corrections = CORRECTIONS
    while True:
        try:
            answer = model.complete(asked)
            spent = spent + answer.usage
            return parse_reply(answer.text, reply), spent
        except ModelError as error:
            spent = spent + error.usage
            if not corrections or not isinstance(error, ReplyInvalid):
                error.usage = spent
                raise
            corrections -= 1
            asked = _corrected(request, str(error))


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
