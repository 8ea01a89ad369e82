"""`fairagent search` and `fairagent answer`."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest

from fairagent.cli import search as command
from fairagent.guests.testing import LoopbackServer, completion
from fairagent.types.common import UNFINISHED

from .conftest import FAIR_QR, Call, Small


def shares(exposures: Any) -> dict[str, float]:
    """Group -> share, of the first dimension."""
    return {group["label"]: group["share"] for group in exposures[0]["groups"]}


def test_the_agent_shows_women_where_the_engine_shows_none(call: Call, small: Small) -> None:
    """In numbers, and as the ranking, the bars and the story in a pipe."""
    arguments = ("search", "lawyer", "--n", "6", "--dimension", "gender", *FAIR_QR, *small.options)
    found = call.record(*arguments)
    before, after = (shares(found["exposure"][when]) for when in ("before", "after"))
    assert before["female"] == 0 < after["female"]
    assert found["gap"]["after"] < found["gap"]["before"]
    assert [hit["rank"] for hit in found["hits"]] == [1, 2, 3, 4, 5, 6]
    assert {"gender": {"female": 1.0}} in [hit["groups"] for hit in found["hits"]]
    assert (found["steps"][0]["source"], found["collection"], found["oracle"]) == ("query", "small", False)
    shown = call.well(*arguments).stdout
    table, _, rest = shown.partition("exposure ")
    verdict, _, head, *rows = table.splitlines()
    assert re.fullmatch("gender: female gets [0-9]+% of the attention instead of 0%; it should have [0-9]+%", verdict)
    assert head.split() == ["rank", "was", "title", "gender", "score"]
    assert len([line for line in rows if "Page" in line]) == 6
    bars, _, story = rest.partition("1. query")
    assert all(one in bars for one in ("100%", "█", "target: "))
    assert all(one in story for one in ("lawyer (24 documents)", "stopped", "no model calls"))
    assert "\x1b" not in shown


def test_a_ranking_that_is_drawn(call: Call, small: Small) -> None:
    drawn = ("search", "lawyer", "--stochastic", "0", *small.options)
    plain, found = call.record("search", "lawyer", *small.options), call.record(*drawn)
    assert plain["draw"] is None
    assert found["draw"] == {"alpha": 0.0, "pool": 24, "seed": 0, "request": 0}
    assert found["hits"] != plain["hits"]
    assert call.record(*drawn)["hits"] == found["hits"]
    assert call.record(*drawn, "--set", "sampling.seed=1")["hits"] != found["hits"]
    assert "drawn" in call(*drawn).stdout
    assert call("search", "lawyer", "--stochastic", "-1", *small.options).exit_code == 2


@pytest.mark.parametrize("query", ["the of and", "弁護士", '"( AND * ~ ['])
def test_what_finds_nothing_says_so_and_is_no_error(call: Call, small: Small, query: str) -> None:
    result = call("search", query, *small.options)
    assert (result.exit_code, result.stdout) == (0, "No hits: no word of the query occurs in the index.\n")
    found = call.record("search", query, *small.options)
    assert found["hits"] == []
    assert found["gap"] == dict.fromkeys(("before", "after"), pytest.approx(2 * math.log(2)))  # labels, and none
    answer = call.record("answer", query, *small.options)
    assert (answer["answer"], answer["context"], answer["cited"]) == ("", [], [])
    for more in ([], ["--beside"]):
        call.well("answer", query, *more, *small.options)


def test_the_answer_its_sources_the_exposures_and_the_story(call: Call, small: Small) -> None:
    """What the record holds besides: tests/report/test_story.py."""
    shown = call.well("answer", "lawyer", "--dimension", "gender", *FAIR_QR, *small.options).stdout
    text, _, rest = shown.partition("source ")
    assert re.search(r"\w \[\d+\]\.", text)
    sources, _, rest = rest.partition("exposure ")
    assert len([line for line in sources.splitlines() if "Page" in line]) == 10
    assert {"female", "yes"} <= set(sources.split())
    bars, _, story = rest.partition("1. query")
    assert bars.split()[:3] == ["retrieved", "cited", "target"]
    assert all(part in story for part in ("final ranking", "answer", "sentences of the documents as they stand"))
    found = call.record("answer", "lawyer", "--n", "6", "--dimension", "gender", *small.options)
    assert [source["number"] for source in found["context"] if source["cited"]] == sorted(found["cited"]) != []
    assert (found["source"], found["attribution"], found["verdicts"]) == ("extractive", "citations", None)


def test_the_engines_own_answer_beside_the_agents(call: Call, small: Small) -> None:
    arguments = ["answer", "lawyer", "--beside", "--dimension", "gender", "--n", "6", *FAIR_QR, *small.options]
    found = call.record(*arguments)
    plain, fair = (shares(found[side]["exposure"]["retrieved"]) for side in ("plain", "fair"))
    assert plain["female"] == 0 < fair["female"]
    result = call(*arguments)
    assert (result.exit_code, "the engine alone" in result.stdout) == (0, True)
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 100
    (women,) = [line.split() for line in lines if line.split()[:1] == ["female"] and "%" in line]
    assert (women[1], women[4]) == ("0%", "female")
    assert women[5] != "0%"


MODEL = ["--set", "profile=offline", "--set", "model.name=tiny", "--set", "cache=''", "--n", "4"]
WRITTEN = ["answer", "lawyer", "--set", "generate.kind=llm", *MODEL, "--dimension", "gender"]


def test_a_model_writes_and_judges(call: Call, small: Small, server: LoopbackServer) -> None:
    def script(request: Any) -> str:
        system, user = (message["content"] for message in request["messages"])
        if system.startswith("You answer a question"):
            return "She won [2], he lost [9]."
        documents = json.JSONDecoder().raw_decode(user, user.index('[{"id"'))[0]
        verdicts = [{"id": one["id"], "pass": "number 3" not in one["text"], "reason": "a number"} for one in documents]
        return json.dumps({"verdicts": verdicts})

    server.script = script
    found = call.record(*WRITTEN, "--set", "filter.kind=fair", *small.options)
    assert found["answer"] == "She won [2], he lost."
    assert found["notes"] == ["citations of no document were taken out: [9]"]
    assert len(found["verdicts"]) == 4
    passed = [verdict["id"] for verdict in found["verdicts"] if verdict["kept"]]
    assert [source["id"] for source in found["context"]] == passed
    assert sum(removal["seen"] for removal in found["removed"]) == 4
    assert found["usage"]["calls"] == len(server.requests)


def test_one_word_turns_the_model_on(call: Call, small: Small, server: LoopbackServer) -> None:
    """One call for the words of all groups that lack a place; what it costs, and what it does, stand before."""
    asked: list[list[str]] = []

    def script(request: Any) -> str:
        user = request["messages"][-1]["content"]
        groups = json.JSONDecoder().raw_decode(user, user.index('[{"number"'))[0]
        asked.append([one["group"] for one in groups])
        return json.dumps({"groups": [{"number": one["number"], "keywords": ["she", "qwertz"]} for one in groups]})

    server.script = script
    options = ["--model", "tiny", "--set", "cache=''", "--n", "4", "--target", "uniform", *small.options]
    result = call.well("search", "lawyer", *options, "--json")
    price, does = result.stderr.splitlines()
    assert re.fullmatch(r"may ask tiny once, 2 with a correction \([\d,]+ tokens at most, price unknown\)", price)
    assert does.startswith("profile: agent: it names words of groups that lack exposure; ")
    found = json.loads(result.stdout)
    (step,) = (step for step in found["steps"] if step["source"] == "keywords")
    assert (len(server.requests), step["usage"]["calls"], found["profile"]) == (1, 1, "agent")
    assert set(step["dropped"]) == {"qwertz"}
    assert step["proposed"] == 2 * len(asked[0])
    assert step["objective"].keys() == {"before", "after"}
    assert step["accepted"] == (step["objective"]["after"] > step["objective"]["before"])
    plain = call.well("search", "lawyer", *options[2:], "--json")
    if not step["accepted"]:
        assert [one["id"] for one in json.loads(plain.stdout)["hits"]] == [one["id"] for one in found["hits"]]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.console import Console

    monkeypatch.setattr(command, "console", lambda: Console(force_terminal=True, color_system=None, highlight=False))


@pytest.mark.usefixtures("terminal")
def test_a_model_is_heard_in_a_terminal_and_what_takes_the_place_of_its_answer_comes_after_it(
    call: Call, small: Small, server: LoopbackServer
) -> None:
    server.script = ["She won [2], he lost [9].", "She won."]
    shown = call(*WRITTEN, *small.options).stdout
    assert shown.startswith("She won [2], he lost.\n")
    assert server.requests[0]["stream"] is True
    shown = call(*WRITTEN, *small.options).stdout
    assert shown.startswith("She won.\n\nThat cites no document; in its place:\n")
    assert "it began: She won." in shown


def test_an_unfinished_filter_ends_with_exit_code_7_and_a_used_up_budget_with_6(
    call: Call, small: Small, server: LoopbackServer
) -> None:
    server.script = lambda request: completion(None, refusal="no")
    filtered = ("--set", "filter.kind=fair", *MODEL)
    search = ("search", "lawyer", "--set", "loop={kind: widen, actions: [filter]}", *filtered)
    answer = ("answer", "lawyer", *filtered)
    for asked in (search, answer):
        spent = ["--set", "budget.calls=0"]
        options: tuple[list[str], ...] = ([], spent, [*spent, "--set", "filter.on_budget=serve"])
        results = [call(*asked, *small.options, "--json", *more) for more in options]
        assert [one.exit_code for one in results] == [7, 6, 7]
        for one in (results[0], results[2]):
            assert UNFINISHED in str(json.loads(one.stdout)["alarms"])


def test_an_answer_that_is_cut_off_is_shown_marked_and_ends_with_exit_code_7(
    call: Call, small: Small, server: LoopbackServer
) -> None:
    server.script = lambda request: completion("She won [2], then she", finish="length")
    shown, told, both, failed = (
        call(*WRITTEN, *small.options, *more)
        for more in ([], ["--json"], ["--beside", "--json"], ["--set", "generate.on_error=fail"])
    )
    assert [one.exit_code for one in (shown, told, both, failed)] == [7, 7, 7, 5]
    assert "She won [2], then she [cut off here]" in shown.stdout
    assert (json.loads(told.stdout)["answer"], json.loads(told.stdout)["truncated"]) == ("She won [2], then she", True)
    assert failed.stdout == ""
