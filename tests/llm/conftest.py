"""A scripted server, a model that calls it, and no way around the loopback interface."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairagent.guests.testing import LoopbackServer as Server
from fairagent.llm.budget import Budget
from fairagent.llm.cache import ReplyCache
from fairagent.llm.openai import OpenAIModel
from fairagent.settings import ModelSettings, Price

CANARY = "sk-canary-0123456789abcdef"
"""A key that must not turn up anywhere."""

VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "OPENAI_API_KEY", "OPENAI_BASE_URL")

MakeModel = Callable[..., OpenAIModel]


@pytest.fixture(autouse=True)
def _own_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[ReplyCache]:
    cache = ReplyCache(tmp_path / "cache")
    yield cache
    cache.close()


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def slept() -> list[float]:
    """The seconds that a model of `make_model` would have waited."""
    return []


@pytest.fixture
def make_model(server: Server, slept: list[float]) -> Iterator[MakeModel]:
    made = []

    def make(budget: Budget | None = None, price: Price | None = None, **settings: object) -> OpenAIModel:
        values = ModelSettings(**{"name": "tiny", "base_url": server.url, **settings})
        key = {"OPENAI_API_KEY": CANARY}
        made.append(OpenAIModel(values, key, budget, price, sleep=slept.append))
        return made[-1]

    yield make
    for model in made:
        model.close()
