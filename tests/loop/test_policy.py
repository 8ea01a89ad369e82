"""`policy: model`: what a model calls is carried out, undone where it does not help, and each call is in the trace."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from loop_engine import Dense, Scores, agent, step_of, verdicts

from fairagent.answer.filtering import FairFilter
from fairagent.errors import BudgetExceeded, FatalModelError, TransientModelError
from fairagent.guests.testing import LoopbackServer, ScriptedModel, ServerReply, completion, error
from fairagent.llm.models import Models
from fairagent.llm.prompts import Prompts
from fairagent.llm.request import Model, ToolCall
from fairagent.search.loop.policy import ModelChooser, calling, these
from fairagent.search.loop.widen import Action, ModelJudge, filtering, judging
from fairagent.settings import ModelSettings
from fairagent.types import Proposals, SearchResult

MEN = {f"m{number}": -6.0 - number / 10 for number in range(4)}
WOMEN = {"f1": -6.1, "f2": -6.2, "f3": -20.0}
"""Two women are as relevant as the men, one is not at all; the query finds men alone."""
Call = tuple[str, Mapping[str, Any] | str]


def engine() -> Scores:
    return Scores(MEN | WOMEN, q="m0 m1 m2 m3", **{"q she": "f1 m0", "q her": "f2", "q ship": "f3", "q it": "m1"})


def find(number: int, *keywords: str) -> Call:
    return "search_for_group", {"number": number, "keywords": list(keywords)}


STOP: Call = ("stop", {"reason": "nothing lacks"})


def written(*calls: Call) -> str:
    """A reply in words, as models without tools give it."""
    return json.dumps({"calls": [{"name": name, "arguments": given} for name, given in calls]})


def native(*calls: Call) -> ServerReply:
    """A reply with calls of tools."""
    texts = [(name, given if isinstance(given, str) else json.dumps(given)) for name, given in calls]
    made = [
        {"id": f"x{n}", "type": "function", "function": {"name": name, "arguments": text}}
        for n, (name, text) in enumerate(texts)
    ]
    return completion(None, "tool_calls", tool_calls=made)


def steered(model: Model, *actions: Action, turns: int = 4, calls: int = 8, **more: Any) -> SearchResult:
    policy = calling(ModelChooser(model, Prompts(), turns), calls)
    return agent(more.pop("engine", None) or engine(), *actions, policy=policy, **more).search("q")


def on_server(server: LoopbackServer, replies: Path | None = None) -> SearchResult:
    """A search with the model of this server."""
    models = Models(replies, environ={})
    try:
        return steered(models.open(ModelSettings(name="tiny", base_url=server.url)))
    finally:
        models.close()


def said(result: SearchResult) -> list[tuple[str, bool, str]]:
    """Of each step of the loop: the tool, whether it was accepted, and why not."""
    return [(step.source, step.accepted, step.reason) for step in result.trace.steps[1:]]


def test_each_call_is_a_step_and_what_does_not_help_is_undone() -> None:
    model = ScriptedModel([written(find(1, "ship"), find(1, "she")), written(find(1, "her"))])
    result = steered(model)
    assert said(result) == [
        ("search_for_group", False, "none of what comes in would be served"),
        ("search_for_group", True, ""),
        ("search_for_group", True, ""),
    ]
    ship, she, her = result.trace.steps[1:]
    assert ship.why == 'called with {"number": 1, "keywords": ["ship"]}'
    assert she.notes == ("female (gender): she", "female (gender): 1 of its documents come in")
    assert ship.objectives[0] == she.objectives[0] < she.objectives[1] == her.objectives[0] < her.objectives[1]
    assert [step.usage.calls for step in (ship, she, her)] == [1, 0, 1]
    assert {"f1", "f2"} < set(result.ranking.ids)
    assert result.trace.stopped == "no group lacks a place"
    # The second request has the first one's calls, and what each came to.
    roles = [role for role, _ in model.requests[1].messages]
    assert roles == ["system", "user", "assistant", "tool", "tool"]
    first, second = (json.loads(text) for role, text in model.requests[1].messages if role == "tool")
    assert first["result"] == "undone: none of what comes in would be served"
    assert (second["result"], second["came_in"]) == ("accepted", 1)
    assert second["J"]["after"] > second["J"]["before"]
    assert second["gap"]["after"] < second["gap"]["before"]
    group = {"number": 1, "dimension": "gender", "group": "female", "target": "50.0%", "candidates": 1}
    assert second["groups"][0].items() > group.items()


@pytest.mark.parametrize(
    ("call", "source", "reason"),
    [
        (("serch", {}), "no tool", "no tool 'serch'; there are: search_for_group, stop"),
        (("judge", {"number": 1}), "judge", "no tool 'judge'; there are: search_for_group, stop"),
        (("filter", {}), "filter", "no tool 'filter'"),
        (("search_for_group", {"number": "one"}), "search_for_group", "the reply is not the JSON object"),
        (("search_for_group", "{number 1"), "search_for_group", "the reply is not the JSON object"),
        (find(9, "she"), "search_for_group", "group 9 is not there"),
        (find(2, "he"), "search_for_group", "group 2 lacks no exposure"),
        (find(1, "q"), "search_for_group", "the model says nothing usable"),
        (find(1, "it"), "search_for_group", "no other document is found"),
    ],
)
def test_a_call_that_cannot_be_carried_out_says_why_and_the_model_goes_on(call: Call, source: str, reason: str) -> None:
    result = steered(ScriptedModel([written(call), written(find(1, "she")), written(STOP)]))
    (first, second, third) = said(result)
    assert first[:2] == (source, False)
    assert first[2].startswith(reason)
    assert second == ("search_for_group", True, "")
    assert third == ("stop", False, "stopped: nothing lacks")
    assert result.trace.stopped == "stopped: nothing lacks"


def test_fifty_keywords_are_cut_and_counted_and_identifiers_refused() -> None:
    words = ["she", "female_group_1", "number", *(f"word{a}{b}" for a in "abcdefghij" for b in "abcde")][:50]
    lists = engine().lists | {f"q {' '.join(['she', *words[3:14]])}": "f1"}
    result = steered(ScriptedModel([written(find(1, *words)), written(STOP)]), engine=Scores(MEN | WOMEN, **lists))
    step = step_of(result, "search_for_group")
    assert (step.accepted, step.proposals) == (True, Proposals(25, 12))
    assert step.refused[:2] == ("female_group_1: an identifier", "number: a word of the prompt itself")
    assert step.refused[-1] == "and 26 more"


def test_a_call_that_is_repeated_and_those_beyond_the_limit_are_not_carried_out() -> None:
    model = ScriptedModel([written(find(1, "ship"), find(1, "ship")), written(*[find(1, "it")] * 5)])
    result = steered(model, calls=3)
    assert [reason for _, _, reason in said(result)[1:]] == [
        "it was called before, with the same",
        "no other document is found",
        "the limit of calls is reached: 4 calls not carried out",
    ]
    assert result.trace.stopped == "the limit of calls is reached"
    assert len(model.requests) == 2


def test_a_model_that_never_stops_is_not_asked_again_and_one_that_stops_at_once_changes_nothing() -> None:
    plain = agent(engine()).search("q").ranking.ids
    never = ScriptedModel(lambda request: written(find(1, f"ship{len(request.messages)}")))
    result = steered(never, turns=3)
    assert (len(never.requests), result.trace.stopped) == (3, "the model did not stop in 3 turns")
    for reply in (written(STOP), written()):
        result = steered(ScriptedModel([reply]))
        assert result.ranking.ids == plain
        assert [source for source, *_ in said(result)] == ["stop"]
        assert result.trace.steps[1].usage.calls == 1
    fair = Scores(MEN | WOMEN, q="m0 f1 m1 f2")
    assert steered(ScriptedModel([]), engine=fair).trace.stopped == "no group lacks a place"


@pytest.mark.parametrize("failure", [TransientModelError("overloaded"), BudgetExceeded("10 calls")])
def test_a_model_that_fails_leaves_what_was_reached_or_ends_the_search(failure: Exception) -> None:
    def fails(request: Any) -> str:
        if len(request.messages) > 2:
            raise failure
        return written(find(1, "she"))

    result = steered(ScriptedModel(fails))
    assert said(result) == [("search_for_group", True, ""), ("model", False, str(failure))]
    assert result.trace.stopped == f"model: {failure}"
    assert "f1" in result.ranking.ids
    with pytest.raises(type(failure)):
        steered(ScriptedModel(fails), on_error="fail")
    with pytest.raises(FatalModelError):
        steered(ScriptedModel([FatalModelError("no key")]))


def test_a_server_that_knows_tools_gets_calls_and_what_they_came_to_and_replies_are_cached(tmp_path: Path) -> None:
    replies = [native(find(1, "ship"), ("serch", "{bad")), native(find(1, "she")), native(STOP)]
    with LoopbackServer(replies) as server:
        for calls in (3, 0):
            result = on_server(server, tmp_path / "replies")
            assert [one[0] for one in said(result)] == ["search_for_group", "no tool", "search_for_group", "stop"]
            assert result.trace.usage.calls == calls
    first, second, third = server.requests
    assert [tool["function"]["name"] for tool in first["tools"]] == ["search_for_group", "stop"]
    assert (first["tool_choice"], "response_format" in first) == ("required", False)
    schema = first["tools"][0]["function"]["parameters"]
    assert schema["properties"]["number"] == {"type": "integer", "enum": [1]}
    assert schema["required"] == ["number", "keywords"]
    called, *results = second["messages"][2:]
    assert (called["role"], called["content"]) == ("assistant", None)
    assert [one["function"] for one in called["tool_calls"]] == [
        {"name": "search_for_group", "arguments": '{"number": 1, "keywords": ["ship"]}'},
        {"name": "serch", "arguments": "{bad"},
    ]
    assert [one["tool_call_id"] for one in results] == [one["id"] for one in called["tool_calls"]]
    assert [json.loads(one["content"])["result"][:14] for one in results] == ["undone: none o", "undone: no too"]
    assert third["messages"][:5] == second["messages"]


@pytest.mark.parametrize(
    "reply",
    [
        error(400, "tools param requires a template that knows them"),
        error(404, "No endpoints found that support tool use"),
        completion("Let me search for women!"),
        completion("On and on", finish="length"),
    ],
)
def test_a_server_without_tools_is_given_their_schemas_as_json(reply: ServerReply) -> None:
    def script(request: dict[str, Any]) -> ServerReply | str:
        if "tools" in request:
            return reply
        return written(STOP) if len(request["messages"]) > 2 else written(find(1, "she"), find(1, "ship"))

    with LoopbackServer(script) as server:
        result = on_server(server)
    assert [accepted for _, accepted, _ in said(result)] == [True, False, False]
    assert "no tools" in result.trace.steps[1].usage.notes
    _, first, second = server.requests
    each = first["response_format"]["json_schema"]["schema"]["properties"]["calls"]["items"]["anyOf"]
    assert [one["properties"]["name"]["enum"] for one in each] == [["search_for_group"], ["stop"]]
    assert [one["role"] for one in second["messages"]] == ["system", "user", "assistant", "user"]
    assert second["messages"][-1]["content"].count('"result"') == 2
    assert "does" in first["messages"][-1]["content"]


def test_a_server_that_takes_no_choice_of_tools_and_streams_alone() -> None:
    calls = [
        {"index": 0, "id": "x", "function": {"name": "search_for_group", "arguments": '{"number": 1,'}},
        {"index": 0, "function": {"arguments": ' "keywords": ["she"]}'}},
        {"index": 1, "id": "y", "function": {"name": "stop", "arguments": '{"reason": "done"}'}},
    ]
    chunks = [{"choices": [{"index": 0, "delta": {"tool_calls": [one]}}]} for one in calls]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    body = "".join(f"data: {json.dumps(one)}\n\n" for one in chunks) + "data: [DONE]\n\n"

    def script(request: dict[str, Any]) -> ServerReply:
        if "tool_choice" in request:
            return error(400, "tool_choice 'required' is not supported")
        if "stream" not in request:
            return error(400, "this model only supports stream=true")
        return ServerReply(body, content_type="text/event-stream")

    with LoopbackServer(script) as server:
        result = on_server(server)
    assert said(result) == [("search_for_group", True, ""), ("stop", False, "stopped: done")]
    assert "tools" in server.requests[-1]


LAW = Dense({"f1": "law woman ship", "f2": "law woman", "m1": "law law man", "m2": "law law sea", "m3": "law man"})


def test_a_judge_and_a_filter_are_tools_where_the_search_has_them_and_the_filter_is_applied_in_any_case() -> None:
    """At a price of 0 women lack exposure; the judge finds the ship irrelevant, the filter removes the sea."""
    judge = judging(ModelJudge(ScriptedModel(verdicts(lambda text: "ship" not in text)), Prompts()), documents=2)
    reads = ScriptedModel(verdicts(lambda text: "sea" not in text))
    fair = filtering(FairFilter(reads, Prompts(), utility=False))
    model = ScriptedModel([written(("judge", {"number": 1}), ("filter", {}), ("filter", {})), written(STOP)])
    result, at_once = (
        agent(LAW, judge, fair, policy=calling(ModelChooser(one, Prompts()), 8), fairness=0, n=2).search("law")
        for one in (model, ScriptedModel([written(STOP)]))
    )
    assert [name for name, *_ in model.requests[0].tools] == ["search_for_group", "judge", "filter", "stop"]
    assert said(result)[0] == ("judge", True, "")
    assert [source for source, *_ in said(result)][:3] == ["judge", "filter", "filter"]
    assert said(result)[2][2] == "the filter has read all that is served"
    assert [source for source, *_ in said(at_once)] == ["stop", "filter"]


def test_the_calls_of_another_agent_are_carried_out_in_the_same_way() -> None:
    calls = [ToolCall(name=name, arguments=given) for name, given in (find(1, "she"), STOP, find(1, "her"))]
    result = agent(engine(), policy=calling(these(calls), 8)).search("q")
    assert said(result) == [("search_for_group", True, ""), ("stop", False, "stopped: nothing lacks")]
    result = agent(engine(), policy=calling(these(calls[:1]), 8)).search("q")
    assert result.trace.stopped == "all calls are carried out"
