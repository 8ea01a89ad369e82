"""The search page in a real Chromium. Skipped where there is none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from browser import Browser, needs_chromium
from studio_server import Studio

pytestmark = needs_chromium

DONE = "document.getElementById('state').textContent.startsWith('Done')"
SAID = "document.querySelector('#error .notice') !== null"
IDS = "[...document.querySelectorAll('#agent-list .plain')].map((one) => one.innerText)"
MOVES = "[...document.querySelectorAll('#agent-list .move')].map((one) => one.innerText)"


def ordinal(rank: int) -> str:
    return {1: "1st", 2: "2nd", 3: "3rd"}.get(rank, f"{rank}th")


@pytest.fixture
def page(browser: Browser, studio: Studio) -> Iterator[Browser]:
    """The search page; nothing may be complained of, and nothing asked for elsewhere."""
    browser.begin(studio.address)
    browser.wait("document.querySelectorAll('#more > *').length > 3")
    with browser.quiet(studio.url):
        yield browser


def search(page: Browser, studio: Studio, state: str) -> None:
    page.open(f"{studio.url}/?{state}")
    page.wait(DONE)


def test_a_search_shows_the_verdict_both_lists_and_the_steps(page: Browser, studio: Studio) -> None:
    page.run("document.getElementById('q').focus()")
    page.type("lawyer")
    page.run("document.getElementById('search').click()")
    page.wait(DONE)
    with studio.client() as client:
        found = client.post("/api/search", json={"query": "lawyer", "trace": True}).json()
    assert page.run(IDS) == [hit["title"] for hit in found["hits"]]
    ranks = [(hit["engine_rank"], hit["rank"]) for hit in found["hits"]]
    assert page.run(MOVES) == [
        f"stays {ordinal(now)}" if was == now else f"from {ordinal(was)} to {ordinal(now)}" for was, now in ranks
    ]
    assert any(was > now for was, now in ranks)
    assert page.text("#agent-list .snippet") == found["hits"][0]["snippet"]
    assert page.run("document.querySelectorAll('#engine-list li').length") == 10
    assert page.run("document.querySelectorAll('#steps > li').length") == len(found["steps"])
    (change,) = found["changes"]
    assert f"{page.text('#verdict h3')}: {page.text('#verdict .said')}" == change["text"]
    label = page.run("document.querySelector('#verdict svg').getAttribute('aria-label')")
    share = found["exposure"]["after"][0]["groups"][0]["share"]
    assert label == f"female: 0% by the engine, {round(100 * share)}% by the agent, target 50%"
    width = float(page.run("document.querySelectorAll('#verdict rect')[2].getAttribute('width')"))
    assert width == pytest.approx(100 * share)  # the longest bar is the engine's, of the men: all of it
    left = next(hit for hit in found["engine_hits"] if hit["agent_rank"] is None)
    assert page.text("#pushed .why .plain") == left["title"]
    assert page.text("#pushed .why .move") == f"{ordinal(left['rank'])} → out of the first 10"
    assert page.text("#pushed .why p") == (
        f"Its group (male) had 100% of the attention and has {round(100 - 100 * share)}%, target 50%."
    )
    assert page.run("location.search") == "?q=lawyer"


def test_the_start_page_tells_what_there_is_and_an_example_leads_to_a_search(page: Browser, studio: Studio) -> None:
    page.wait("!document.getElementById('start').hidden")
    assert page.text("#start h2") == "small holds 24 documents"
    rows = page.run("[...document.querySelectorAll('#start .group')].map((one) => one.innerText.split(/\\s*\\n\\s*/))")
    assert rows == [["male", "67%"], ["female", "33%"], ["no label", "0%"]]
    assert not page.run("document.getElementById('topical').hidden")
    page.run("document.querySelector('.example').click()")
    page.wait(DONE)
    assert page.run("location.search") == "?topic=T1"
    assert page.run("document.getElementById('start').hidden")
    page.run("history.back()")
    page.wait("!document.getElementById('start').hidden")
    assert page.run("document.getElementById('lists').hidden")


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_the_verdict_and_its_bars_are_on_the_first_screen(
    page: Browser, studio: Studio, width: int, height: int
) -> None:
    page.size(width, height)
    search(page, studio, "q=lawyer")
    shown = "[...document.querySelectorAll('#verdict .said, #verdict svg')]"
    bottoms = page.run(f"{shown}.map((one) => one.getBoundingClientRect().bottom)")
    assert len(bottoms) == 3
    assert max(bottoms) <= height
    assert page.run("scrollY") == 0


def test_every_view_has_an_address(page: Browser, studio: Studio) -> None:
    search(page, studio, "q=lawyer&n=4&loop=fair-qr&doc=d02")
    page.wait("document.getElementById('document').open")
    assert page.text("#document-title") == "Page 2"
    assert page.text("#document-text").startswith("A lawyer and again a lawyer of court number 2.")
    page.run("document.querySelector('#document button').click()")
    page.wait("!location.search.includes('doc=')")
    assert page.run("location.search") == "?q=lawyer&n=4&loop=fair-qr"
    page.wait(f"({IDS}).length === 4")
    assert len(page.run(IDS)) == 4
    assert page.run("document.getElementById('set-loop').value") == "fair-qr"
    told = page.run("document.getElementById('steps').textContent")
    assert "added:" in told or "dropped:" in told
    page.run("document.getElementById('set-loop').value = 'none'")
    page.run("document.getElementById('search').click()")
    page.wait("location.search.includes('loop=none')")
    page.wait(DONE)
    assert len(page.run(IDS)) == 4
    assert page.run("document.querySelectorAll('#steps > li').length") == 1
    page.run("history.back()")
    page.wait("location.search.includes('loop=fair-qr')")
    page.wait(f"{DONE} && document.querySelectorAll('#steps > li').length > 1")


def test_an_answer_with_its_sources(page: Browser, studio: Studio) -> None:
    search(page, studio, "q=lawyer&do=answer&n=5")
    with studio.client() as client:
        found = client.post("/api/answer", json={"query": "lawyer", "n": 5, "trace": True}).json()
    assert page.run("document.getElementById('answer-text').textContent") == found["answer"]
    links = page.run("[...document.querySelectorAll('#answer-text a')].map((link) => link.hash)")
    assert links == [f"#source-{number}" for number in found["cited"]]
    assert page.run("document.querySelectorAll('#sources li').length") == len(found["context"])
    heads = page.run(
        "[...document.querySelectorAll('#carried thead tr')].map((row) => row.innerText.split('\\t').join(' '))"
    )
    assert heads[0] == "group ranking context cited target"
    cited = page.run("[...document.querySelectorAll('#carried tbody tr')].map((row) => row.children[3].innerText)")
    groups = [group for one in found["citations"]["exposure"]["cited"] for group in one["groups"]]
    assert f"{100 * groups[0]['share']:.0f}%" == cited[0]
    assert f"{found['citations']['gap']['cited']:.4f} (cited)" in page.text("#carried")


def test_a_hostile_title_is_text(page: Browser, studio: Studio) -> None:
    search(page, studio, "q=lawyer&doc=d01&do=answer&n=24")
    page.wait("document.getElementById('document').open")
    shown = page.text("#document-title")
    assert shown.startswith("<img src=x onerror=")
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert any(title.startswith("<img src=x onerror=") for title in page.run(IDS))
    assert page.run("document.querySelectorAll('main img, dialog img, main script, dialog script').length") == 0
    assert page.run("document.title") == "lawyer: fairagent studio"


@pytest.mark.parametrize("width", [360, 768])
def test_nothing_is_wider_than_the_screen(page: Browser, studio: Studio, width: int) -> None:
    page.size(width)
    search(page, studio, "q=lawyer&do=answer&loop=fair-qr")
    page.run("document.getElementById('settings').open = true")
    assert page.run("document.documentElement.scrollWidth") == width
    assert page.beyond(width, ".sideways, pre, nav, svg, .skip") == []


def test_the_keyboard_is_enough(page: Browser) -> None:
    """Search, look at a document, close it, and ask for an answer."""
    focused = "document.activeElement.id || document.activeElement.className"
    page.run("document.body.focus()")
    for _ in range(7):  # past the link to the results, and the five of the navigation
        page.press("Tab")
    assert page.run(focused) == "q"
    page.type("lawyer")
    page.press("Enter")
    page.wait(DONE)
    while page.run(focused) != "answer":
        page.press("Tab")
    while page.run(focused) != "plain":
        page.press("Tab")
    page.press("Enter")
    page.wait("document.getElementById('document').open && document.getElementById('document-text').textContent")
    assert page.run("document.activeElement.textContent") == "Close"
    page.press("Escape")
    page.wait("!document.getElementById('document').open")
    assert page.run(focused) == "plain"
    page.run("document.getElementById('q').focus()")
    while page.run(focused) != "answer":
        page.press("Tab")
    page.press("Enter")
    page.wait("location.search.includes('do=answer')")
    page.wait(DONE)
    assert "[1]" in page.text("#answer-text")


def test_a_setting_that_was_changed_is_in_the_address_and_marked(page: Browser) -> None:
    page.run("document.getElementById('q').value = 'lawyer'")
    page.run("document.getElementById('set-target').value = 'uniform'")
    page.run("document.getElementById('set-target').dispatchEvent(new Event('change'))")
    assert page.run("document.getElementById('name-target').className") == "set"
    page.run("document.getElementById('search').click()")
    page.wait(DONE)
    assert page.run("location.search") == "?q=lawyer&target=uniform"


def test_what_is_wrong_is_shown_where_people_look(page: Browser, studio: Studio) -> None:
    page.open(f"{studio.url}/?q=lawyer&do=answer&generate=llm")
    page.wait(SAID)
    assert "model" in page.text("#error")
    assert page.run("document.getElementById('error').getAttribute('role')") == "alert"
    assert page.run("document.getElementById('lists').hidden")
