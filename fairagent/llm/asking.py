"""`ask`, which returns a validated reply: an invalid one is corrected.

`on_error`: what becomes of a stage whose model gave no usable reply; one policy for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeVar

from fairagent.errors import BudgetExceeded, FatalModelError, ModelError, ReplyInvalid
from fairagent.llm.exchange import attempt, spoiled
from fairagent.llm.reply import Reply
from fairagent.llm.request import Model, ModelReply, ModelRequest, read_reply
from fairagent.types import Usage

CORRECTIONS = 2
"""How often a model may mend an invalid reply. A correction is a new request, not a retry."""

R = TypeVar("R", bound=Reply)


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
            answer = attempt(partial(model.complete, asked))
            spent = spent + answer.usage
            return read_reply(request, answer.text), answer if asked is request else _with(answer, spent)
        except (ModelError, BudgetExceeded) as error:
            spent = spent + error.usage
            error.usage = spent
            if not isinstance(error, ReplyInvalid) or error.final or not corrections:
                error.usage = replace(spent, unusable=spent.calls)
                if isinstance(error, ReplyInvalid):
                    error.final = True
                    spoiled(str(error))
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


def _corrected(request: ModelRequest, fault: str) -> ModelRequest:
    """`request` with `fault` added to its last message: two user messages in a row would upset some chat templates."""
    *before, (role, text) = request.messages
    note = f"Your previous reply could not be used: {fault}.\nReply again, with the JSON object alone."
    spoiled(fault, note)
    return replace(request, messages=(*before, (role, f"{text}\n\n{note}")))


OnError = Literal["keep", "drop", "fallback", "fail"]
"""What a stage may do; each allows those that make sense for it.

keep: what was there before stays as it is, or what has come of the reply. drop: what was asked about is left out.
fallback: what works without a model takes its place. fail: the error is raised, and ends the query, topic or item.
Whichever it is, the trace says it.
"""

T = TypeVar("T")


def unless_failing(
    ask: Callable[[], T],
    on_error: OnError,
    otherwise: Callable[[ModelError | BudgetExceeded], T],
    unpaid: bool = False,
) -> T:
    """What `ask` comes to, or where its model gave no usable reply what `otherwise` makes of the error.

    FatalModelError (key, quota, unknown model) is always raised, and all else with "fail"; BudgetExceeded too, unless
    the stage can do `unpaid`, without a model.

    >>> def ask() -> str:
    ...     raise ModelError("not now")
    >>> unless_failing(ask, "keep", lambda error: f"as it was ({error})")
    'as it was (not now)'
    """
    try:
        return ask()
    except FatalModelError:
        raise
    except (ModelError, BudgetExceeded) as error:
        if on_error == "fail" or (isinstance(error, BudgetExceeded) and not unpaid):
            raise
        return otherwise(error)
