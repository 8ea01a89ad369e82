"""The search page in a real Chromium: lists, verdict, dial, filters, answers, and the token. Skipped without one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, chromium, needs_chromium
from studio_server import TOKEN, Studio, desk_of, running, write_collection

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


def ordinal(rank: int) -> str:
    return {1: "1st", 2: "2nd", 3: "3rd"}.get(rank, f"{rank}th")


def test_from_the_start_page_to_the_verdict_both_lists_and_the_steps(page: Browser, studio: Studio) -> None:
    page.wait(STARTED)
    assert page.text("#start h2") == "small holds 24 documents"
    rows = page.run("[...document.querySelectorAll('#start .group')].map((one) => one.innerText.split(/\\s*\\n\\s*/))")
    assert rows == [["male", "67%"], ["female", "33%"], ["no label", "0%"]]
    page.click(".example")
    page.wait(DONE)
    assert state(page) == "?topic=T1"
    page.run("history.back()")
    page.wait(STARTED)
    assert page.run("document.getElementById('lists').hidden")
    page.run("document.getElementById('q').focus()")
    page.type("lawyer")
    page.click("#search")
    page.wait(DONE)
    found = studio.post("/api/search", {"query": "lawyer", "trace": True})
    assert page.run(TITLES) == [hit["title"] for hit in found["hits"]]
    ranks = [(hit["engine_rank"], hit["rank"]) for hit in found["hits"]]
    assert page.run("[...document.querySelectorAll('#agent-list .move')].map((one) => one.innerText)") == [
        f"stays {ordinal(now)}" if was == now else f"from {ordinal(was)} to {ordinal(now)}" for was, now in ranks
    ]
    assert any(was > now for was, now in ranks)
    assert page.text("#agent-list .snippet") == found["hits"][0]["snippet"]
    assert page.run("document.querySelectorAll('#engine-list li').length") == 10
    assert page.run(STEPS) == len(found["steps"])
    assert f"{page.text('#verdict h3')}: {page.text('#verdict .said')}" == found["changes"][0]["text"]
    label = page.run("document.querySelector('#verdict svg').getAttribute('aria-label')")
    share = found["exposure"]["after"][0]["groups"][0]["share"]
    assert label == f"female: 0% by the engine, {round(100 * share)}% by the agent, target 50%"
    width = float(page.run("document.querySelectorAll('#verdict rect')[2].getAttribute('width')"))
    assert width == pytest.approx(100 * share)  # the longest bar is the engine's, of the men: all of it
    left = next(hit for hit in found["engine_hits"] if hit["agent_rank"] is None)
    assert page.text("#pushed .why .plain") == left["title"]
    assert page.text("#pushed .why .move") == f"{ordinal(left['rank'])} → out of the first 10"
    assert f"had 100% of the attention and has {round(100 - 100 * share)}%, target 50%." in page.text("#pushed .why p")
    assert state(page) == "?q=lawyer"


def test_every_view_has_an_address(page: Browser, studio: Studio) -> None:
    search(page, studio, "q=lawyer&n=4&loop=fair-qr&doc=d02")
    page.wait("document.getElementById('document').open")
    assert page.text("#document-title") == "Page 2"
    assert page.text("#document-text").startswith("A lawyer and again a lawyer of court number 2.")
    page.click("#document button")
    page.wait("!location.search.includes('doc=')")
    assert state(page) == "?q=lawyer&n=4&loop=fair-qr"
    page.wait(f"({TITLES}).length === 4")
    assert page.run("document.getElementById('set-loop').value") == "fair-qr"
    told = page.run("document.getElementById('steps').textContent")
    assert "added:" in told or "dropped:" in told
    # A setting that is changed is marked, and in the address.
    page.give("#set-loop", "none", "change")
    assert page.run("document.getElementById('name-loop').className") == "set"
    page.click("#search")
    page.wait(f"location.search.includes('loop=none') && {DONE}")
    assert (len(page.run(TITLES)), page.run(STEPS)) == (4, 1)
    page.run("history.back()")
    page.wait(f"location.search.includes('loop=fair-qr') && {DONE} && {STEPS} > 1")


def test_a_move_walks_along_the_frontier_without_a_request(page: Browser, studio: Studio) -> None:
    search(page, studio)
    before, frontier = page.run(IDS), studio.post("/api/search", SEARCH)["frontier"]
    served, last = frontier["served"], len(frontier["lists"]) - 1
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
    women, kept = zip(
        *(
            (f"{100 * one['exposure'][0]['groups'][0]['share']:.0f}%", f"{100 * one['kept']:.0f}%")
            for one in frontier["lists"][1::-1]
        ),
        strict=True,
    )
    assert page.text("#next") == (
        f"One step fairer: female {women[0]} instead of {women[1]}, keeping {kept[0]} instead of {kept[1]} of the "
        "relevance."
    )
    assert page.run("document.querySelectorAll('#curve .list').length") == last + 1
    assert page.text("#pushed").startswith("Nothing")
    page.wait(TOLD)  # once the hand rests
    page.give("#set-list", served)
    assert state(page) == "?q=lawyer&loop=none"
    assert page.requested == []
    page.give("#set-list", last)
    page.click("#undo")
    page.wait(f"JSON.stringify({IDS}) === JSON.stringify({before})")
    assert state(page) == "?q=lawyer&loop=none"
    assert page.run(FOCUSED) == "set-list"
    for kind in ("keyDown", "keyUp"):
        page.do("Input.dispatchKeyEvent", type=kind, key="ArrowRight", code="ArrowRight", windowsVirtualKeyCode=39)
    page.wait(f"location.search.includes('keep=0.') && {TOLD}")
    assert page.run(FOCUSED) == "set-list"


def test_an_address_opens_the_same_list(page: Browser, studio: Studio) -> None:
    for order in ({"fairness": 6}, {"keep": 0.8}, {"gap": 0.02}):
        ((name, value),) = order.items()
        search(page, studio, f"q=lawyer&loop=none&{name}={value}&n=5&unknown=ignore")
        expected = studio.post("/api/reorder", SEARCH | order | {"n": 5, "unknown": "ignore"})
        shows(page, expected)
        values = "['set-list', 'set-n', 'set-unknown'].map((id) => document.getElementById(id).value)"
        assert page.run(values) == [str(expected["frontier"]["served"]), "5", "ignore"]
        assert page.run("document.querySelectorAll('#engine-list li').length") == 5
        assert [page.text("#verdict .said")] == [one["text"].removeprefix("gender: ") for one in expected["changes"]]
    # Where one has walked to is asked for with the list's length.
    page.give("#set-list", 0)
    page.give("#set-n", 4)
    shows(page, studio.post("/api/reorder", SEARCH | {"keep": 1, "n": 4, "unknown": "ignore"}))
    assert state(page) == "?q=lawyer&loop=none&n=4&unknown=ignore&keep=1"
    search(page, studio, "q=lawyer&loop=none&rerank=none")
    assert page.run("document.getElementById('priced').hidden")
    assert not page.run("document.getElementById('set-n').closest('#dial').hidden")


def test_targets_of_ones_own_are_used_once_they_add_up(page: Browser, studio: Studio) -> None:
    search(page, studio)
    page.run("document.getElementById('own-shares').open = true")
    fields = "document.querySelectorAll('#set-shares input')"
    for place, value, said in ((0, 80, "add up to 130%"), (1, 20, "")):
        page.run(f"{fields}[{place}].focus()")
        page.run(f"{fields}[{place}].value = {value}; {fields}[{place}].dispatchEvent(new Event('input'))")
        assert said in page.text("#set-shares [role=status]")
    shares = {"gender": {"female": 0.8, "male": 0.2}}
    shows(page, studio.post("/api/reorder", SEARCH | {"shares": shares}))
    page.wait("document.querySelector('#verdict .due').innerText === 'target 80%'")
    assert page.text("#set-shares [role=status]") == ""
    assert page.run("JSON.parse(new URLSearchParams(location.search).get('shares'))") == shares


def test_a_filter_is_chosen_from_what_the_collection_has_and_stays_in_the_address(
    page: Browser, studio: Studio
) -> None:
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
    labels = "[...new Set([...document.querySelectorAll('#agent-list .g')].map((one) => one.innerText))].join()"
    assert page.run(labels) == "female"
    page.give("#set-list", 0)
    page.wait(TOLD)
    assert page.run(labels) == "female"
    assert "where=gender%3Dfemale" in state(page)


def test_an_answer_with_its_sources_and_the_dial_beside_it(page: Browser, studio: Studio) -> None:
    search(page, studio, "q=lawyer&do=answer&n=6")
    found = studio.post("/api/answer", {"query": "lawyer", "n": 6, "trace": True})
    answered = "document.getElementById('answer-text').textContent"
    assert page.run(answered) == found["answer"]
    links = page.run("[...document.querySelectorAll('#answer-text a')].map((link) => link.hash)")
    assert links == [f"#source-{number}" for number in found["cited"]]
    assert page.run("document.querySelectorAll('#sources li').length") == len(found["context"])
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


def test_a_hostile_title_is_text(page: Browser, studio: Studio) -> None:
    search(page, studio, "q=lawyer&doc=d01&do=answer&n=24")
    page.wait("document.getElementById('document').open")
    shown = page.text("#document-title")
    assert shown.startswith("<img src=x onerror=")
    assert not {"\x1b", "\u202e"} & set(shown)
    assert any(title.startswith("<img src=x onerror=") for title in page.run(TITLES))
    assert page.run("document.querySelectorAll('main img, dialog img, main script, dialog script').length") == 0
    assert page.run("document.title") == "lawyer: fairagent studio"


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844), (360, 0), (768, 0)])
def test_the_verdict_is_on_the_first_screen_and_nothing_is_wider_than_it(
    page: Browser, studio: Studio, width: int, height: int
) -> None:
    page.size(width)
    search(page, studio, "q=lawyer" if height else "q=lawyer&do=answer&loop=fair-qr")
    if height:
        shown = "[...document.querySelectorAll('#verdict .said, #verdict svg')]"
        bottoms = page.run(f"{shown}.map((one) => one.getBoundingClientRect().bottom)")
        assert len(bottoms) == 3
        assert max(bottoms) <= height
        assert page.run("scrollY") == 0
    else:
        page.run("document.getElementById('settings').open = true")
        assert page.run("document.documentElement.scrollWidth") == width
        assert page.beyond(width, ".sideways, pre, nav, svg, .skip") == []


def test_the_keyboard_is_enough(page: Browser) -> None:
    """Search, look at a document, close it, and ask for an answer."""

    def until(place: str) -> None:
        while page.run(FOCUSED) != place:
            page.press("Tab")

    page.run("document.body.focus()")
    for _ in range(7):  # past the link to the results, and the five of the navigation
        page.press("Tab")
    assert page.run(FOCUSED) == "q"
    page.type("lawyer")
    page.press("Enter")
    page.wait(DONE)
    until("answer")
    until("plain")
    page.press("Enter")
    page.wait("document.getElementById('document').open && document.getElementById('document-text').textContent")
    assert page.run("document.activeElement.textContent") == "Close"
    page.press("Escape")
    page.wait("!document.getElementById('document').open")
    assert page.run(FOCUSED) == "plain"
    page.run("document.getElementById('q').focus()")
    until("answer")
    page.press("Enter")
    page.wait(f"location.search.includes('do=answer') && {DONE}")
    assert "[1]" in page.text("#answer-text")


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
    folder = write_collection(tmp_path / "plain")
    text = (folder / "collection.yaml").read_text(encoding="utf-8")
    (folder / "collection.yaml").write_text(text.partition("groups:")[0].replace("topics: ", "# "), encoding="utf-8")
    with running(desk_of(folder, target=None, profile="engine")) as studio, browser.quiet(studio.url):
        browser.begin(studio.address)
        browser.wait(STARTED)
        assert "no groups" in browser.text("#start .notice")
        assert browser.run("document.getElementById('topical').hidden")
        assert browser.run("document.querySelectorAll('.example').length") == 3
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


def test_a_tab_keeps_it_through_pages_reloads_and_back(tab: Browser, studio: Studio) -> None:
    tab.open(studio.address)
    tab.wait(OPEN)
    assert tab.run(KEPT) == [TOKEN]
    search(tab, studio, "q=lawyer")
    for path in ("/prompts", "/runs", "/docs"):
        tab.click(f'nav a[href="{path}"]')
        tab.wait(f"location.pathname === '{path}' && document.readyState === 'complete'")
        assert tab.run("location.href") == f"{studio.url}{path}"
    tab.do("Page.reload")
    for _ in range(3):
        tab.run("history.back()")
    tab.wait(DONE)
    assert tab.run("document.cookie + localStorage.length") == "0"
    assert tab.said == []


def test_another_tab_gets_it_from_the_first_and_a_tab_alone_asks_for_it(tab: Browser, studio: Studio) -> None:
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
    other = Browser(tab._socket)
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
