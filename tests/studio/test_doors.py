"""One model at every door: a query with the same options has the same list in Python, command line, API and MCP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from mcp import Client
from studio_server import Studio
from typer.testing import CliRunner

from fairagent import open_agent
from fairagent.cli import app
from fairagent.errors import FairAgentError
from fairagent.settings import OptionValues, SearchOptions
from fairagent.studio.desk import ListRequest
from fairagent.studio.lanes import Lanes
from fairagent.studio.tools import mcp_server

T = TypeVar("T")
OPTIONS: list[dict[str, Any]] = [
    {},
    {"n": 4, "fairness": 0},
    {"n": 6, "fairness": 8.0, "unknown": "ignore"},
    {"keep": 0.8},
    {"n": 8, "gap": 0.02},
    {"shares": {"gender": {"female": 0.9, "male": 0.1}}},
    {"n": 5, "where": {"gender": ["female"]}},
    {"where": {"gender": ["female", "male"]}, "unknown": 0.2},
]


def of_mcp(studio: Studio, ask: Callable[[Client], Awaitable[T]]) -> T:
    """What a client of the tools' server gets."""

    async def asked() -> T:
        lanes = Lanes()
        try:
            async with Client(mcp_server(studio.desk, lanes)) as client:
                return await ask(client)
        finally:
            lanes.stop()

    return asyncio.run(asyncio.wait_for(asked(), 60))


def command(folder: Path, options: dict[str, Any], settings: dict[str, Any]) -> Any:
    given = ["-c", str(folder / "collection.yaml"), "--index", str(folder / "index"), "--json", "lawyer"]
    for name, value in settings.items():
        given += ["--set", f"{name}={value}"]
    for name, value in options.items():
        if name == "where":
            ((column, those),) = value.items()
            given += [part for one in those for part in ("--where", f"{column}={one}")]
        else:
            given += [f"--{name}", json.dumps(value) if isinstance(value, dict) else str(value)]
    return CliRunner().invoke(app, ["search", *given])


@pytest.mark.parametrize("options", OPTIONS, ids=[",".join(one) or "none" for one in OPTIONS])
def test_the_same_list_through_every_door(studio: Studio, folder: Path, options: dict[str, Any]) -> None:
    agent = open_agent(**studio.desk.settings.given)
    expected = list(agent.search("lawyer", **options).ranking.ids)
    assert expected

    asked = {"query": "lawyer", **options}
    assert [hit["id"] for hit in studio.post("/api/search", asked)["hits"]] == expected

    told = of_mcp(studio, lambda client: client.call_tool("search", asked))
    assert not told.is_error, told
    assert [hit["id"] for hit in json.loads(told.content[0].text)["hits"]] == expected

    there = {name: getattr(studio.desk.settings, name) for name in ("engine", "n", "target", "depth")}
    ended = command(folder, options, {name: value for name, value in there.items() if value is not None})
    assert ended.exit_code == 0, ended.output
    assert [hit["id"] for hit in json.loads(ended.stdout)["hits"]] == expected


def test_every_schema_has_the_options_of_the_model(studio: Studio) -> None:
    model = SearchOptions.model_json_schema()["properties"]
    assert set(OptionValues.__annotations__) == set(model)
    api = ListRequest.model_json_schema()
    documented = studio.get("/api/openapi.json")["components"]["schemas"]["TracedRequest"]["properties"]
    given = {one.name: one.input_schema for one in of_mcp(studio, lambda client: client.list_tools()).tools}
    for name, form in model.items():
        assert api["properties"][name]["description"] == documented[name]["description"] == form["description"]
        for tool in ("search", "answer"):
            assert given[tool]["properties"][name] == api["properties"][name]
    assert all(one["additionalProperties"] is False for one in (api, *given.values()))


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"fairnes": 1}, "fairnes"),
        ({"n": 0}, "n"),
        ({"keep": 2}, "keep"),
        ({"keep": 0.9, "fairness": 1}, "give one of them"),
        ({"where": {"colour": ["red"]}}, "colour"),
        ({"shares": {"gender": {"x": 1}}}, "gender"),
    ],
)
def test_what_cannot_be_is_an_error_that_names_it_at_every_door(
    studio: Studio, folder: Path, wrong: dict[str, Any], named: str
) -> None:
    asked = {"query": "lawyer", **wrong}
    assert named in studio.post("/api/search", asked, 400)["error"]
    told = of_mcp(studio, lambda client: client.call_tool("search", asked))
    assert told.is_error
    assert named in told.content[0].text
    with pytest.raises(FairAgentError, match=named):
        open_agent(**studio.desk.settings.given).search("lawyer", **wrong)
    if "fairnes" not in wrong:
        ended = command(folder, wrong, {"target": "population"})
        assert ended.exit_code != 0
        assert named in ended.output
