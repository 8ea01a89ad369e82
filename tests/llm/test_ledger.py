"""What a request spends: every call inside a block counts, whatever becomes of it, in whichever thread it is made."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from fairagent.errors import BudgetExceeded, FatalModelError, ModelError, ReplyInvalid, ReplyRefused
from fairagent.guests.testing import ScriptedModel
from fairagent.llm import ModelReply, ModelRequest
from fairagent.llm.budget import Ledger, charged, in_threads, ledger
from fairagent.llm.models import CachingModel
from fairagent.llm.request import stream
from fairagent.types import Usage

from .test_cache import Scripted

ASKED = ModelRequest((("user", "Which color?"),))
RED = ModelReply("red", 10, 1, cost=0.5, seconds=2.0)
TOOK = Usage(1, 10, 1, 0.5, 2.0)


def failed(kind: type[ModelError] | type[BudgetExceeded] = ReplyRefused) -> ModelError | BudgetExceeded:
    error = kind("no")
    error.usage = Usage(1, 20, 2, 0.25, 1.0)
    return error


def raised(error: Exception) -> Callable[[], ModelReply]:
    def ask() -> ModelReply:
        raise error

    return ask


def test_calls_inside_the_block_count_and_no_others() -> None:
    model = ScriptedModel([RED] * 4)
    model.complete(ASKED)
    with ledger() as spent:
        assert spent.usage == Usage()
        assert model.complete(ASKED) is RED
        assert stream(model, ASKED, lambda piece: None) is RED
    model.complete(ASKED)
    assert spent.usage == Usage(2, 20, 2, 1.0, 4.0)


@pytest.mark.parametrize("kind", [ReplyRefused, FatalModelError, ReplyInvalid, BudgetExceeded])
def test_what_failed_counts_too_with_what_came_before(kind: type[ModelError]) -> None:
    def request() -> None:
        for ask in (lambda: RED, raised(failed(kind)), lambda: RED):
            charged(ASKED, ask)

    with pytest.raises(kind), ledger() as spent:
        request()
    assert spent.usage == Usage(2, 30, 3, 0.75, 3.0, unusable=1)


def test_blocks_inside_each_other_count_their_own() -> None:
    with ledger() as outer:
        charged(ASKED, lambda: RED)
        with ledger() as inner:
            charged(ASKED, lambda: RED)
        with ledger() as other:
            pass
        charged(ASKED, lambda: RED)
    assert (inner.usage.calls, other.usage.calls, outer.usage.calls) == (1, 0, 3)


def test_of_models_that_ask_each_other_the_outer_one_counts() -> None:
    model, tally = Scripted([RED, failed()]), Ledger()  # type: ignore[list-item]
    door = CachingModel(model, None, tally)
    with ledger() as spent:
        door.complete(ASKED)
        with pytest.raises(ReplyRefused):
            door.complete(ASKED)
        # What comes after is counted again.
        charged(ASKED, lambda: RED)
    assert tally.usage == Usage(2, 30, 3, 0.75, 3.0, unusable=1)
    assert spent.usage == Usage(3, 40, 4, 1.25, 5.0, unusable=1)
    # A door behind another model still knows what went through it.
    door = CachingModel(Scripted([RED]), None, tally)
    with ledger() as spent:
        charged(ASKED, lambda: door.complete(ASKED))
    assert (tally.usage.calls, spent.usage) == (3, TOOK)


# --- threads ----------------------------------------------------------------------------------------------------


def test_threads_begun_inside_write_to_the_ledgers_open_there() -> None:
    def work(number: int) -> int:
        with ledger() as own:
            for _ in range(number):
                charged(ASKED, lambda: RED)
        assert own.usage.calls == number
        return number * 2

    with ledger() as outer, ledger() as inner:
        assert in_threads(work, range(20), 4, "test") == [number * 2 for number in range(20)]
    assert inner.usage.calls == outer.usage.calls == sum(range(20))
    assert inner.usage.input_tokens == 10 * sum(range(20))


def test_the_first_error_is_raised_and_what_has_not_begun_is_not_done() -> None:
    begun: list[int] = []
    lock = threading.Lock()

    def work(number: int) -> None:
        with lock:
            begun.append(number)
        if number > 1:
            time.sleep(0.05)  # by then the failure is known
        charged(ASKED, raised(failed()) if number == 1 else lambda: RED)

    with ledger() as spent, pytest.raises(ReplyRefused):
        in_threads(work, range(100), 1, "test")
    assert begun[:2] == [0, 1]
    assert len(begun) < 100
    # All that was asked is counted, the failure as well.
    assert spent.usage.calls == len(begun)
