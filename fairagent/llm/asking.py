"""`ask`, which returns a validated reply (an invalid one is corrected), and what a stage does where none is usable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeVar

from fairagent.errors import BudgetExceeded, FatalModelError, ModelError, ReplyInvalid
from fairagent.llm.exchange import attempt, mark_unusable
from fairagent.llm.reply import Reply
from fairagent.llm.request import Model, ModelReply, ModelRequest, read_reply
from fairagent.types import Usage

CORRECTIONS = 2
"""How often a model may correct an invalid reply. A correction is a new request, not a retry."""

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

    The answer is always validated here, whatever the server promises. An invalid one may be corrected twice: the
    same request with the last error named, so that prompts do not grow. Raises ReplyInvalid with the last answer's
    text where that fails as well, and what `Model.complete` raises; the error's `usage` counts all calls.
    """
    value, answer = valid_reply(model, replace(request, reply=reply))
    return value, answer.usage


def valid_reply(model: Model, request: ModelRequest) -> tuple[Any, ModelReply]:
    """The reply that `request` describes, and the answer that holds it, with the usage of all calls; see `ask`."""
    total, current, corrections = Usage(), request, CORRECTIONS
    while True:
        try:
            answer = attempt(partial(model.complete, current))
            total = total + answer.usage
            value = read_reply(request, answer.text)
            return value, answer if current is request else answer.with_usage(total.whole)
        except (ModelError, BudgetExceeded) as error:
            total = error.usage = total + error.usage
            if not isinstance(error, ReplyInvalid) or error.final or not corrections:
                error.usage = replace(total, unusable=total.calls)
                if isinstance(error, ReplyInvalid):
                    error.final = True
                    mark_unusable(str(error))
                raise
            corrections -= 1
            note = f"Your previous reply could not be used: {error}.\nReply again, with the JSON object alone."
            mark_unusable(str(error), note)
            current = with_note(request, note)


def with_note(request: ModelRequest, note: str) -> ModelRequest:
    """The request with a note at its end."""
    # In the last message: two user messages in a row would upset some chat templates.
    *before, (role, text) = request.messages
    return replace(request, messages=(*before, (role, f"{text}\n\n{note}")))


def unless_failing(
    ask: Callable[[], T],
    on_error: OnError,
    otherwise: Callable[[ModelError | BudgetExceeded], T],
    unpaid: bool = False,
) -> T:
    """What `ask` returns, or where its model gave no usable reply what `otherwise` makes of the error.

    FatalModelError (key, quota, unknown model) is always raised, and all else with "fail"; BudgetExceeded too, unless
    the stage works `unpaid`, without a model.

    >>> def ask() -> str:
    ...     raise ModelError("not now")
    >>> unless_failing(ask, "keep", lambda error: f"as it was ({error})")
    'as it was (not now)'
    """
    try:
        return ask()
    except (ModelError, BudgetExceeded) as error:
        fatal = isinstance(error, FatalModelError) or (isinstance(error, BudgetExceeded) and not unpaid)
        if fatal or on_error == "fail":
            raise
        return otherwise(error)
