"""Budgets: whatever the threads do, no limit is passed, and none is given up while it can be kept."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from fairagent.errors import BudgetExceeded, FatalModelError, ModelError, ReplyInvalid, ReplyRefused
from fairagent.guests.testing import ScriptedModel, completion
from fairagent.llm import ModelReply, ModelRequest
from fairagent.llm.budget import Budget, Ledger, charged, in_threads, ledger
from fairagent.llm.models import CachingModel
from fairagent.llm.request import stream
from fairagent.settings import BudgetSettings, Price
from fairagent.types import Usage

from .test_cache import Scripted

ASKED = ModelRequest((("user", "x" * 400),))


def budget(**limits: float) -> Budget:
    return Budget(BudgetSettings(**limits))


def test_calls_are_counted_even_if_they_fail_and_nothing_is_a_limit_too() -> None:
    two = budget(calls=2)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), two.reserve(5, 0.0):
            raise ZeroDivisionError
    with pytest.raises(BudgetExceeded, match=r"2 calls is used up \(2 were made\); what is done is kept: repeat the"):
        two.reserve(5, 0.0)
    for limit in ("calls", "tokens", "dollars"):
        with pytest.raises(BudgetExceeded, match=f"the budget of 0 {limit} is used up"):
            budget(**{limit: 0}).reserve(1, 0.1)


def test_what_was_not_used_is_given_back() -> None:
    tokens = budget(tokens=100)
    for reserved, settled in ((90, [20]), (80, []), (80, [60, 60])):
        with tokens.reserve(reserved, 0.0) as held:
            for took in settled:
                held.settle(took, 0.0)
    with pytest.raises(BudgetExceeded, match=r"100 tokens is used up \(80 are used, the next call may take 21\)"):
        tokens.reserve(21, 0.0)
    with tokens.reserve(20, 0.0):
        pass


def test_a_reservation_is_waited_for_and_not_taken_for_spent() -> None:
    dollars = budget(dollars=1.0)
    held = dollars.reserve(1, 0.9)
    entered = threading.Event()

    def second() -> None:
        with dollars.reserve(1, 0.5):
            entered.set()

    thread = threading.Thread(target=second)
    thread.start()
    assert not entered.wait(0.05)
    held.settle(1, 0.3)
    assert entered.wait(5)
    thread.join()


def test_rounding_holds_nobody_up() -> None:
    dollars = budget(dollars=0.3)
    for amount in (0.1, 0.2, 0.3):
        held = [dollars.reserve(1, amount / 3) for _ in range(3)]
        for one in held:
            one.settle(1, 0.0)
    with dollars.reserve(1, 0.3):
        pass


def test_seconds_end_it() -> None:
    now = [100.0]
    seconds = Budget(BudgetSettings(seconds=60), clock=lambda: now[0])
    with seconds.reserve(1, 0.0):
        now[0] = 159.9
    with seconds.reserve(1, 0.0):
        now[0] = 160.0
    with pytest.raises(BudgetExceeded, match=r"60 seconds is used up \(60 have gone by\)"):
        seconds.reserve(1, 0.0)


@pytest.mark.parametrize("limit", ["calls", "tokens", "dollars"])
def test_sixteen_threads_never_pass_it(limit: str) -> None:
    """Each request reserves 100 tokens and $0.01 and takes half of them; the most in the air at once is watched."""
    limits = {"calls": 40, "tokens": 2000, "dollars": 0.2}
    limited = budget(**{limit: limits[limit]})
    lock = threading.Lock()
    taken = {"calls": 0, "tokens": 0, "dollars": 0.0}

    def work(_: int) -> None:
        while True:
            with limited.reserve(100, 0.01) as held:
                with lock:
                    for name, most in (("calls", 1), ("tokens", 100), ("dollars", 0.01)):
                        taken[name] += most
                    assert taken[limit] <= limits[limit] * (1 + 1e-9)
                time.sleep(0.0005)
                with lock:
                    taken["tokens"] -= 50
                    taken["dollars"] -= 0.005
                held.settle(50, 0.005)

    with ThreadPoolExecutor(16) as pool:
        errors = [future.exception() for future in [pool.submit(work, n) for n in range(16)]]
    assert all(isinstance(error, BudgetExceeded) for error in errors)
    # What is left is less than one more request may take.
    assert taken[limit] > limits[limit] - {"calls": 1, "tokens": 100, "dollars": 0.0100001}[limit]


def test_an_answer_is_settled_with_what_it_took(server, make_model) -> None:
    server.script = [completion("fine", usage=(100, 10))]
    price = Price(input=1000, output=10_000)
    # Reserved for a call: 100 tokens in, 50 out: $0.6; taken: $0.2.
    model = make_model(budget=budget(dollars=1.0), price=price, max_tokens=50)
    costs = [model.complete(ASKED).cost for _ in range(3)]
    assert costs == [0.2] * 3
    with pytest.raises(BudgetExceeded, match=r"1 dollars is used up \(0\.6 are used, the next call may take 0\.6\)"):
        model.complete(ASKED)
    assert len(server.requests) == 3


QUESTION = ModelRequest((("user", "Which color?"),))
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


@pytest.mark.parametrize("kind", [ReplyRefused, FatalModelError, ReplyInvalid])
def test_what_failed_counts_too_and_of_models_that_ask_each_other_the_outer_one(kind: type[ModelError]) -> None:
    model, tally = Scripted([RED, failed(kind)]), Ledger()  # type: ignore[list-item]
    door = CachingModel(model, None, tally)
    with ledger() as spent:
        door.complete(QUESTION)
        with pytest.raises(kind):
            door.complete(QUESTION)
        # What comes after is counted again.
        charged(QUESTION, lambda: RED)
        with pytest.raises(BudgetExceeded):
            charged(QUESTION, raised(failed(BudgetExceeded)))
    assert tally.usage == Usage(2, 30, 3, 0.75, 3.0, unusable=1)
    assert spent.usage == Usage(4, 60, 6, 1.5, 6.0, unusable=2)
    # A door behind another model still knows what went through it.
    door = CachingModel(Scripted([RED]), None, tally)
    with ledger() as spent:
        charged(QUESTION, lambda: door.complete(QUESTION))
    assert (tally.usage.calls, spent.usage) == (3, TOOK)


def test_calls_inside_the_block_count_and_those_of_blocks_and_threads_inside_it() -> None:
    model = ScriptedModel([RED] * 30)
    model.complete(QUESTION)

    def work(number: int) -> int:
        with ledger() as own:
            for _ in range(number):
                model.complete(QUESTION)
        assert own.usage.calls == number
        return number * 2

    with ledger() as outer:
        assert outer.usage == Usage()
        with ledger() as inner:
            assert stream(model, QUESTION, lambda piece: None) is RED
        assert in_threads(work, range(7), 4, "test") == [number * 2 for number in range(7)]
        with ledger() as other:
            pass
    model.complete(QUESTION)
    assert (inner.usage, other.usage.calls) == (TOOK, 0)
    assert outer.usage == Usage(22, 220, 22, 11.0, 44.0)


def test_the_first_error_is_raised_and_what_has_not_begun_is_not_done() -> None:
    begun: list[int] = []
    lock = threading.Lock()

    def work(number: int) -> None:
        with lock:
            begun.append(number)
        if number > 1:
            time.sleep(0.05)  # by then the failure is known
        charged(QUESTION, raised(failed()) if number == 1 else lambda: RED)

    with ledger() as spent, pytest.raises(ReplyRefused):
        in_threads(work, range(100), 1, "test")
    assert begun[:2] == [0, 1]
    assert len(begun) < 100
    # All that was asked is counted, the failure as well.
    assert spent.usage.calls == len(begun)
