"""The dial of the search page in a real Chromium: the slider, the list's length, targets of one's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, needs_chromium
from studio_server import TOKEN, Studio, desk_of, running, write_collection

pytestmark = needs_chromium

DONE = "document.getElementById('state').textContent.startsWith('Done')"
IDS = "[...document.querySelectorAll('#agent-list li')].map((one) => one.dataset.id)"
SHARE = "document.querySelector('#verdict .group .n b').innerText"
MOVE = """
(() => {
  const slider = document.getElementById('set-list');
  slider.value = %d;
  slider.dispatchEvent(new Event('input', { bubbles: true }));
})()
"""


@pytest.fixture
def page(browser: Browser, studio: Studio) -> Iterator[Browser]:
    """The page of a search whose candidates do not depend on the order; nothing may be complained of."""
    browser.begin(studio.address)
    browser.wait("document.querySelectorAll('#more > *').length > 3")
    with browser.quiet(studio.url):
        opened(browser, studio, "q=lawyer&loop=none")
        yield browser


def opened(page: Browser, studio: Studio, state: str) -> None:
    page.open(f"{studio.url}/?{state}")
    page.wait(DONE)


def reordered(studio: Studio, **order: Any) -> Any:
    with studio.client() as client:
        reply = client.post(
            "/api/reorder", json={"query": "lawyer", "settings": {"loop": "none"}, "trace": True, **order}
        )
        assert reply.status_code == 200, reply.text
        return reply.json()


def ids(record: Any) -> list[str]:
    return [hit["id"] for hit in record["hits"]]


def test_a_move_walks_along_the_frontier_without_a_request(page: Browser, studio: Studio) -> None:
    before = page.run(IDS)
    with studio.client() as client:
        frontier = client.post(
            "/api/search", json={"query": "lawyer", "settings": {"loop": "none"}, "trace": True}
        ).json()["frontier"]
    served, last = frontier["served"], len(frontier["lists"]) - 1
    assert page.run("document.getElementById('set-list').value") == str(served)
    page.requested.clear()
    for number, one in enumerate(frontier["lists"]):
        page.run(MOVE % number)
        assert page.run(IDS) == one["ids"]
        assert page.text("#verdict .said") == one["changes"][0]["text"].removeprefix("gender: ")
        assert page.text("#list-now") == f"keeps {100 * one['kept']:.0f}%"
        if number != served:
            assert page.run("location.search") == f"?q=lawyer&loop=none&keep={one['keep']:g}"
        left = page.run("[...document.querySelectorAll('#engine-list .fell')].length")
        assert (left == 0) == (one["ids"] == frontier["lists"][0]["ids"])
    assert "fairest" in page.text("#next")
    page.run(MOVE % 0)
    now, then = frontier["lists"][:2]
    women = [f"{100 * one['exposure'][0]['groups'][0]['share']:.0f}%" for one in (then, now)]
    kept = [f"{100 * one['kept']:.0f}%" for one in (then, now)]
    assert page.text("#next") == (
        f"One step fairer: female {women[0]} instead of {women[1]}, keeping {kept[0]} instead of {kept[1]} of the "
        "relevance."
    )
    assert page.run("document.querySelectorAll('#curve .list').length") == last + 1
    assert page.text("#pushed").startswith("Nothing")
    # Once the hand rests, it is told.
    page.wait("document.getElementById('state').textContent.startsWith('gender:')")
    page.run(MOVE % served)
    assert page.run("location.search") == "?q=lawyer&loop=none"
    assert page.requested == []
    page.run(MOVE % last)
    page.run("document.getElementById('undo').click()")
    page.wait(f"JSON.stringify({IDS}) === JSON.stringify({before})")
    assert page.run("location.search") == "?q=lawyer&loop=none"
    assert page.run("document.activeElement.id") == "set-list"


def test_an_address_opens_the_same_list(page: Browser, studio: Studio) -> None:
    for order in ({"fairness": 6}, {"keep": 0.8}, {"gap": 0.02}):
        ((name, value),) = order.items()
        opened(page, studio, f"q=lawyer&loop=none&{name}={value}&n=5&unknown=ignore")
        expected = reordered(studio, **order, n=5, unknown="ignore")
        page.wait(f"JSON.stringify({IDS}) === JSON.stringify({ids(expected)})")
        assert page.run("document.getElementById('set-list').value") == str(expected["frontier"]["served"])
        values = "['set-n', 'set-unknown'].map((id) => document.getElementById(id).value)"
        assert page.run(values) == ["5", "ignore"]
        assert page.run("document.querySelectorAll('#engine-list li').length") == 5
        assert [page.text("#verdict .said")] == [one["text"].removeprefix("gender: ") for one in expected["changes"]]
    # Where one has walked to is asked for with the list's length.
    page.run(MOVE % 0)
    page.run("document.getElementById('set-n').value = 4")
    page.run("document.getElementById('set-n').dispatchEvent(new Event('input'))")
    page.wait(f"JSON.stringify({IDS}) === JSON.stringify({ids(reordered(studio, keep=1, n=4, unknown='ignore'))})")
    assert page.run("location.search") == "?q=lawyer&loop=none&n=4&unknown=ignore&keep=1"


def test_the_keyboard_moves_it(page: Browser, studio: Studio) -> None:
    page.run("document.getElementById('set-list').focus()")
    for kind in ("keyDown", "keyUp"):
        page.do("Input.dispatchKeyEvent", type=kind, key="ArrowRight", code="ArrowRight", windowsVirtualKeyCode=39)
    page.wait("location.search.includes('keep=0.')")
    page.wait("document.getElementById('state').textContent.startsWith('gender:')")
    assert page.run("document.activeElement.id") == "set-list"


def test_targets_of_ones_own_are_used_once_they_add_up(page: Browser, studio: Studio) -> None:
    fields = "[...document.querySelectorAll('#set-shares input')]"
    type_in = (
        "(place, value) => { const one = "
        + fields
        + "[place]; one.focus(); one.value = value; one.dispatchEvent(new Event('input')); }"
    )
    page.run("document.getElementById('own-shares').open = true")
    page.requested.clear()
    page.run(f"({type_in})(0, 80)")
    assert "add up to 130%" in page.text("#set-shares [role=status]")
    page.run(f"({type_in})(1, 20)")
    expected = reordered(studio, shares={"gender": {"female": 0.8, "male": 0.2}})
    page.wait(f"JSON.stringify({IDS}) === JSON.stringify({ids(expected)})")
    page.wait("document.querySelector('#verdict .due').innerText === 'target 80%'")
    assert page.text("#set-shares [role=status]") == ""
    assert page.run("JSON.parse(new URLSearchParams(location.search).get('shares'))") == {
        "gender": {"female": 0.8, "male": 0.2}
    }


def test_a_filter_is_in_the_address_and_stays_while_the_slider_moves(page: Browser, studio: Studio) -> None:
    opened(page, studio, "q=lawyer&loop=none&where=gender%3Dfemale")
    assert page.run("document.getElementById('set-where').value") == "gender=female"
    labels = "[...new Set([...document.querySelectorAll('#agent-list .g')].map((one) => one.innerText))].join()"
    assert page.run(labels) == "female"
    page.run(MOVE % 0)
    page.wait("document.getElementById('state').textContent.startsWith('gender:')")
    assert page.run(labels) == "female"
    assert "where=gender%3Dfemale" in page.run("location.search")


def test_a_filter_is_chosen_from_what_the_collection_has(page: Browser, studio: Studio) -> None:
    pick = (
        "((name, value) => { const one = document.querySelector(`.where select[aria-label=${name}]`); "
        "one.value = value; one.dispatchEvent(new Event('change')); })"
    )
    page.run("document.getElementById('settings').open = true")
    page.run("document.querySelector('.where select').focus()")
    page.wait("document.querySelectorAll('.where select[aria-label=column] option').length === 2")
    page.run(f"{pick}('column', 'gender')")
    page.wait("document.querySelectorAll('.where select[aria-label=value] option').length === 3")
    for value in ("female", "male"):
        page.run(f"{pick}('value', '{value}')")
    assert page.run("document.getElementById('set-where').value") == "gender=female|male"
    page.run("document.getElementById('set-where').value = 'gender=female'")
    page.run("document.getElementById('form').requestSubmit()")
    page.wait(f"location.search.includes('where=gender%3Dfemale') && {DONE}")


def test_an_order_that_cannot_be_is_told_and_the_first_list_stays(browser: Browser, studio: Studio) -> None:
    browser.begin(studio.address)
    browser.open(f"{studio.url}/?q=lawyer&loop=none&fairness=much")
    browser.wait(f"document.querySelector('#error .notice') !== null && {DONE}")
    assert "fairness" in browser.text("#error")
    assert len(browser.run(IDS)) == 10


def test_what_has_no_dial_shows_none(page: Browser, studio: Studio) -> None:
    opened(page, studio, "q=lawyer&loop=none&rerank=none")
    assert page.run("document.getElementById('priced').hidden")
    assert not page.run("document.getElementById('set-n').closest('#dial').hidden")


def test_the_dial_stays_beside_an_answer_and_a_button_asks_for_another(page: Browser, studio: Studio) -> None:
    opened(page, studio, "q=lawyer&do=answer&n=6")
    places = "[...document.querySelectorAll('#found > section:not([hidden])')].map((one) => one.id)"
    assert page.run(places) == ["answered", "judged", "noted", "order", "lists", "story"]
    stale = "document.getElementById('stale').hidden"
    assert page.run(stale)
    slider = "document.getElementById('set-list')"
    page.run(f"{slider}.value = 0; {slider}.dispatchEvent(new Event('input'))")
    assert not page.run(stale)
    page.run("document.getElementById('again').click()")
    page.wait(f"location.search.includes('keep=') && {DONE}")
    assert page.run(stale)
    order = {"query": "lawyer", "n": 6, "keep": float(page.run("new URLSearchParams(location.search).get('keep')"))}
    with studio.client() as client:
        found = client.post("/api/answer", json=order).json()
    assert page.run("document.getElementById('answer-text').textContent") == found["answer"]


def test_a_collection_without_groups_has_lists_and_no_bars(browser: Browser, tmp_path: Path) -> None:
    folder = write_collection(tmp_path / "plain")
    text = (folder / "collection.yaml").read_text(encoding="utf-8")
    (folder / "collection.yaml").write_text(text.partition("groups:")[0].replace("topics: ", "# "), encoding="utf-8")
    with running(desk_of(folder, target=None, profile="engine")) as studio, browser.quiet(studio.url):
        browser.begin(f"{studio.url}/#token={TOKEN}")
        browser.wait("!document.getElementById('start').hidden")
        assert "no groups" in browser.text("#start .notice")
        assert browser.run("document.getElementById('topical').hidden")
        assert browser.run("document.querySelectorAll('.example').length") == 3
        browser.run("document.querySelector('.example').click()")
        browser.wait(DONE)
        assert browser.run(IDS)
        assert browser.run("document.getElementById('judged').hidden")
        opened(browser, studio, "q=lawyer&n=3")
        assert len(browser.run(IDS)) == 3
