"""The policy of all stages, by itself."""

from __future__ import annotations

from typing import get_args

import pytest

from fairagent.errors import BudgetExceeded, FatalModelError, ModelError, ReplyTruncated, TransientModelError
from fairagent.llm.asking import OnError, unless_failing


def raising(error: Exception) -> object:
    def ask() -> str:
        raise error

    return ask


def tried(error: Exception, on_error: OnError, unpaid: bool = False) -> str:
    return unless_failing(raising(error), on_error, lambda one: f"instead of {one}", unpaid)  # type: ignore[arg-type]


@pytest.mark.parametrize("on_error", get_args(OnError))
def test_a_reply_is_a_reply_whatever_the_policy(on_error: OnError) -> None:
    assert unless_failing(lambda: "yes", on_error, str) == "yes"


@pytest.mark.parametrize("on_error", ["keep", "drop", "fallback"])
@pytest.mark.parametrize("error", [ModelError("a"), TransientModelError("b"), ReplyTruncated("c")])
def test_an_error_is_what_the_stage_makes_of_it(on_error: OnError, error: ModelError) -> None:
    assert tried(error, on_error) == f"instead of {error}"


def test_fail_raises_it() -> None:
    with pytest.raises(ReplyTruncated):
        tried(ReplyTruncated("c"), "fail")
    with pytest.raises(BudgetExceeded):
        tried(BudgetExceeded("used up"), "fail", unpaid=True)


@pytest.mark.parametrize("on_error", get_args(OnError))
def test_what_no_call_can_mend_ends_everything(on_error: OnError) -> None:
    with pytest.raises(FatalModelError):
        tried(FatalModelError("no key"), on_error, unpaid=True)
    with pytest.raises(BudgetExceeded):
        tried(BudgetExceeded("used up"), on_error)


def test_a_stage_that_can_do_without_a_model_goes_on_without_a_budget() -> None:
    assert tried(BudgetExceeded("used up"), "fallback", unpaid=True) == "instead of used up"
