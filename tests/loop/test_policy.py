"""Who decides: the rules' order, and a model that chooses well, badly, or for ever."""

from __future__ import annotations

import json

import pytest
from loop_engine import Dense, agent, judging

from fairagent.errors import BudgetExceeded
from fairagent.guests.testing import ScriptedModel
from fairagent.llm import ModelRequest
from fairagent.llm.asking import OnError
from fairagent.llm.prompts import Prompts
from fairagent.search.loop.actions import Offer, RefineAction
from fairagent.search.loop.candidates import Mixer
from fairagent.search.loop.controller import Controller
from fairagent.search.loop.policy import ModelPolicy, Rules
from fairagent.types import Trace

ENGINE = Dense(
    {f"m{number}": "law" for number in range(5)}
    | {f"f{number}": "law law woman" for number in range(3)}
    | {f"f{number}": "law woman woman woman woman woman" for number in range(3, 6)}
)
"""Men first; one refinement brings in women, and no other is a gain."""


def choice(action: str, reason: str = "it may help") -> str:
    return json.dumps({"action": action, "reason": reason})


def chosen(model: ScriptedModel, *more: object, drift: float = 0.1, on_error: OnError = "fallback") -> Trace:
    actions = (*more, RefineAction(9, 0.5))
    policy = ModelPolicy(model, Prompts(), on_error)  # type: ignore[arg-type]
    loop = Controller(actions, policy, Mixer(0.9), drift=drift, on_error=on_error)  # type: ignore[arg-type]
    return agent(ENGINE, loop).search("law").trace


def test_rules_take_the_first_that_is_open_and_say_what_is_left() -> None:
    offers = {"neighbors": Offer(False, "no group lacks documents"), "refine": Offer(True, "female lacks")}
    decision = Rules().choose(None, None, offers, [])  # type: ignore[arg-type]
    assert (decision.action, decision.why) == ("refine", "female lacks")
    offers["refine"] = Offer(False, "the limit of 3 steps is reached")
    decision = Rules().choose(None, None, offers, [])  # type: ignore[arg-type]
    assert decision.action == "stop"
    assert decision.why == "neighbors: no group lacks documents; refine: the limit of 3 steps is reached"


def test_the_model_is_shown_what_is_lacking_and_what_is_offered() -> None:
    model = ScriptedModel([choice("stop", "good enough")])
    trace = chosen(model, judging(ScriptedModel([])))
    user = model.requests[0].messages[-1][1]
    assert '"group": "female", "share": "0.0%", "target": "50.0%", "documents_found": 6' in user
    assert '"action": "judge"' in user
    assert '"action": "filter"' not in user
    assert trace.stopped == "the model: good enough"
    assert model.requests[0].narrowed == {"action": {"type": "string", "enum": ["judge", "refine", "stop"]}}


def test_the_models_choice_is_made_and_has_its_price() -> None:
    model = ScriptedModel([choice("refine", "women lack exposure"), choice("stop")])
    trace = chosen(model)
    _, refine, stop = trace.steps
    assert (refine.source, refine.why, refine.accepted) == ("refine", "women lack exposure", True)
    assert (stop.source, stop.accepted) == ("stop", False)
    assert refine.usage.calls == stop.usage.calls == 1
    assert trace.usage.calls == 2
    assert stop.ranking.ids == refine.ranking.ids


def test_a_choice_that_is_not_offered_is_corrected_once() -> None:
    model = ScriptedModel([choice("filter"), choice("refine", "women lack exposure"), choice("stop")])
    trace = chosen(model)
    assert [step.source for step in trace.steps] == ["query", "refine", "stop"]
    assert trace.steps[1].why == "women lack exposure"
    assert trace.steps[1].usage.calls == 2
    first, again, later = (request.messages[-1][1] for request in model.requests)
    assert again == (
        f"{first}\n\nYour previous choice cannot be taken: filter is not offered, only refine, stop.\nChoose again."
    )
    assert "cannot be taken" not in later


def test_after_a_second_wrong_choice_the_rules_choose_and_the_loop_goes_on() -> None:
    model = ScriptedModel([choice("filter"), choice("judge"), choice("stop", "good enough")])
    trace = chosen(model)
    assert [step.source for step in trace.steps] == ["query", "refine", "stop"]
    assert trace.steps[1].accepted
    wrong = "the model chose nothing: twice what cannot be taken: judge is not offered, only refine, stop"
    assert trace.steps[1].why.endswith(f"(by the rules; {wrong})")
    assert trace.stopped == "the model: good enough"


def test_a_model_that_repeats_what_has_failed_twice_is_stopped() -> None:
    model = ScriptedModel(lambda request: choice("refine"))
    trace = chosen(model)
    assert [step.accepted for step in trace.steps] == [True, True, False, False, False]
    assert [step.source for step in trace.steps][-1] == "stop"
    assert trace.stopped == "the model chose refine again, which had failed twice"


def test_a_budget_that_ends_keeps_what_was_reached_and_says_so() -> None:
    calls = []

    def ends(request: ModelRequest) -> str:
        calls.append(request)
        if len(calls) > 1:
            raise BudgetExceeded("the budget of 1 calls is used up")
        return choice("refine")

    trace = chosen(ScriptedModel(ends))
    assert trace.steps[1].accepted
    assert "(by the rules; the model chose nothing: the budget of 1 calls is used up)" in trace.steps[2].why
    calls.clear()
    with pytest.raises(BudgetExceeded):
        chosen(ScriptedModel(ends), on_error="fail")
