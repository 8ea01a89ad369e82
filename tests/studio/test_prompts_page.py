"""The Prompts page in a real Chromium. Skipped where there is none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Browser, needs_chromium
from studio_server import TOKEN, Studio, asking, running

from fairagent.guests.testing import LoopbackServer
from fairagent.guests.testing.server import Request, ServerReply, completion
from fairagent.llm.prompts import shipped_folder
from fairagent.types.clean import printable

from .conftest import suits

pytestmark = needs_chromium

SHIPPED = (shipped_folder() / "refine_query.j2").read_text(encoding="utf-8")
HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
CHECKED = "document.getElementById('verdict')?.textContent === 'no fault'"
VALUE = "document.getElementById('text').value"
ROWS = "[...document.querySelectorAll('#paint .row')]"
DONE = "/^\\d+ of/.test(document.getElementById('trying').textContent)"
AIMS = "document.getElementById('filled').textContent.includes('aims at female')"
SAVED = "document.getElementById('state').textContent.startsWith('Saved to')"


def replied(request: Request) -> ServerReply | str:
    shown = request["messages"][-1]["content"]
    return completion(json.dumps({"keywords": ["judges" if "NAME WOMEN." in shown else HOSTILE]}))


@pytest.fixture(scope="module")
def trying(folder: Path, own: Path) -> Iterator[Studio]:
    """A studio with a model."""
    with LoopbackServer(replied) as model, running(asking(folder, model.url), prompts=own) as studio:
        yield studio


@pytest.fixture
def page(browser: Browser, trying: Studio, own: Path) -> Iterator[Browser]:
    """The page with the shipped template; nothing may be complained of, and nothing asked for elsewhere."""
    for path in own.glob("*"):
        path.unlink()
    browser.begin(f"{trying.url}/prompts#token={TOKEN}")
    browser.run("sessionStorage.clear()")
    with browser.quiet(trying.url):
        opened(browser, trying)
        yield browser
        browser.run("sessionStorage.clear()")


def opened(page: Browser, studio: Studio, state: str = "id=refine_query") -> None:
    page.open(f"{studio.url}/prompts?{state}#token={TOKEN}")
    page.wait(f"{CHECKED} && document.querySelector('#messages pre') !== null")


def insert(page: Browser, text: str, before: str = "[user]") -> None:
    """Type a text at the beginning of the line after the first `before`."""
    page.run(
        f"(() => {{ const text = document.getElementById('text'); "
        f"const at = text.value.indexOf({json.dumps(before)}) + {len(before) + 1}; "
        "text.focus(); text.setSelectionRange(at, at); })()"
    )
    page.type(text)


def test_an_edit_from_its_first_fault_to_the_saved_file(page: Browser, trying: Studio, own: Path) -> None:
    """As one types: colors line by line, faults, the rendered prompt; then saved, discarded, and changed by another."""
    painted = f"{ROWS}.map((one) => one.textContent).join('\\n') === {VALUE}"
    assert page.run(VALUE) == SHIPPED
    assert page.run(painted)
    heights = "[document.getElementById('text').scrollHeight, document.getElementById('paint').offsetHeight]"
    assert len(set(page.run(heights))) == 1  # lines are broken at the same places
    lines = SHIPPED.split("\n")
    assert page.run("document.querySelectorAll('#paint .in-head').length") == lines.index("---", 1) + 1
    insert(page, "{% if x %}{# open\nstill #}{{ query }}{\n")
    rows = f"{ROWS}.slice({lines.index('[user]') + 1}).slice(0, 2)"
    assert page.run(f"{rows}.map((row) => [...row.children].map((one) => [one.className, one.textContent]))") == [
        [["j-block", "{% if x %}"], ["j-comment", "{# open"]],
        [["j-comment", "still #}"], ["j-expression", "{{ query }}"]],
    ]
    # What was typed can be taken back as in any text area, and the layer follows.
    page.run("document.execCommand('undo')")
    assert page.run(f"{painted} && {VALUE}") == SHIPPED
    insert(page, "{{ nobody }}\n")
    page.wait("document.getElementById('verdict').textContent === '1 fault'")
    line = lines.index("[user]") + 2
    assert page.text("#faults").startswith(f"line {line}: unknown variable 'nobody'")
    assert page.run(f"{ROWS}.findIndex((one) => one.matches('.faulty')) + 1") == line
    assert page.run("document.getElementById('save').disabled")
    assert page.text("#messages") == ""
    page.click("#faults button")
    assert page.run("getSelection().toString()") == "{{ nobody }}"
    page.press("Backspace")
    page.wait(CHECKED)
    # The rendered prompt is beside it, and follows the query; the address opens it again.
    insert(page, "NAME WOMEN.\n")
    page.wait("document.getElementById('messages').textContent.includes('NAME WOMEN.')")
    assert "filled with examples" in page.text("#filled")
    page.run("document.getElementById('q').focus()")
    page.type("lawyer")
    page.press("Enter")
    page.wait(AIMS)
    assert '"query": "lawyer"' in page.text("#messages")
    assert page.run("location.search") == "?id=refine_query&q=lawyer"
    assert "+NAME WOMEN." in page.text("#diff")
    opened(page, trying, "id=refine_query&topic=T1")
    assert ("NAME WOMEN." in page.run(VALUE), page.text("#saved")) == (True, "not saved")
    page.wait(AIMS)
    suits(page)
    page.click("#save")
    page.wait(SAVED)
    file = own / "refine_query.j2"
    assert file.read_text(encoding="utf-8") == page.run(VALUE)
    assert page.text("#saved") == ""
    # Another version takes the place of what is there, and can be taken back; so can what is discarded.
    page.give("#version", "few-shot", "change")
    page.wait("document.querySelector('#diff .ins') !== null && document.getElementById('saved').textContent !== ''")
    page.click("#state button")
    assert page.run(VALUE) == file.read_text(encoding="utf-8")
    insert(page, "NAME MEN.\n")
    page.click("#discard")
    assert page.run(VALUE) == file.read_text(encoding="utf-8")
    page.click("#state button")
    assert "NAME MEN." in page.run(VALUE)
    page.wait(CHECKED)
    # A file that was changed meanwhile stays until one says so.
    theirs = SHIPPED.replace("version: 4", "version: 9")
    file.write_text(theirs, encoding="utf-8")
    page.click("#save")
    page.wait("document.querySelector('#conflict details') !== null")
    assert "was changed meanwhile" in page.text("#conflict")
    assert (file.read_text(encoding="utf-8"), "NAME MEN." in page.run(VALUE)) == (theirs, True)
    assert page.run("document.querySelector('#conflict pre').textContent") == theirs
    page.run("[...document.querySelectorAll('#conflict button')][1].click()")
    assert page.run(VALUE) == theirs
    page.click("#state button")
    page.wait(CHECKED)
    page.click("#save")
    page.wait(SAVED)
    assert "NAME MEN." in file.read_text(encoding="utf-8")
    page.said.clear()  # the refusal's status


def test_two_versions_are_tried_side_by_side_and_hostile_replies_are_text(page: Browser, trying: Studio) -> None:
    """With the keyboard alone, from the skip link to the editor."""
    opened(page, trying, "id=refine_query&q=lawyer")
    page.run("document.body.focus()")
    page.press("Tab")
    assert page.run("document.activeElement.className") == "skip"
    page.press("Enter")
    assert page.run("document.activeElement.id") == "text"
    insert(page, f"NAME WOMEN. {HOSTILE}\n")
    page.wait(CHECKED)
    while page.run("document.activeElement.id") != "try-one":
        page.press("Tab")
    page.press("Enter")
    page.wait(DONE)
    body = {"id": "refine_query", "template": page.run(VALUE), "query": "lawyer"}
    shipped, edited = trying.post("/api/prompts/try", body)["tried"]
    for side, one in (("shipped", shipped), ("edited", edited)):
        shown = page.run(f"document.querySelector('[data-side={side}]').textContent")
        assert one["replies"][0] in shown
        assert f"{one['gap']['after']:.4f}" in shown
        rows = f"document.querySelectorAll('[data-side={side}] .ranking tbody tr')"
        titles = page.run(f"[...{rows}].map((row) => row.cells[2].textContent)")
        assert titles == [printable(hit["title"]) for hit in one["hits"]]
    means = f"shipped {shipped['gap']['after']:.4f}, as it stands {edited['gap']['after']:.4f}"
    assert means in page.text("#trying")
    assert page.run("document.querySelectorAll('main img, main script').length") == 0
    assert page.run("document.title") == "refine_query: fairagent studio"
    left, right = page.run("[...document.querySelectorAll('.side-of')].map((one) => one.getBoundingClientRect().left)")
    assert left < right
    page.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    suits(page)
    # Which two is chosen; and where nothing changes it is said.
    page.give("#left", "as it stands", "change")
    page.wait("document.getElementById('tryable').textContent === 'Choose two different versions.'")
    assert page.run("document.getElementById('try-one').disabled")
    page.give("#right", "shipped", "change")
    page.wait("!document.getElementById('try-one').disabled")
    page.click("#try-one")
    page.wait(f"document.querySelector('[data-side=against] .keywords') !== null && {DONE}")
    heads = page.run("[...document.querySelectorAll('.side-of h4')].map((one) => one.textContent)")
    assert heads == ["as it stands", "shipped"]
    assert "judges" in page.run("document.querySelector('[data-side=against] .keywords').textContent")
    assert "changes nothing" not in page.text("#effect")
    page.give("#left", "few-shot", "change")
    page.click("#try-one")
    page.wait("document.getElementById('effect').textContent.includes('the replies are equal')")
