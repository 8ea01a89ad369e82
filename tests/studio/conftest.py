from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser, chromium
from studio_server import Studio, desk_of, running, write_collection


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The collection and its index; not to be changed."""
    return write_collection(tmp_path_factory.mktemp("studio"))


@pytest.fixture(scope="module")
def studio(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A server with a token, whose cache is its own."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
            patch.delenv(name, raising=False)
        with running(desk_of(folder, cache=str(tmp_path_factory.mktemp("cache")))) as studio:
            yield studio


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("profile")) as browser:
        yield browser
