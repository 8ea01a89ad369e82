"""The page in a real browser: it sorts, filters, follows links, and fits a phone; skipped without a chromium."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe import barriers, needs_axe
from browser import Browser, chromium, needs_chromium

from fairagent.report.page import page

from .runs import SYSTEMS, made_run, wide_run

HELPERS = """
window.all = (selector, root = document) => [...root.querySelectorAll(selector)];
window.opened = (topic) => { topic.open = true; topic.dispatchEvent(new Event("toggle")); return topic; };
window.set = (id, value, event) => {
  document.getElementById(id).value = value;
  document.getElementById(id).dispatchEvent(new Event(event));
};
"""
Use = Callable[[str], Any]

pytestmark = [needs_chromium, pytest.mark.slow]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Callable[[str], Use]:
    """Open a page; what runs the body of a function in it."""

    def show(text: str) -> Use:
        (tmp_path / "page.html").write_text(text, encoding="utf-8")
        browser.begin((tmp_path / "page.html").as_uri())
        browser.wait("document.querySelector('.topic') !== null")
        browser.said.clear()
        browser.run(HELPERS)
        return lambda body: browser.run(f"(() => {{ {body} }})()")

    return show


def test_a_reader_sorts_filters_and_follows_links(browser: Browser, show: Callable[[str], Use]) -> None:
    use = show(page(made_run()))
    names, up, down, sort = use("""
        const table = all("#results table.sortable")[1];  // tests of nDCG
        const head = all("th[data-key]", table)[3];
        const order = () => all("tbody tr", table).map((row) => row.cells[0].querySelector(".sys").textContent.trim());
        const names = order();
        head.querySelector("button").click();
        const down = order();
        head.querySelector("button").click();
        return [names, order(), down, head.getAttribute("aria-sort")];
    """)
    rows = {row.system: row.difference for row in made_run().comparisons if not row.dimension}
    assert tuple(names) == SYSTEMS
    expected = sorted(SYSTEMS[1:], key=lambda system: -rows[system])
    # The baseline has no difference and stays last.
    assert (down, up, sort) == ([*expected, SYSTEMS[0]], [*expected[::-1], SYSTEMS[0]], "ascending")

    before, botanists, nothing, tabs, ordered, gains = use("""
        const shown = () => all(".topic").filter((one) => one.offsetParent !== null);
        const topics = () => shown().map((topic) => topic.querySelector(".id").textContent);
        const count = () => document.getElementById("count").value;
        const before = [topics().length, count()];
        set("text", "BOTANI", "input");
        all(".topic").forEach(opened);
        const right = all(".topic").every((topic) => topic.hidden !== /botani/i.test(topic.textContent));
        const botanists = [topics(), count(), right];
        set("text", "no such words", "input");
        const nothing = [topics(), count()];
        set("text", "", "input");
        set("system", "1", "change");
        const tabs = all(".pick:checked").map((pick) => pick.dataset.system);
        set("order", "0 -1", "change");
        const gains = all(".topic .now").map((now) => now.firstElementChild?.textContent ?? null);
        return [before, botanists, nothing, tabs, topics(), gains];
    """)
    assert before == [13, "13 topics"]
    assert 1 <= len(botanists[0]) < 13
    assert botanists[1:] == [f"{len(botanists[0])} of 13 topics", True]
    assert nothing == [[], "0 of 13 topics"]
    assert set(tabs) == {"1"}
    # The excluded topic that nobody ran has nothing of this system.
    assert len(ordered) == 12
    assert ordered != sorted(ordered)
    numbers = [float(gain.replace("−", "-")) for gain in gains if gain and gain != "–"]
    assert numbers == sorted(numbers, reverse=True)
    assert len(numbers) == 11

    use = show(page(made_run()))
    assert use("""
        location.hash = "topic=T03&system=BM25%2BRM3";
        dispatchEvent(new Event("hashchange"));
        const topic = document.getElementById("topic-3");
        const found = [topic.open, topic.querySelector(".pick:checked").dataset.system];
        document.querySelector("#topic-5 summary").click();
        return [...found, location.hash];
    """) == [True, "1", "#topic=T05"]
    assert browser.said == []


def test_a_topic_shows_documents_bars_and_its_story(browser: Browser, show: Callable[[str], Use]) -> None:
    use = show(page(made_run()))
    relevant, checks, groups, moved = use("""
        const topic = opened(document.querySelector(".topic"));
        const cells = (row) => [...row.cells].map((cell) => cell.textContent);
        const rows = all(".ranking tr.r", topic).map(cells);
        return [
          rows.length, rows.filter((row) => row[1] === "✓").length,
          all(".ranking i.g", topic).map((one) => `${one.className} ${one.textContent}`),
          all(".ranking td.n", topic).map((one) => one.textContent),
        ];
    """)
    assert relevant == checks > 0
    assert "g g0 female" in groups
    assert moved
    assert all(re.fullmatch(r"new|↑\d+|↓\d+|=", one) for one in moved)
    closed, opened = use("""
        const topic = document.querySelector(".topic");
        const hit = all(".ranking details.text", topic).find((one) => one.checkVisibility());
        const text = () => hit.querySelector("p").checkVisibility() ? hit.querySelector("p").textContent : "";
        const closed = text();
        hit.querySelector("summary").click();
        return [closed, text()];
    """)
    assert closed == ""
    assert opened.endswith(" was a lawyer, or not.")
    before, after = use("""
        const topic = document.querySelector(".topic");
        const captions = () => all(".ranking caption", topic).filter((one) => one.offsetParent);
        const rankings = () => captions().map((one) => one.textContent.trim());
        const before = rankings();
        topic.querySelector('label[for="pick-1-1"]').click();
        return [before, rankings()];
    """)
    assert (sorted(before), sorted(after)) == (["BM25", "agent, exposure"], ["BM25", "BM25+RM3"])
    text = use("""
        all(".topic").forEach(opened);
        return document.getElementById("list").textContent;
    """)
    for said in (
        "The user's query: Lawyers",
        "Topic words, whatever the group:",
        r"Aimed at female \(gender\), which had \d+% \(target \d+%\)\. Feedback added:",
        "Dropped, not in the index: zyzzyva",
        r"gap \d\.\d{4}, was \d\.\d{4}; now \d+% (accepted|discarded)",
        r"Stopped: the gap did not fall\. The ranking that is judged:",
        "agent, exposure failed on this topic: the model refused three times",
    ):
        assert re.search(said, text), said
    assert browser.said == []


def test_no_label_of_a_plot_lies_on_another(show: Callable[[str], Use]) -> None:
    """As the browser draws them."""
    for systems in (5, 14, 26):
        labels, overlapping = show(page(wide_run(20, systems)))("""
            const across = (a, b) => a.left < b.right - 1 && b.left < a.right - 1;
            const meets = (a, b) => across(a, b) && a.top < b.bottom - 2 && b.top < a.bottom - 2;
            const overlapping = [];
            let labels = 0;
            for (const plot of all("svg.plot")) {
              const texts = all("text", plot).map((one) => [one.textContent, one.getBoundingClientRect()]);
              labels += texts.length;
              texts.forEach(([one, box], place) => {
                for (const [other, its] of texts.slice(place + 1)) if (meets(box, its)) overlapping.push([one, other]);
              });
            }
            return [labels, overlapping];
        """)
        assert labels > 30
        assert overlapping == []


def test_nothing_is_wider_than_the_screen(browser: Browser, show: Callable[[str], Use]) -> None:
    use = show(page(made_run()))
    for width in (360, 768, 1280):
        browser.size(width)
        use("""
            all(".topic").forEach(opened);
            for (const details of all("details")) details.open = true;
            for (const topic of all(".topic")) topic.style.contentVisibility = "visible";
        """)
        assert browser.beyond(width, ".scroll, .sideways, nav, .away, svg") == []
        assert browser.run("document.body.scrollWidth") <= width
    # No column is cut off on a laptop but of the table for programs.
    cut = use(
        "return all('.scroll').filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent)"
    )
    assert len(cut) == 1
    assert "randomization_holm" in cut[0]


@needs_axe
def test_axe_finds_nothing_serious(browser: Browser, show: Callable[[str], Use]) -> None:
    """In light and dark, on a screen and on a phone."""
    use = show(page(made_run(3)))
    for scheme, width in (("light", 1280), ("dark", 390)):
        browser.size(width)
        browser.prefer(scheme)
        use("all('details').forEach((one) => { one.open = true; })")
        browser.wait("document.querySelector('.topic .compare') !== null")
        assert barriers(browser) == []
