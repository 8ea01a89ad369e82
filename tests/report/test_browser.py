"""The page in a real browser: it sorts, filters, follows links, and fits a phone. Skipped where there is no chromium.

The browser runs a copy of the page with one more script, which uses the page as people would and writes down what it
sees; that script is added to the copy's Content-Security-Policy by its hash, so the policy stays as strict.
"""

from __future__ import annotations

import html
import json
import re
import subprocess
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from browser import CHROMIUM, needs_chromium

from fairagent.report.page import digest, page
from fairagent.report.topics import ShownExchange, exposure_bar, palette

from .runs import SYSTEMS, made_run, tiny_run, wide_run

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--enable-logging=stderr"),
)
SEEN = '<script id="seen" type="application/json">'

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def text() -> str:
    return page(made_run())


@pytest.fixture
def use(use_page, text: str):
    """Use the page of the made run."""
    return use_page(text)


@pytest.fixture
def use_page(tmp_path: Path):
    """Open a page and run the body of a function in it; what that returns, whose console says nothing."""
    return lambda text: partial(_use, tmp_path, text)


def _use(tmp_path: Path, text: str, body: str, *flags: str, width: int = 1280, allowed_message: str = "nothing") -> Any:
    act = f"""
        const all = (selector, root = document) => [...root.querySelectorAll(selector)];
        const opened = (topic) => {{
          topic.open = true;
          topic.dispatchEvent(new Event("toggle"));
          return topic;
        }};
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
    messages = re.findall(r"CONSOLE.*", done.stderr)
    assert all(allowed_message in line for line in messages), messages
    assert SEEN in done.stdout, done.stderr
    return json.loads(html.unescape(done.stdout.split(SEEN)[1].split("</script>")[0]))


def test_a_click_sorts_a_table_and_another_turns_it_round(use):
    names, up, down, sort = use("""
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


def test_topics_are_filtered_by_text_and_system_and_put_in_order(use):
    before, botanists, nothing, tabs, ordered, gains = use("""
        const topics = () => shown(".topic").map((topic) => topic.querySelector(".id").textContent);
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


def test_a_link_opens_its_topic_at_its_system(use):
    opened, checked = use("""
        const link = document.querySelector('.extremes a[data-system="1"]');
        link.click();
        const topic = document.querySelector(link.getAttribute("href"));
        return [topic.open, topic.querySelector(".pick:checked").dataset.system];
    """)
    assert opened
    assert checked == "1"


def test_an_address_opens_its_topic_at_its_system_and_a_click_gives_it(use):
    opened, checked, address = use("""
        location.hash = "topic=T03&system=BM25%2BRM3";
        dispatchEvent(new Event("hashchange"));
        const topic = document.getElementById("topic-3");
        const found = [topic.open, topic.querySelector(".pick:checked").dataset.system];
        document.querySelector("#topic-5 summary").click();
        return [...found, location.hash];
    """)
    assert (opened, checked, address) == (True, "1", "#topic=T05")


def test_documents_show_relevance_groups_and_keywords(use):
    relevant, checks, groups, marks, moved = use("""
        const topic = opened(document.querySelector(".topic"));
        const cells = (row) => [...row.cells].map((cell) => cell.textContent);
        const rows = all(".ranking tr.r", topic).map(cells);
        return [
          rows.length, rows.filter((row) => row[1] === "✓").length,
          all(".ranking i.g", topic).map((one) => `${one.className} ${one.textContent}`),
          all("mark", topic).map((one) => one.textContent),
          all(".ranking td.n", topic).map((one) => one.textContent),
        ];
    """)
    assert relevant == checks > 0
    assert "g g0 female" in groups
    assert "lawyer" in marks
    assert all(re.fullmatch(r"new|↑\d+|↓\d+|=", one) for one in moved)
    assert moved


def test_the_text_of_a_document_is_a_click_away(use):
    closed, opened = use("""
        const topic = opened(document.querySelector(".topic"));
        const hit = all(".ranking details.text", topic).find((one) => one.checkVisibility());
        const text = () => hit.querySelector("p").checkVisibility() ? hit.querySelector("p").textContent : "";
        const closed = text();
        hit.querySelector("summary").click();
        return [closed, text()];
    """)
    assert closed == ""
    assert opened.endswith(" was a lawyer, or not.")


@pytest.mark.parametrize("systems", [5, 14, 26])
def test_no_label_of_a_plot_lies_on_another(use_page, systems):
    """Labels are placed by an estimate of their width; here by what the browser draws."""
    labels, overlapping = use_page(page(wide_run(20, systems)))("""
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
    assert labels > 50
    assert overlapping == []


def test_the_story_is_told_and_a_failure_said(use):
    text = use("""
        all(".topic").forEach(opened);
        return document.getElementById("list").textContent;
    """)
    assert "The user's query: Lawyers" in text
    assert "Topic words, whatever the group:" in text
    assert re.search(r"Aimed at female \(gender\), which had \d+% \(target \d+%\)\. Feedback added:", text)
    assert "Dropped, not in the index: zyzzyva" in text
    assert re.search(r"gap \d\.\d{4}, was \d\.\d{4}; now \d+% (accepted|discarded)", text)
    assert "Stopped: the gap did not fall. The ranking that is judged:" in text
    assert "agent, exposure failed on this topic: the model refused three times" in text


def test_what_a_policy_decided_is_told(use_page):
    run = tiny_run()
    plain, agent = run.outcomes[:2]
    chosen = {"why": "the gap is wide", "weights": (("female (gender)", 1.25),), "reason": "relevance fell"}
    steps = (*agent.steps[:2], replace(agent.steps[1], source="refine", accepted=False, terms=(), **chosen))
    outcomes = (plain, replace(agent, steps=steps), *run.outcomes[2:])
    text = use_page(page(replace(run, outcomes=outcomes)))("""
        return opened(document.querySelector(".topic")).textContent;
    """)
    assert (
        "Refine: the gap is wideWeights: female (gender) 1.25gap 0.3000, was 0.3000 discarded: relevance fell" in text
    )


def test_what_a_model_was_asked_is_two_clicks_away(use_page):
    asked = {("t1", "B"): [ShownExchange("refine_query", (("user", "<b>who?</b>"),), "", ("no JSON",), 1200, 1)]}
    closed, opened = use_page(page(tiny_run(), asked))("""
        const topic = opened(document.querySelector(".topic"));
        const exchanges = topic.querySelector(".exchanges");
        const text = () => all("pre", exchanges).filter((one) => one.checkVisibility()).map((one) => one.textContent);
        const closed = text();
        all("summary", exchanges).forEach((one) => one.click());
        return [closed, [...text(), exchanges.innerText]];
    """)
    assert closed == []
    assert opened[:2] == ["<b>who?</b>", "(none)"]
    assert "1,200 tokens in, 1 out; 1 failure" in opened[2]
    assert "no JSON" in opened[2]


def test_bars_are_those_that_python_draws(use):
    colors = palette(made_run())
    drawn = exposure_bar(made_run().outcomes[0].exposures[0], colors)
    words, paths = use("""
        const topic = opened(document.querySelector(".topic"));
        const bar = all(".side.baseline .story .end .bar", topic)[0];
        return [bar.getAttribute("aria-label"), all("path", bar).map((path) => path.getAttribute("d"))];
    """)
    assert words == drawn.words
    numbers = [re.findall(r"[\d.]+", path) for path in paths]
    expected = [re.findall(r"[\d.]+", path) for _, path in drawn.parts]
    assert [len(one) for one in numbers] == [len(one) for one in expected]
    for one, other in zip(numbers, expected, strict=True):
        assert list(map(float, one)) == pytest.approx(list(map(float, other)), abs=0.3)


def test_a_topic_shows_one_system_beside_the_baseline(use):
    before, after = use("""
        const topic = opened(document.querySelector(".topic"));
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
    page_width, wide = use(
        f"""
        document.documentElement.style.width = "{width}px";
        all(".topic").forEach(opened);
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


def test_the_page_keeps_to_its_policy(use):
    """Neither the style sheet nor the script is refused, and a script that is not on the list does not run."""
    sheets, ran = use(
        """
        const other = document.createElement("script");
        other.textContent = "window.ran = true";
        document.body.append(other);
        return [document.styleSheets.length, window.ran ?? false];
    """,
        allowed_message="Executing inline script violates",
    )
    assert sheets == 1
    assert not ran
