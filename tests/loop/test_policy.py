"""Who decides: the rules' order, and a model that chooses well, badly, or not at all."""

from __future__ import annotations

import json
from typing import Literal

import pytest
from loop_engine import Scores, agent, finding

from fairagent.errors import BudgetExceeded
from fairagent.guests.testing import ScriptedModel
from fairagent.llm import ModelRequest
from fairagent.llm.prompts import Prompts
from fairagent.search.loop.policy import ModelPolicy
from fairagent.search.loop.widen import by_rules
from fairagent.types import Trace

ENGINE = Scores({f"{letter}{number}": 0.0 for letter in "fm" for number in range(4)}, law="m0 m1 m2 m3")


def choice(action: str, reason: str = "it may help") -> str:
    return json.dumps({"action": action, "reason": reason})


def chosen(model: ScriptedModel, on_error: Literal["fallback", "fail"] = "fallback") -> Trace:
    policy = ModelPolicy(model, Prompts(), on_error)
    actions = finding("f0"), finding("f1", "documents")
    return agent(ENGINE, *actions, choose=policy, on_error=on_error).search("law").trace


def test_rules_take_the_first_that_could_help_and_say_why_none_could() -> None:
    offers = {"group": (False, "the engine cannot"), "documents": (True, "female lacks")}
    assert by_rules(None, None, offers, []) == ("documents", "female lacks")  # type: ignore[arg-type]
    offers["documents"] = False, "no group lacks candidates"
    assert by_rules(None, None, offers, [])[1] == "the engine cannot; no group lacks candidates"  # type: ignore[arg-type]


def test_the_model_is_shown_what_is_lacking_and_its_choice_is_made_at_its_price() -> None:
    model = ScriptedModel([choice("documents", "women lack exposure"), choice("stop", "good enough")])
    trace = chosen(model)
    _, documents, stop = trace.steps
    assert (documents.source, documents.why, documents.accepted) == ("documents", "women lack exposure", True)
    assert (stop.source, stop.accepted, stop.ranking.ids) == ("stop", False, documents.ranking.ids)
    assert (documents.usage.calls, stop.usage.calls, trace.usage.calls) == (1, 1, 2)
    assert trace.stopped == "the model: good enough"
    user, later = (request.messages[-1][1] for request in model.requests)
    assert '"group": "female", "share": "0.0%", "target": "50.0%", "documents_found": 0' in user
    assert '"action": "documents", "kept": true' in later
    narrowed = [request.narrowed for request in model.requests]
    names = ["group", "documents", "stop"], ["group", "stop"]
    assert narrowed == [{"action": {"type": "string", "enum": some}} for some in names]


def test_a_choice_that_is_not_offered_is_corrected_once_then_the_rules_choose() -> None:
    model = ScriptedModel([choice("filter"), choice("documents"), choice("filter"), choice("judge"), choice("stop")])
    trace = chosen(model)
    assert [step.source for step in trace.steps] == ["query", "documents", "group"]
    assert [step.usage.calls for step in trace.steps] == [0, 2, 2]
    first, again, later, *_ = (request.messages[-1][1] for request in model.requests)
    fault = "filter is not offered, only group, documents, stop"
    assert again == f"{first}\n\nYour previous choice cannot be taken: {fault}.\nChoose again."
    assert "cannot be taken" not in later
    wrong = "the model chose nothing: twice what cannot be taken: judge is not offered, only group, stop"
    assert trace.steps[2].why.endswith(f"(by the rules; {wrong})")


def test_a_budget_that_ends_leaves_the_choice_to_the_rules_or_ends_the_search() -> None:
    def ends(request: ModelRequest) -> str:
        raise BudgetExceeded("0 calls are used up")

    trace = chosen(ScriptedModel(ends))
    assert [step.source for step in trace.steps] == ["query", "group", "documents"]
    assert trace.steps[1].why.endswith("(by the rules; the model chose nothing: 0 calls are used up)")
    with pytest.raises(BudgetExceeded):
        chosen(ScriptedModel(ends), on_error="fail")
