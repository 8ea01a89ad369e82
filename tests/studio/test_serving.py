"""The commands `serve` and `mcp`, and what a desk does before anybody asks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from studio_server import Studio, desk_of, running
from typer.testing import CliRunner

from fairagent.cli import app
from fairagent.guests.testing import LoopbackServer
from fairagent.studio.desk import Choices, ListRequest


@pytest.mark.parametrize(("command", "package"), [("serve", "uvicorn"), ("mcp", "mcp")])
def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch, command: str, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    result = CliRunner().invoke(app, [command])
    assert result.exit_code == 3
    assert f"needs the package {package}, which is not installed: pip install 'fairagent[studio]'" in result.stderr


def test_a_port_in_use_is_said_before_the_collection_is_opened(studio: Studio) -> None:
    port = studio.url.rpartition(":")[2]
    result = CliRunner().invoke(app, ["serve", "--port", port, "--collection", "nowhere.yaml"])
    assert result.exit_code == 2
    assert f"port {port} of this machine is in use" in result.stderr


def test_warming_asks_no_model(folder: Path, no_variables: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-real-key")
    with LoopbackServer(["yes"]) as model:
        desk = desk_of(folder, cache="", model={"name": "tiny", "base_url": model.url, "attempts": 1})
        desk.warm()
        assert desk.settings.profile == "agent"
        assert desk.asks_model(Choices(), "search")
        assert not desk.asks_model(Choices(profile="offline"), "answer")
        assert not desk.asks_model(Choices(), "exposure")
        assert model.requests == []
        desk.close()


def test_one_budget_for_all_requests(folder: Path, no_variables: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-real-key")
    with LoopbackServer(["A lawyer pleaded [1]."]) as model:
        named = {"name": "tiny", "base_url": model.url, "attempts": 1}
        more: dict[str, Any] = {"profile": "offline", "generate": {"kind": "llm"}, "budget": {"calls": 1}}
        with running(desk_of(folder, cache="", model=named, **more)) as studio, studio.client() as client:
            first = client.post("/api/answer", json={"query": "lawyer"})
            second = client.post("/api/answer", json={"query": "lawyer", "settings": {"n": 5}})
            third = client.post("/api/search", json={"query": "lawyer"})
    assert first.json()["answer"] == "A lawyer pleaded [1]."
    assert second.status_code == 429
    assert "budget of 1 calls" in second.json()["error"]
    assert third.status_code == 200
    assert len(model.requests) == 1


def test_drawn_rankings_are_numbered_from_the_first_who_asks(folder: Path) -> None:
    desk = desk_of(folder, cache="", sampling={"alpha": 1.0})
    desk.warm()
    draws = [desk.search(ListRequest(topic="T1"))["draw"]["request"] for _ in range(2)]
    desk.close()
    assert draws == [0, 1]
