"""axe-core finds nothing serious on any page of the studio, in light and dark, on a screen and on a phone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe import barriers, needs_axe
from browser import Browser, chromium, needs_chromium
from studio_server import TOKEN, Studio, asking, running

from fairagent.guests.testing import LoopbackServer

from .asked_runs import make_runs

pytestmark = [needs_chromium, needs_axe, pytest.mark.slow]

SEARCHED = "document.getElementById('state')?.textContent.startsWith('Done')"
TRIED = "/^\\d+ of/.test(document.getElementById('trying')?.textContent)"
PAGES = {
    "/": ("document.querySelectorAll('#more > *').length > 3", "document.getElementById('settings').open = true"),
    "/?q=lawyer&loop=fair-qr": (SEARCHED, "0"),
    "/?q=lawyer&do=answer&doc=d02": (f"{SEARCHED} && document.getElementById('document').open", "0"),
    "/prompts?id=answer": ("document.querySelector('#messages pre') !== null", "0"),
    "/prompts?id=refine_query&q=lawyer": (
        "document.getElementById('filled')?.textContent.includes('aims at')",
        "document.getElementById('try-one').click()",
    ),
    "/runs": ("document.querySelectorAll('#runs tbody tr').length === 3", "0"),
    "/runs/one": ("document.querySelector('#report iframe, #error .notice') !== null", "0"),
}
"""Each page: what holds when it is there, and what is opened on it then."""
AFTER = {"/prompts?id=refine_query&q=lawyer": TRIED}


@pytest.fixture(scope="module")
def lit(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A studio with a model, two runs, and one that cannot be read."""
    runs = make_runs(folder, tmp_path_factory.mktemp("asked"), one=0.1, two=0.9)
    (runs / "damaged").mkdir()
    (runs / "damaged" / "run.json").write_text("{", encoding="utf-8")
    with (
        LoopbackServer([json.dumps({"keywords": ["judges", "see x.org"]})]) as model,
        running(asking(folder, model.url), runs=runs, prompts=runs.parent / "mine") as studio,
    ):
        yield studio


@pytest.fixture(scope="module")
def browser(lit: Studio, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("profile")) as browser:
        browser.open(f"{lit.url}/#token={TOKEN}")
        browser.wait("document.querySelector('h1') !== null")
        yield browser


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_nothing_serious(browser: Browser, lit: Studio, path: str, scheme: str, width: int) -> None:
    there, opening = PAGES[path]
    browser.size(width)
    browser.prefer(scheme)
    browser.open(lit.url + path)
    browser.wait(there)
    browser.run(opening)
    browser.wait(AFTER.get(path, "true"))
    browser.run("document.querySelectorAll('#tried details').forEach((one) => { one.open = true; })")
    assert barriers(browser) == []
