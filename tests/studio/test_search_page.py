"""The search page in a real Chromium: lists, verdict, dial, filters, answers, and the token. Skipped without one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, chromium, needs_chromium
from studio_server import TOKEN, Studio, desk_of, running, without_groups, write_collection

from .conftest import suits

pytestmark = needs_chromium

OPEN = "document.querySelectorAll('#more > *').length > 3"
DONE = "document.getElementById('state')?.textContent.startsWith('Done')"
TOLD = "document.getElementById('state').textContent.startsWith('gender:')"
IDS = "[...document.querySelectorAll('#agent-list li')].map((one) => one.dataset.id)"
TITLES = "[...document.querySelectorAll('#agent-list .plain')].map((one) => one.innerText)"
STEPS = "document.querySelectorAll('#steps > li').length"
STARTED = "!document.getElementById('start').hidden"
FOCUSED = "document.activeElement.id || document.activeElement.className"
SEARCH = {"query": "lawyer", "settings": {"loop": "none"}, "trace": True}


@pytest.fixture
def page(browser: Browser, studio: Studio) -> Iterator[Browser]:
    """The search page; nothing may be complained of, and nothing asked for elsewhere."""
    browser.begin(studio.address)
    browser.wait(OPEN)
    with browser.quiet(studio.url):
        yield browser


def search(page: Browser, studio: Studio, state: str = "q=lawyer&loop=none") -> None:
    """By default one whose candidates do not depend on the order."""
    page.open(f"{studio.url}/?{state}")
    page.wait(DONE)


def shows(page: Browser, record: Any) -> None:
    """Wait for the list of a reply."""
    ids = [hit["id"] for hit in record["hits"]]
    page.wait(f"JSON.stringify({IDS}) === JSON.stringify({ids})")


def state(page: Browser) -> str:
    """What stands in the address."""
    return str(page.run("location.search"))


def until(page: Browser, place: str) -> None:
    """Press Tab until it is there."""
    while page.run(FOCUSED) != place:
        page.press("Tab")


def ordinal(rank: int) -> str:
    return {1: "1st", 2: "2nd", 3: "3rd"}.get(rank, f"{rank}th")


def test_a_search_from_the_start_page(page: Browser, studio: Studio) -> None:
    """The verdict, both lists, the steps, a document, and what the address opens again."""
    page.wait(STARTED)
    assert page.text("#start h2") == "small holds 24 documents"
    rows = page.run("[...document.querySelectorAll('#start .group')].map((one) => one.innerText.split(/\\s*\\n\\s*/))")
    assert rows == [["male", "67%"], ["female", "33%"], ["no label", "0%"]]
    page.run("document.getElementById('settings').open = true")
    suits(page)
    page.run("document.getElementById('settings').open = false")
    page.click(".example")
    page.wait(DONE)
    assert state(page) == "?topic=T1"
    page.run("history.back()")
    page.wait(STARTED)
    assert page.run("document.getElementById('lists').hidden")
    # The keyboard is enough: past the link to the results, and the five of the navigation.
    page.run("document.body.focus()")
    page.press(*["Tab"] * 7)
    assert page.run(FOCUSED) == "q"
    page.type("lawyer")
    page.press("Enter")
    page.wait(DONE)
    found = studio.post("/api/search", {"query": "lawyer", "trace": True})
    assert page.run(TITLES) == [hit["title"] for hit in found["hits"]]
    ranks = [(hit["engine_rank"], hit["rank"]) for hit in found["hits"]]
    assert page.run("[...document.querySelectorAll('#agent-list .move')].map((one) => one.innerText)") == [
        f"stays {ordinal(now)}" if was == now else f"from {ordinal(was)} to {ordinal(now)}" for was, now in ranks
    ]
    assert page.text("#agent-list .snippet") == found["hits"][0]["snippet"]
    assert page.run("document.querySelectorAll('#engine-list li').length") == 10
    assert page.run(STEPS) == len(found["steps"])
    assert f"{page.text('#verdict h3')}: {page.text('#verdict .said')}" == found["changes"][0]["text"]
    share = found["exposure"]["after"][0]["groups"][0]["share"]
    assert page.run("document.querySelector('#verdict svg').getAttribute('aria-label')") == (
        f"female: 0% by the engine, {round(100 * share)}% by the agent, target 50%"
    )
    width = float(page.run("document.querySelectorAll('#verdict rect')[2].getAttribute('width')"))
    assert width == pytest.approx(100 * share)  # the longest bar is the engine's, of the men: all of it
    left = next(hit for hit in found["engine_hits"] if hit["agent_rank"] is None)
    assert page.text("#pushed .why .plain") == left["title"]
    assert f"had 100% of the attention and has {round(100 - 100 * share)}%, target 50%." in page.text("#pushed .why p")
    assert state(page) == "?q=lawyer"
    # The verdict is on the first screen.
    shown = "[...document.querySelectorAll('#verdict .said, #verdict svg')]"
    for size in ((1280, 800), (390, 844)):
        page.size(*size)
        assert 0 < max(page.run(f"{shown}.map((one) => one.getBoundingClientRect().bottom)")) <= size[1]
    suits(page)
    # A document of the list, which Escape closes again.
    until(page, "plain")
    page.press("Enter")
    page.wait("document.getElementById('document').open && document.getElementById('document-text').textContent")
    assert page.run("document.activeElement.textContent") == "Close"
    page.press("Escape")
    page.wait("!document.getElementById('document').open")
    assert page.run(FOCUSED) == "plain"
    # Every view has an address; a setting that is changed is marked, and in it.
    search(page, studio, "q=lawyer&n=4&loop=fair-qr&doc=d02")
    page.wait("document.getElementById('document').open")
    assert page.text("#document-text").startswith("A lawyer and again a lawyer of court number 2.")
    page.click("#document button")
    page.wait("!location.search.includes('doc=')")
    assert state(page) == "?q=lawyer&n=4&loop=fair-qr"
    assert re.search("added:|dropped:", page.run("document.getElementById('steps').textContent"))
    page.give("#set-loop", "none", "change")
    assert page.run("document.getElementById('name-loop').className") == "set"
    page.click("#search")
    page.wait(f"location.search.includes('loop=none') && {DONE}")
    assert (len(page.run(TITLES)), page.run(STEPS)) == (4, 1)
    page.run("history.back()")
    page.wait(f"location.search.includes('loop=fair-qr') && {DONE} && {STEPS} > 1")


def test_the_dial_the_targets_and_the_filter(page: Browser, studio: Studio) -> None:
    """A move along the frontier asks the server nothing; other targets, lengths and filters do."""
    search(page, studio)
    before, frontier = page.run(IDS), studio.post("/api/search", SEARCH)["frontier"]
    served = frontier["served"]
    assert page.run("document.getElementById('set-list').value") == str(served)
    page.requested.clear()
    for number, one in enumerate(frontier["lists"]):
        page.give("#set-list", number)
        assert page.run(IDS) == one["ids"]
        assert page.text("#verdict .said") == one["changes"][0]["text"].removeprefix("gender: ")
        assert page.text("#list-now") == f"keeps {100 * one['kept']:.0f}%"
        if number != served:
            assert state(page) == f"?q=lawyer&loop=none&keep={one['keep']:g}"
        left = page.run("[...document.querySelectorAll('#engine-list .fell')].length")
        assert (left == 0) == (one["ids"] == frontier["lists"][0]["ids"])
    assert "fairest" in page.text("#next")
    page.give("#set-list", 0)
    now, then = ([one["exposure"][0]["groups"][0]["share"], one["kept"]] for one in frontier["lists"][:2])
    assert page.text("#next") == (
        f"One step fairer: female {then[0]:.0%} instead of {now[0]:.0%}, keeping {then[1]:.0%} instead of "
        f"{now[1]:.0%} of the relevance."
    )
    assert page.text("#pushed").startswith("Nothing")
    page.wait(TOLD)  # once the hand rests
    page.give("#set-list", served)
    assert state(page) == "?q=lawyer&loop=none"
    assert page.requested == []
    page.give("#set-list", len(frontier["lists"]) - 1)
    page.click("#undo")
    page.wait(f"JSON.stringify({IDS}) === JSON.stringify({before})")
    assert (state(page), page.run(FOCUSED)) == ("?q=lawyer&loop=none", "set-list")
    for kind in ("keyDown", "keyUp"):
        page.do("Input.dispatchKeyEvent", type=kind, key="ArrowRight", code="ArrowRight", windowsVirtualKeyCode=39)
    page.wait(f"location.search.includes('keep=0.') && {TOLD}")
    assert page.run(FOCUSED) == "set-list"
    # Targets of one's own are used once they add up.
    search(page, studio)
    page.run("document.getElementById('own-shares').open = true")
    fields = "document.querySelectorAll('#set-shares input')"
    for place, value, said in ((0, 80, "add up to 130%"), (1, 20, "")):
        page.run(f"{fields}[{place}].value = {value}; {fields}[{place}].dispatchEvent(new Event('input'))")
        assert said in page.text("#set-shares [role=status]")
    shares = {"gender": {"female": 0.8, "male": 0.2}}
    shows(page, studio.post("/api/reorder", SEARCH | {"shares": shares}))
    page.wait("document.querySelector('#verdict .due').innerText === 'target 80%'")
    assert page.run("JSON.parse(new URLSearchParams(location.search).get('shares'))") == shares
    # An address opens the same list, whatever its dial is; where one has walked to goes with the list's length.
    for name, value in (("fairness", 6), ("keep", 0.8), ("gap", 0.02)):
        search(page, studio, f"q=lawyer&loop=none&{name}={value}&n=5&unknown=ignore")
        expected = studio.post("/api/reorder", SEARCH | {name: value, "n": 5, "unknown": "ignore"})
        shows(page, expected)
        values = "['set-list', 'set-n', 'set-unknown'].map((id) => document.getElementById(id).value)"
        assert page.run(values) == [str(expected["frontier"]["served"]), "5", "ignore"]
    page.give("#set-list", 0)
    page.give("#set-n", 4)
    shows(page, studio.post("/api/reorder", SEARCH | {"keep": 1, "n": 4, "unknown": "ignore"}))
    assert state(page) == "?q=lawyer&loop=none&n=4&unknown=ignore&keep=1"
    search(page, studio, "q=lawyer&loop=none&rerank=none")
    assert page.run("document.getElementById('priced').hidden")
    # A filter is chosen from what the collection has.
    column, value = ".where select[aria-label=column]", ".where select[aria-label=value]"
    page.run("document.getElementById('settings').open = true")
    page.run("document.querySelector('.where select').focus()")
    page.wait(f"document.querySelectorAll('{column} option').length === 2")
    page.give(column, "gender", "change")
    page.wait(f"document.querySelectorAll('{value} option').length === 3")
    for label in ("female", "male"):
        page.give(value, label, "change")
    assert page.run("document.getElementById('set-where').value") == "gender=female|male"
    search(page, studio, "q=lawyer&loop=none&where=gender%3Dfemale")
    assert page.run("document.getElementById('set-where').value") == "gender=female"
    page.give("#set-list", 0)
    page.wait(TOLD)
    assert page.run("[...document.querySelectorAll('#agent-list .g')].every((one) => one.innerText === 'female')")
    assert "where=gender%3Dfemale" in state(page)


def test_an_answer_with_its_sources_and_the_dial_beside_it(page: Browser, studio: Studio) -> None:
    search(page, studio, "q=lawyer&n=6")
    page.run("document.getElementById('q').focus()")
    until(page, "answer")
    page.press("Enter")
    page.wait(f"location.search.includes('do=answer') && {DONE}")
    found = studio.post("/api/answer", {"query": "lawyer", "n": 6, "trace": True})
    answered = "document.getElementById('answer-text').textContent"
    assert page.run(answered) == found["answer"]
    links = page.run("[...document.querySelectorAll('#answer-text a')].map((link) => link.hash)")
    assert links == [f"#source-{number}" for number in found["cited"]]
    cells = page.run("[...document.querySelectorAll('#carried tr')].map((row) => row.innerText.split('\\t'))")
    assert cells[0] == ["group", "ranking", "context", "cited", "target"]
    groups = [group for one in found["citations"]["exposure"]["cited"] for group in one["groups"]]
    assert f"{100 * groups[0]['share']:.0f}%" in [row[3] for row in cells if len(row) > 3]
    assert f"{found['citations']['gap']['cited']:.4f} (cited)" in page.text("#carried")
    places = "[...document.querySelectorAll('#found > section:not([hidden])')].map((one) => one.id)"
    assert page.run(places) == ["answered", "judged", "noted", "order", "lists", "story"]
    stale = "document.getElementById('stale').hidden"
    assert page.run(stale)
    page.give("#set-list", 0)
    assert not page.run(stale)
    page.click("#again")
    page.wait(f"location.search.includes('keep=') && {DONE}")
    assert page.run(stale)
    keep = float(page.run("new URLSearchParams(location.search).get('keep')"))
    assert page.run(answered) == studio.post("/api/answer", {"query": "lawyer", "n": 6, "keep": keep})["answer"]
    # A hostile title is text.
    search(page, studio, "q=lawyer&doc=d01&do=answer&n=24")
    page.wait("document.getElementById('document').open")
    shown = page.text("#document-title")
    assert shown.startswith("<img src=x onerror=")
    assert not {"\x1b", "\u202e"} & set(shown)
    assert any(title.startswith("<img src=x onerror=") for title in page.run(TITLES))
    assert page.run("document.querySelectorAll('main img, dialog img, main script, dialog script').length") == 0
    assert page.run("document.title") == "lawyer: fairagent studio"
    suits(page)


@pytest.mark.parametrize(
    ("asked", "named", "hits"), [("do=answer&generate=llm", "model", 0), ("loop=none&fairness=much", "fairness", 10)]
)
def test_what_is_wrong_is_shown_where_people_look(
    browser: Browser, studio: Studio, asked: str, named: str, hits: int
) -> None:
    browser.begin(studio.address)
    browser.open(f"{studio.url}/?q=lawyer&{asked}")
    browser.wait(f"document.querySelector('#error .notice') !== null && ({DONE} || {not hits:d})")
    assert named in browser.text("#error")
    assert browser.run("document.getElementById('error').getAttribute('role')") == "alert"
    assert browser.run("document.getElementById('lists').hidden") == (not hits)
    assert len(browser.run(IDS)) == hits


def test_a_collection_without_groups_has_lists_and_no_bars(browser: Browser, tmp_path: Path) -> None:
    folder = without_groups(write_collection(tmp_path / "plain"))
    with running(desk_of(folder, target=None, profile="engine")) as studio, browser.quiet(studio.url):
        browser.begin(studio.address)
        browser.wait(STARTED)
        assert "no groups" in browser.text("#start .notice")
        browser.click(".example")
        browser.wait(DONE)
        assert browser.run(IDS)
        assert browser.run("document.getElementById('judged').hidden")
        search(browser, studio, "q=lawyer&n=3")
        assert len(browser.run(IDS)) == 3


# The token: from the address into the tab, from tab to tab, and nowhere else.

ASKED_FOR = "document.getElementById('lacking') !== null"
KEPT = "JSON.parse(sessionStorage.getItem('fairagent tokens'))"


@pytest.fixture
def tab(tmp_path: Path) -> Iterator[Browser]:
    """The only tab of a new browser."""
    with chromium(tmp_path) as browser:
        yield browser


def test_a_tab_keeps_it_and_gives_it_to_others(tab: Browser, studio: Studio) -> None:
    """A tab alone asks for it; it is kept through pages, reloads and back, and nowhere else than in the tab."""
    tab.open(f"{studio.url}/?q=lawyer")
    for text, then in (
        ("wrong", f"{ASKED_FOR} && document.getElementById('lacking')?.value === ''"),
        (f" {studio.address} ", DONE),
    ):
        tab.wait(ASKED_FOR)
        assert tab.run(IDS) == []
        tab.run("document.getElementById('lacking').focus()")
        tab.type(text)
        tab.press("Enter")
        tab.wait(then)
    assert tab.run(KEPT) == [TOKEN]
    tab.said.clear()  # the refusals
    for path in ("/prompts", "/runs", "/docs"):
        tab.click(f'nav a[href="{path}"]')
        tab.wait(f"location.pathname === '{path}' && document.readyState === 'complete'")
        assert tab.run("location.href") == f"{studio.url}{path}"
    tab.do("Page.reload")
    for _ in range(3):
        tab.run("history.back()")
    tab.wait(DONE)
    assert tab.run("document.cookie + localStorage.length") == "0"
    other = Browser(tab._socket)
    other.open(f"{studio.url}/?doc=d02")
    other.wait("document.getElementById('document').open")
    assert other.text("#document-title") == "Page 2"
    assert tab.said == other.said == []


def test_of_several_tokens_the_one_that_holds_is_kept(tab: Browser, studio: Studio) -> None:
    """One that somebody else has put into a link does not cost the tab its own; what is no token is dropped."""
    for n, given in enumerate(("%22%3E%3Cimg src=x onerror=alert(1)%3E", "x" * 10_000), start=1):
        tab.open(f"{studio.url}/?n={n}#token={given}")
        tab.wait(ASKED_FOR)
        assert (tab.run("location.hash"), tab.run(f"{KEPT} ?? []")) == ("", [])
        assert tab.run("document.querySelectorAll('main img').length") == 0
    # What another program of this origin had put there, or a server that has ended, is none either.
    for stored, state in (("{]", "n=4"), ('["old"]', "n=5")):
        tab.run(f"sessionStorage.setItem('fairagent tokens', '{stored}')")
        tab.open(f"{studio.url}/?{state}#token={TOKEN}")
        tab.wait(OPEN)
        assert tab.run(KEPT) == [TOKEN]
    tab.open(f"{studio.url}/?n=6#token=somebody-elses")
    tab.wait(OPEN)
    assert tab.run(KEPT) == [TOKEN]
    # Nor where the page is there already, and nothing but what follows # is new.
    tab.run("location.hash = '#token=another'")
    tab.wait(f"location.hash === '' && {OPEN} && {KEPT}.length === 1")
    assert tab.run(KEPT) == [TOKEN]
