"""The page in a real browser: it sorts, filters, follows links, and fits a phone. Skipped where there is no chromium.

The browser runs a copy of the page with one more script, which uses the page as people would and writes down what it
sees; that script is added to the copy's Content-Security-Policy by its hash, so the policy stays as strict.
"""

from __future__ import annotations

import html
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from browser import CHROMIUM, needs_chromium

from fairagent.report.page import digest, page

from .runs import SYSTEMS, made_run

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--enable-logging=stderr"),
)
SEEN = '<script id="seen" type="application/json">'

pytestmark = [
    needs_chromium,
    pytest.mark.slow,
]


@pytest.fixture(scope="module")
def text() -> str:
    return page(made_run())


@pytest.fixture
def use(tmp_path: Path, text: str):
    """Open the page and run the body of a function in it; what that returns, and what the console said."""

    def use(body: str, *flags: str, width: int = 1280) -> tuple[Any, list[str]]:
        act = f"""
            const all = (selector, root = document) => [...root.querySelectorAll(selector)];
            const shown = (root) => all(root).filter((one) => one.offsetParent !== null);
            const set = (id, value, event) => {{
              document.getElementById(id).value = value;
              document.getElementById(id).dispatchEvent(new Event(event));
            }};
            const seen = document.createElement("script");
            seen.id = "seen";
            seen.type = "application/json";
            seen.textContent = JSON.stringify((() => {{ {body} }})());
            document.body.append(seen);
        """
        allowed = text.replace("script-src ", f"script-src '{digest(act)}' ", 1)
        assert allowed != text
        copy = tmp_path / "page.html"
        copy.write_text(allowed.replace("</body>", f"<script>{act}</script></body>"), encoding="utf-8")
        profile = f"--user-data-dir={tmp_path / 'profile'}"
        command = [str(CHROMIUM), *FLAGS, profile, f"--window-size={width},900", *flags, "--dump-dom", copy.as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        said = re.findall(r"CONSOLE.*", done.stderr)
        assert SEEN in done.stdout, done.stderr
        return json.loads(html.unescape(done.stdout.split(SEEN)[1].split("</script>")[0])), said

    return use


def test_a_click_sorts_a_table_and_another_turns_it_round(use):
    (names, up, down, sort), said = use("""
        const table = document.querySelector("table.results");
        const head = all("thead tr:last-child th", table)[1];  // difference in nDCG
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
    assert down == [*expected, SYSTEMS[0]]
    assert up == [*expected[::-1], SYSTEMS[0]]
    assert sort == "ascending"
    assert said == []


def test_topics_are_filtered_by_text_and_system_and_put_in_order(use):
    (before, botanists, nothing, tabs, ordered, gains), said = use("""
        const topics = () => shown(".topic").map((topic) => topic.querySelector(".id").textContent);
        const count = () => document.getElementById("count").value;
        const before = [topics().length, count()];
        set("text", "BOTANI", "input");
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
    assert said == []


def test_a_link_opens_its_topic_at_its_system(use):
    (opened, checked), said = use("""
        const link = document.querySelector('.extremes a[data-system="1"]');
        link.click();
        const topic = document.querySelector(link.getAttribute("href")).closest(".topic");
        return [topic.open, topic.querySelector(".pick:checked").dataset.system];
    """)
    assert opened
    assert checked == "1"
    assert said == []


def test_choosing_a_system_needs_no_script(use):
    (before, after), _ = use("""
        const topic = document.querySelector(".topic");
        topic.open = true;
        const captions = () => all(".ranking caption", topic).filter((one) => one.offsetParent);
        const rankings = () => captions().map((one) => one.textContent.trim());
        const before = rankings();
        topic.querySelector('label[for="pick-1-1"]').click();
        return [before, rankings()];
    """)
    assert sorted(before) == ["BM25", "agent, exposure"]
    assert sorted(after) == ["BM25", "BM25+RM3"]


@pytest.mark.parametrize("width", [360, 390, 768, 1280])
def test_nothing_is_wider_than_the_screen(use, width):
    """The browser's window cannot be as narrow as a phone's, but the page can."""
    (page_width, wide), _ = use(
        f"""
        document.documentElement.style.width = "{width}px";
        for (const details of all("details")) details.open = true;
        for (const topic of all(".topic")) topic.style.contentVisibility = "visible";
        const inside = (one) => one.closest(".scroll, .sideways, nav, .away, svg");
        const wide = all("body *").filter((one) => one.getBoundingClientRect().right > {width} + 1 && !inside(one));
        return [document.body.scrollWidth, wide.map((one) => one.outerHTML.slice(0, 120))];
        """,
        width=max(width, 500),
    )
    assert wide == []
    assert page_width == width


def test_dark_and_light_are_different(use):
    ground = "return getComputedStyle(document.body).backgroundColor;"
    light, _ = use(ground)
    dark, _ = use(ground, "--force-dark-mode")
    assert light == "rgb(250, 250, 247)"
    assert dark == "rgb(16, 19, 22)"


def test_the_page_keeps_to_its_policy(use):
    """Neither the style sheet nor the script is refused, and a script that is not on the list does not run."""
    (sheets, ran), said = use("""
        const other = document.createElement("script");
        other.textContent = "window.ran = true";
        document.body.append(other);
        return [document.styleSheets.length, window.ran ?? false];
    """)
    assert sheets == 1
    assert not ran
    assert all("Executing inline script violates" in line for line in said)
