"""The token in a browser: from the address into the tab, from tab to tab, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser, chromium, needs_chromium
from studio_server import TOKEN, Studio

pytestmark = needs_chromium

OPEN = "document.querySelectorAll('#more > *').length > 3"
ASKED_FOR = "document.getElementById('lacking') !== null"
KEPT = "JSON.parse(sessionStorage.getItem('fairagent tokens'))"


@pytest.fixture
def tab(tmp_path: Path) -> Iterator[Browser]:
    """The only tab of a new browser."""
    with chromium(tmp_path) as browser:
        yield browser


def other_tab(tab: Browser) -> Browser:
    return Browser(tab._socket)


def paste(tab: Browser, text: str) -> None:
    tab.wait(ASKED_FOR)
    tab.run("document.getElementById('lacking').focus()")
    tab.type(text)
    tab.press("Enter")


def test_a_tab_keeps_it_through_pages_reloads_and_back(tab: Browser, studio: Studio) -> None:
    tab.open(studio.address)
    tab.wait(OPEN)
    assert tab.run(KEPT) == [TOKEN]
    tab.open(f"{studio.url}/?q=lawyer")
    tab.wait("document.getElementById('state')?.textContent.startsWith('Done')")
    for path in ("/prompts", "/runs", "/docs"):
        tab.run(f"document.querySelector('nav a[href=\"{path}\"]').click()")
        tab.wait(f"location.pathname === '{path}' && document.readyState === 'complete'")
        assert tab.run("location.href") == f"{studio.url}{path}"
    tab.do("Page.reload")
    for _ in range(3):
        tab.run("history.back()")
    tab.wait("document.getElementById('state')?.textContent.startsWith('Done')")
    assert tab.run("document.cookie + localStorage.length") == "0"
    assert tab.said == []


def test_another_tab_gets_it_from_the_first_and_a_tab_alone_asks_for_it(tab: Browser, studio: Studio) -> None:
    tab.open(f"{studio.url}/?q=lawyer")
    tab.wait(ASKED_FOR)
    assert tab.run("document.querySelectorAll('#agent-list tbody tr').length") == 0
    paste(tab, "wrong")
    tab.wait(f"{ASKED_FOR} && document.getElementById('lacking')?.value === ''")
    paste(tab, f" {studio.address} ")
    tab.wait("document.getElementById('state')?.textContent.startsWith('Done')")
    other = other_tab(tab)
    other.open(f"{studio.url}/?doc=d02")
    other.wait("document.getElementById('document').open")
    assert other.text("#document-title") == "Page 2"
    assert other.said == []


def test_of_two_tokens_the_one_that_holds_is_kept(tab: Browser, studio: Studio) -> None:
    """One that somebody else has put into a link does not cost the tab its own."""
    tab.open(studio.address)
    tab.wait(OPEN)
    tab.open(f"{studio.url}/?n=5#token=somebody-elses")
    tab.wait(OPEN)
    assert tab.run(KEPT) == [TOKEN]
    # Nor where the page is there already, and nothing but what follows # is new.
    tab.run("location.hash = '#token=another'")
    tab.wait(f"location.hash === '' && {OPEN} && {KEPT}.length === 1")
    assert tab.run(KEPT) == [TOKEN]
    # And one of a server that has ended gives way to that of the next.
    tab.run("sessionStorage.setItem('fairagent tokens', '[\"old\"]')")
    tab.open(f"{studio.url}/?n=6#token={TOKEN}")
    tab.wait(OPEN)
    assert tab.run(KEPT) == [TOKEN]


@pytest.mark.parametrize("given", ["%22%3E%3Cimg src=x onerror=alert(1)%3E", "x" * 10_000])
def test_what_is_no_token_is_dropped(tab: Browser, studio: Studio, given: str) -> None:
    tab.open(f"{studio.url}/#token={given}")
    tab.wait(ASKED_FOR)
    assert tab.run("location.hash") == ""
    assert tab.run(f"{KEPT} ?? []") == []
    assert tab.run("document.querySelectorAll('main img').length") == 0
    # What another program of this origin had put there is no token either.
    tab.run("sessionStorage.setItem('fairagent tokens', '{]')")
    tab.open(studio.address)
    tab.wait(OPEN)
