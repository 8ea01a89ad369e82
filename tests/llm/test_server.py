"""The breaker alone: requests are functions here, and those that overlap are begun inside one another."""

from __future__ import annotations

import pytest

from fairagent.errors import FatalModelError, ModelError, TransientModelError
from fairagent.llm import ModelRequest
from fairagent.llm.server import MOST_FAILURES, PAUSE, Breaker


class Clock:
    now = 1e9 + 0.1

    def __call__(self) -> float:
        return self.now


def answer() -> str:
    return "fine"


def fail() -> str:
    raise TransientModelError("busy")


def opened(clock: Clock) -> Breaker:
    breaker = Breaker(clock)
    for _ in range(MOST_FAILURES):
        with pytest.raises(TransientModelError) as caught:
            breaker.run(fail)
    # The one that opens it says when to come back, and never a rounding error later than one may be willing to wait.
    assert caught.value.retry_after == pytest.approx(PAUSE)
    assert caught.value.retry_after <= PAUSE
    return breaker


def test_it_opens_for_a_while_and_closes_by_one_answer():
    clock = Clock()
    breaker = opened(clock)
    clock.now += PAUSE - 1
    with pytest.raises(TransientModelError, match="failed 5 times in a row and is left alone for 1 s") as caught:
        breaker.run(answer)
    assert caught.value.retry_after == pytest.approx(1)
    clock.now += 1
    assert breaker.run(answer) == "fine"
    with pytest.raises(TransientModelError) as caught:
        breaker.run(fail)
    assert caught.value.retry_after is None


def test_a_probe_that_fails_opens_it_again():
    clock = Clock()
    breaker = opened(clock)
    clock.now += PAUSE
    with pytest.raises(TransientModelError) as caught:
        breaker.run(fail)
    assert caught.value.retry_after == pytest.approx(PAUSE)


def test_what_was_on_its_way_does_not_lengthen_the_pause():
    clock = Clock()
    breaker = Breaker(clock)
    breaker.run(answer)

    def late() -> str:
        for _ in range(MOST_FAILURES):
            with pytest.raises(TransientModelError):
                breaker.run(fail)
        clock.now += 20
        return fail()

    with pytest.raises(TransientModelError) as caught:
        breaker.run(late)
    assert caught.value.retry_after == pytest.approx(PAUSE - 20)


def test_a_late_answer_closes_it():
    clock = Clock()
    breaker = Breaker(clock)
    breaker.run(answer)

    def late() -> str:
        for _ in range(MOST_FAILURES):
            with pytest.raises(TransientModelError):
                breaker.run(fail)
        return "fine"

    assert breaker.run(late) == "fine"
    assert breaker.run(answer) == "fine"


def test_a_fatal_error_stays():
    breaker = Breaker()
    breaker.run(answer)

    def refused() -> str:
        raise FatalModelError("no key")

    for request in (refused, answer, answer):
        with pytest.raises(FatalModelError, match="no key"):
            breaker.run(request)


def test_an_answer_that_is_no_use_is_an_answer():
    breaker = Breaker()
    for error in (*[TransientModelError("busy")] * 4, ModelError("too long"), *[TransientModelError("busy")] * 4):

        def request(error: ModelError = error) -> str:
            raise error

        with pytest.raises(ModelError):
            breaker.run(request)
    assert breaker.run(answer) == "fine"


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_who_gives_up_leaves_the_turn_to_the_next(error):
    breaker = Breaker()

    def stop() -> str:
        raise error

    with pytest.raises(error):
        breaker.run(stop)
    assert breaker.run(answer) == "fine"


def test_a_server_that_was_never_reached_is_asked_once_and_not_waited_for(make_model, slept):
    model = make_model(base_url="http://127.0.0.1:9/v1")
    for calls in (1, 0):
        with pytest.raises(TransientModelError) as caught:
            model.complete(ModelRequest((("user", "Which color?"),)))
        assert caught.value.usage.calls == calls
    assert slept == []
