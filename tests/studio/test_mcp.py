"""`fairagent mcp` as another agent uses it: over standard input and output, with mcp's own client."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, stdio_client
from running import PROGRAM, environment
from studio_server import desk_of

from fairagent.studio.desk import SteeredRequest
from fairagent.studio.tools import search_record

SHE = {"name": "search_for_group", "arguments": {"number": 1, "keywords": ["she"]}}
STOP = {"name": "stop", "arguments": {"reason": "enough"}}


@pytest.fixture(scope="module")
def replies(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a server says to a few calls."""
    options = ["-c", str(folder / "collection.yaml"), "--index", str(folder / "index")]
    settings = [part for one in ("engine=bm25", "target=population", "n=10") for part in ("--set", one)]
    server = StdioServerParameters(
        command=sys.executable,
        args=["-c", PROGRAM, "mcp", *options, *settings],
        env=environment(),
        cwd=str(tmp_path_factory.mktemp("mcp")),
    )
    calls = {
        "search": ("search", {"query": "lawyer"}),
        "answer": ("answer", {"query": "lawyer"}),
        "exposure": ("exposure", {"ids": ["d20", "d00"], "query": "lawyer"}),
        "steer": ("steer", {"query": "lawyer", "calls": [{**SHE, "name": "serch"}, SHE, STOP, SHE]}),
        "fair-qr": ("steer", {"query": "lawyer", "settings": {"loop": "fair-qr"}}),
        "calls": ("steer", {"query": "lawyer", "calls": [STOP] * 21}),
        "none": ("search", {"query": " "}),
        "long": ("search", {"query": "a" * 1_000_000}),
        "file": ("search", {"query": "lawyer", "settings": {"prompts": "/etc"}}),
        "key": ("search", {"query": "lawyer", "settings": {"nn": 3}}),
        "type": ("search", {"query": 5}),
        "tool": ("serch", {}),
        "empty": ("exposure", {"ids": []}),
        "ids": ("answer", {"query": "lawyer", "ids": ["d02"]}),
        "again": ("search", {"query": "lawyer", "settings": {"n": 3}}),
    }

    async def ask() -> dict[str, Any]:
        async with Client(stdio_client(server)) as client:
            tools = (await client.list_tools()).tools
            found = {name: await client.call_tool(tool, given) for name, (tool, given) in calls.items()}
        return {"tools": {tool.name: tool for tool in tools}, **found}

    return asyncio.run(asyncio.wait_for(ask(), 200))


def told(reply: Any) -> Any:
    assert not reply.is_error, reply
    return json.loads(reply.content[0].text)


def test_there_are_tools_that_choose_no_files(replies: dict[str, Any]) -> None:
    assert set(replies["tools"]) == {"search", "steer", "answer", "exposure"}
    calls = replies["tools"]["steer"].input_schema["properties"]["calls"]["items"]["anyOf"]
    names = [one["properties"]["name"]["enum"][0] for one in calls]
    assert names == ["search_for_group", "judge", "filter", "stop"]
    assert set(calls[0]["properties"]["arguments"]["properties"]) == {"number", "keywords"}
    schema = json.dumps(replies["tools"]["search"].input_schema)
    assert "fair-qr" in schema
    assert "collection.yaml" not in schema
    assert "base_url" not in schema
    assert all(tool.input_schema["additionalProperties"] is False for tool in replies["tools"].values())


def test_each_tool_does_its_work(replies: dict[str, Any]) -> None:
    """That the ranking is the agent's is in test_doors.py."""
    found = told(replies["search"])
    assert found["gap"]["after"] < found["gap"]["before"]
    assert found["hits"][0]["text"].startswith("A lawyer")
    assert len(told(replies["again"])["hits"]) == 3
    *_, wrong, she, stop = told(replies["steer"])["steps"]
    assert wrong["reason"].startswith("no tool 'serch'")
    assert she["why"] == 'called with {"number": 1, "keywords": ["she"]}'
    assert (stop["source"], told(replies["steer"])["stopped"]) == ("stop", "stopped: enough")
    answer = told(replies["answer"])
    assert "[1]" in answer["answer"]
    assert (answer["context"][0]["number"], bool(answer["cited"])) == (1, True)
    (gender,) = told(replies["exposure"])["exposure"]
    assert [one["share"] for one in gender["groups"]] == [0.5, 0.5]


def test_what_it_calls_brings_in_what_the_loop_does_not(folder: Path) -> None:
    with closing(desk_of(folder, cache="", loop={"actions": "neighbors"}, depth=8, n=4)) as desk:
        begun, steered = (search_record(desk, SteeredRequest(query="lawyer", calls=calls)) for calls in ([], [SHE]))
    (group,) = begun["groups"]
    assert (group["number"], group["group"], group["candidates"]) == (1, "female", 0)
    she = steered["steps"][-1]
    assert (she["source"], she["accepted"], she["entered"]) == ("search_for_group", True, 6)
    assert she["objective"]["after"] > she["objective"]["before"]
    assert steered["gap"]["after"] < begun["gap"]["after"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("none", "the query is empty"),
        ("long", "query: expected a text of at most 2000"),
        ("file", "settings.prompts: unknown key; there are: depth"),
        ("key", "settings.nn: unknown key; did you mean 'n'?"),
        ("empty", "ids: expected a list of 1 or more entries"),
        ("ids", "ids: unknown key; there are: "),
        ("type", "query: expected text (got 5)"),
        ("tool", "no tool 'serch'; did you mean 'search'? There are: search, steer, answer, exposure"),
        ("calls", "calls: expected a list of at most 20 entries"),
        ("fair-qr", "calls are carried out by loop: widen"),
    ],
)
def test_what_is_wrong_is_said_and_the_server_goes_on(replies: dict[str, Any], name: str, said: str) -> None:
    assert replies[name].is_error
    assert replies[name].content[0].text.startswith(said)
    assert len(replies[name].content[0].text) < 2000
