"""axe-core finds nothing serious on the page of a run, in light and dark, on a screen and on a phone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from axe import barriers, needs_axe
from browser import Browser, chromium, needs_chromium

from fairagent.report.page import page

from .runs import made_run

pytestmark = [needs_chromium, needs_axe, pytest.mark.slow]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    folder = tmp_path_factory.mktemp("page")
    (folder / "page.html").write_text(page(made_run()), encoding="utf-8")
    with chromium(folder / "profile") as browser:
        browser.open((folder / "page.html").as_uri())
        browser.wait("document.querySelector('.topic') !== null")
        yield browser


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious(browser: Browser, scheme: str, width: int) -> None:
    browser.size(width)
    browser.prefer(scheme)
    browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    browser.wait("document.querySelector('.topic .compare') !== null")
    assert barriers(browser) == []
