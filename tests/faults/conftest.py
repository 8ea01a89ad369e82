"""The tiny collection with its index, a search in it through the front door, and a model's server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fairagent import Query, SearchResult, build_index, load_collection, open_agent
from fairagent.guests.testing import LoopbackServer

from .life import Moody
from .tiny import write


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The collection's settings file and its index."""
    folder = tmp_path_factory.mktemp("tiny")
    file = write(folder / "files")
    build_index(load_collection(file), folder / "index")
    return file, folder / "index"


Search = Callable[..., SearchResult]


@pytest.fixture
def search(tiny: tuple[Path, Path]) -> Search:
    def search(query: str | Query = "law", **settings: Any) -> SearchResult:
        return open_agent(*tiny, **({"n": 3} | settings)).search(query)

    return search


@pytest.fixture
def server(no_variables: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    """The server of the environment; unless a test gives it a script it never says the same twice."""
    with LoopbackServer(Moody()) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server
