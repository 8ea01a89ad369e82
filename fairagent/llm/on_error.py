"""`on_error`: what becomes of a stage whose model gave no usable reply; one policy for all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeVar

from fairagent.errors import BudgetExceeded, FatalModelError, ModelError

OnError = Literal["keep", "drop", "fallback", "fail"]
"""What a stage may do; each allows those that make sense for it.

keep: what was there before stays as it is, or what has come of the reply. drop: what was asked about is left out.
fallback: what works without a model takes its place. fail: the error is raised, and ends the query, topic or item.
Whichever it is, the trace says it.
"""

T = TypeVar("T")


def attempt(
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
    >>> attempt(ask, "keep", lambda error: f"as it was ({error})")
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
