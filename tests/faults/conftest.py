"""The tiny collection with its index, and a search in it through the front door."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairagent import Query, SearchResult, build_index, load_collection, open_agent

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
