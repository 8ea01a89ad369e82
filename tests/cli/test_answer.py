from __future__ import annotations

import json
import re
from typing import Any

import pytest

from fairagent.cli import answer as answer_command
from fairagent.guests.testing import LoopbackServer, completion

from .conftest import FAIR_QR, Call, Small


def record(call: Call, *arguments: str) -> Any:
    result = call("answer", *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    assert result.stderr in ("", "may ask tiny 21 times (price unknown)\n")
    assert result.stdout.isascii()
    return json.loads(result.stdout)


def test_the_answer_its_sources_the_exposures_and_the_story(call: Call, small: Small) -> None:
    result = call("answer", "lawyer", "--dimension", "gender", *FAIR_QR, *small.options)
    assert result.exit_code == 0, result.stderr
    text, _, rest = result.stdout.partition("source ")
    assert re.search(r"\w \[\d+\]\.", text)
    sources, _, rest = rest.partition("exposure ")
    assert len([line for line in sources.splitlines() if "Page" in line]) == 10
    assert "female" in sources
    assert "yes" in sources
    bars, _, story = rest.partition("1. query")
    assert bars.split()[:3] == ["retrieved", "cited", "target"]
    assert "final ranking" in story
    assert "answer" in story
    assert "sentences of the documents as they stand" in story
    assert "no model calls" in story
    assert "\x1b" not in result.stdout


def test_json_holds_it_all(call: Call, small: Small) -> None:
    found = record(call, "lawyer", "--n", "6", "--dimension", "gender", *small.options)
    assert found["collection"] == "small"
    assert [source["number"] for source in found["context"]] == [1, 2, 3, 4, 5, 6]
    assert found["cited"]
    assert [source["number"] for source in found["context"] if source["cited"]] == sorted(found["cited"])
    assert [source["weight"] for source in found["context"]] == [float(source["cited"]) for source in found["context"]]
    assert all(f"[{number}]" in found["answer"] for number in found["cited"])
    assert [exposure["dimension"] for exposure in found["exposure"]["attributed"]] == ["gender"]
    assert found["search"]["query"] == {"text": "lawyer", "topic": None}
    assert (found["source"], found["attribution"], found["verdicts"]) == ("extractive", "citations", None)


def test_the_engines_own_answer_beside_the_agents(call: Call, small: Small) -> None:
    arguments = ["lawyer", "--beside", "--dimension", "gender", "--n", "6", *FAIR_QR, *small.options]
    found = record(call, *arguments)
    plain, fair = (dict(shares(found[side])) for side in ("plain", "fair"))
    assert plain["female"] == 0
    assert fair["female"] > 0
    result = call("answer", *arguments)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert "the engine alone" in result.stdout
    assert max(map(len, lines)) <= 100
    (women,) = [line.split() for line in lines if line.split()[:1] == ["female"] and "%" in line]
    assert women[0] == women[4] == "female"
    assert women[1] == "0%" != women[5]


def shares(record: Any) -> list[tuple[str, float]]:
    return [(group["label"], group["share"]) for group in record["exposure"]["retrieved"][0]["groups"]]


# --- with a model -----------------------------------------------------------------------------------------------

OFFLINE = ["--set", "profile=offline"]
MODEL = [*OFFLINE, "--set", "model.name=tiny", "--set", "cache=''", "--n", "4", "--dimension", "gender"]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    with LoopbackServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


def test_a_model_writes_and_judges(call: Call, small: Small, server: LoopbackServer) -> None:
    def script(request: Any) -> str:
        system, user = (message["content"] for message in request["messages"])
        if system.startswith("You answer a question"):
            return "She won [2], he lost [9]."
        start = user.index('[{"id"')
        documents = json.JSONDecoder().raw_decode(user, start)[0]
        verdicts = [{"id": one["id"], "pass": "number 3" not in one["text"], "reason": "a number"} for one in documents]
        return json.dumps({"verdicts": verdicts})

    server.script = script
    found = record(call, "lawyer", "--set", "generate.kind=llm", "--set", "filter.kind=fair", *MODEL, *small.options)
    assert found["answer"] == "She won [2], he lost."
    assert found["notes"] == ["citations of no document were taken out: [9]"]
    assert len(found["verdicts"]) == 4
    kept = [verdict["id"] for verdict in found["verdicts"] if verdict["kept"]]
    assert [source["id"] for source in found["context"]] == kept
    assert sum(removal["seen"] for removal in found["removed"]) == 4
    assert found["usage"]["calls"] == len(server.requests)


# --- bad input --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["the of and", "弁護士"])
def test_what_finds_nothing_says_so_and_is_no_error(call: Call, small: Small, query: str) -> None:
    result = call("answer", query, *small.options)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("No answer: the query retrieves nothing, so there is no context.")
    found = record(call, query, *small.options)
    assert (found["answer"], found["context"], found["cited"]) == ("", [], [])
    assert call("answer", query, "--beside", *small.options).exit_code == 0


def test_a_model_is_heard_in_a_terminal(
    call: Call, small: Small, server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rich.console import Console

    monkeypatch.setattr(
        answer_command, "console", lambda: Console(force_terminal=True, color_system=None, highlight=False)
    )
    server.script = ["She won [2], he lost [9]."]
    shown = call("answer", "lawyer", "--set", "generate.kind=llm", *MODEL, *small.options).stdout
    assert shown.startswith("She won [2], he lost.\n")
    assert server.requests[0]["stream"] is True
    assert "citations of no document were taken out: [9]" in shown


def test_an_answer_that_is_cut_off_is_shown_marked_and_ends_with_exit_code_7(
    call: Call, small: Small, server: LoopbackServer
) -> None:
    server.script = lambda request: completion("She won [2], then she", finish="length")
    arguments = ["answer", "lawyer", "--set", "generate.kind=llm", *MODEL, *small.options]
    shown = call(*arguments)
    assert shown.exit_code == 7
    assert "She won [2], then she [cut off here]" in shown.stdout
    assert "the answer is cut off" in " ".join(shown.stdout.split())
    told = call(*arguments, "--json")
    assert told.exit_code == 7
    assert (json.loads(told.stdout)["answer"], json.loads(told.stdout)["truncated"]) == ("She won [2], then she", True)
    both = call(*arguments, "--beside", "--json")
    assert both.exit_code == 7
    failed = call(*arguments, "--set", "generate.on_error=fail")
    assert (failed.exit_code, failed.stdout) == (5, "")
