from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from browser import Browser
    from studio_server import Studio

# What needs the extra `studio` is imported where it is used: tests without it are skipped, and not this whole folder.


def suits(page: Browser) -> None:
    """On every screen nothing is wider than it, and axe-core finds nothing serious, in light and dark."""
    from axe import AXE, barriers

    for width in (1280, 768, 390, 360):
        page.size(width)
        assert page.run("document.documentElement.scrollWidth") == width
        assert page.beyond(width, ".sideways, .scroll, .editor, pre, nav, svg, .skip") == []
        for scheme in ("dark", "light") if width in (1280, 390) and (AXE or "BROWSER_REQUIRED" in os.environ) else ():
            page.prefer(scheme)
            assert barriers(page) == []
    page.size(1280)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The collection and its index; not to be changed."""
    from studio_server import write_collection

    return write_collection(tmp_path_factory.mktemp("studio"))


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where templates of one's own are saved; it is not there yet."""
    return tmp_path_factory.mktemp("own") / "mine"


@pytest.fixture(scope="module")
def studio(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A server with a token, whose cache is its own."""
    from studio_server import desk_of, running

    with pytest.MonkeyPatch.context() as patch:
        for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
            patch.delenv(name, raising=False)
        with running(desk_of(folder, cache=str(tmp_path_factory.mktemp("cache")))) as studio:
            yield studio


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    from browser import chromium

    with chromium(tmp_path_factory.mktemp("profile")) as browser:
        yield browser
