"""What the studio tells of a run: topics, exchanges with models, two runs compared; by API and in a real Chromium."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, needs_chromium
from studio_server import TOKEN, Studio, desk_of, running

from fairagent.llm.exchange import read_transcript
from fairagent.studio import runs as run_pages

from .asked_runs import make_runs


@pytest.fixture(scope="module")
def runs(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of three topics, of other temperatures."""
    return make_runs(folder, tmp_path_factory.mktemp("asked"), one=0.1, two=0.9)


@pytest.fixture(scope="module")
def studio(folder: Path, runs: Path) -> Iterator[Studio]:
    with running(desk_of(folder, cache=""), runs=runs) as studio:
        yield studio


def got(studio: Studio, path: str, status: int = 200, **query: Any) -> Any:
    with studio.client() as client:
        reply = client.get(f"/api/{path}", params=query)
    assert reply.status_code == status, reply.text
    return reply.json()


def test_the_topics_of_a_run(studio: Studio) -> None:
    run = got(studio, "runs/one")
    assert (run["kind"], run["systems"], run["outcomes"], run["planned"]) == ("ranking", ["BM25", "asked"], 6, 6)
    assert [(one["id"], one["query"], one["done"], one["exchanges"]) for one in run["topics"]] == [
        ("T1", "lawyer", 2, 1),
        ("T2", "court town", 2, 1),
        ("T3", "judges before a case", 2, 1),
    ]
    assert (run["exchanges"], run["damaged"], run["without_topic"], run["found"]) == (3, 0, 0, 3)
    assert run["topics"][0]["calls"] == 3


@pytest.mark.parametrize(
    ("text", "topics", "where"),
    [
        ("COURT TOWN", ["T2"], "topic"),
        ("zanzibar", ["T1", "T2", "T3"], "exchange 1, reply"),
        ("server is busy", ["T1"], "exchange 1, error"),
        ("would rather not", ["T1"], "exchange 1, attempt"),
        ("group_shown_too_little", ["T1", "T2", "T3"], "exchange 1, user"),
        ("nowhere to be found", [], ""),
    ],
)
def test_what_is_searched_for_is_found_wherever_it_stands(
    studio: Studio, text: str, topics: list[str], where: str
) -> None:
    found = got(studio, "runs/one", text=text)
    assert [one["id"] for one in found["topics"]] == topics
    assert found["found"] == len(topics)
    if topics:
        match = found["topics"][0]["matches"][0]
        assert match["where"] == where
        assert text.lower() in match["text"].lower()


def test_a_topic_has_every_system_and_the_whole_exchange(studio: Studio, runs: Path) -> None:
    topic = got(studio, "runs/one/topic", id="T1")
    plain, asked = topic["systems"]
    assert (plain["system"], plain["exchanges"], asked["system"]) == ("BM25", [], "asked")
    assert [step["source"] for step in asked["outcome"]["steps"]] == ["query", "llm"]
    (one,) = asked["exchanges"]
    (kept, *_) = read_transcript(runs / "one" / "transcript.jsonl")
    assert kept is not None
    assert [message["text"] for message in one["messages"]] == [text for _, text in kept.messages]
    assert [message["role"] for message in one["messages"]] == ["system", "user"]
    assert one["answer"]["text"].endswith('{"keywords": ["she", "town"]} zanzibar')
    overload, refused = one["attempts"]
    assert "the server is busy" in overload["error"]
    assert refused["answer"]["text"] == "I would rather not."
    assert refused["correction"].startswith("Your previous reply could not be used")
    assert (one["calls"], one["prompt"], one["model"], one["number"]) == (3, "refine_query", "tiny-2026", 1)


def test_a_long_text_is_cut_and_says_so_and_is_there_as_a_whole(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_pages, "LONGEST_SHOWN", 30)
    cut = got(studio, "runs/one/topic", id="T1")["systems"][1]["exchanges"][0]
    whole = got(studio, "runs/one/exchange", number=1)
    for short, long in zip(cut["messages"], whole["messages"], strict=True):
        assert long["text"].startswith(short["text"])
        assert (len(short["text"]), short["more"], long["more"]) == (30, len(long["text"]) - 30, 0)
    assert "no exchange" in got(studio, "runs/one/exchange", 400, number=99)["error"]


def test_what_there_is_not(studio: Studio) -> None:
    assert "no run 'three'" in got(studio, "runs/three", 400)["error"]
    assert "no topic 'T9'" in got(studio, "runs/one/topic", 400, id="T9")["error"]
    assert "longer than 200 characters" in got(studio, "runs/one", 400, text="x" * 201)["error"]
    assert "no run 'three'" in got(studio, "compared", 400, left="one", right="three")["error"]


def test_two_runs_compared(studio: Studio, runs: Path) -> None:
    found = got(studio, "compared", left="one", right="two")
    assert (found["systems"], found["only_left"], found["only_right"]) == (["BM25", "asked"], [], [])
    assert [line for line in found["differences"] if ".server: was" not in line] == [
        f"systems.{name}.settings.model.temperature: was 0.1, is 0.9" for name in ("BM25", "asked")
    ]
    rows = {(row["system"], row["dimension"], row["measure"]): row for row in found["rows"]}
    assert list(rows) == [
        (system, dimension, measure)
        for system in ("BM25", "asked")
        for dimension, measure in (("", "nDCG@10"), ("gender", "AWRF@10"))
    ]
    for row in rows.values():
        assert row["topics"] == row["wins"] + row["ties"] + row["losses"] == 3
        assert row["left"] == row["right"]
        assert row["difference"] == 0
    results = (runs / "one" / "results.csv").read_text(encoding="utf-8")
    assert f"{rows['asked', 'gender', 'AWRF@10']['left']:.4f}"[:5] in results


# --- in a browser -------------------------------------------------------------------------------------------------


@pytest.fixture
def page(browser: Browser, studio: Studio) -> Iterator[Browser]:
    """Whoever has the token; nothing may be complained of, and nothing asked for elsewhere."""
    browser.begin(f"{studio.url}/#token={TOKEN}")
    with browser.quiet(studio.url):
        yield browser


ROWS = "document.querySelectorAll('#topics tbody tr').length"
SHOWN = "!document.getElementById('topic').hidden && document.querySelectorAll('#panels .panel').length"


class TestInABrowser:
    pytestmark = needs_chromium

    def test_a_run_is_opened_searched_and_an_exchange_read(self, page: Browser, studio: Studio) -> None:
        page.open(f"{studio.url}/runs")
        page.wait("document.querySelectorAll('#runs tbody tr').length === 2")
        # The run that was begun last is the first.
        assert page.text("#runs tbody tr:first-child a") == "two"
        page.run("document.querySelector('#runs tbody tr:nth-child(2) a').click()")
        page.wait(f"location.pathname === '/runs/one/topics' && {ROWS} === 3")
        page.run("document.getElementById('text').value = 'rather NOT'")
        page.run("document.querySelector('#find button').click()")
        page.wait(f"location.search === '?text=rather+NOT' && {ROWS} === 1")
        assert page.text("#topics mark") == "rather not"
        page.run("document.querySelector('#topics tbody a').click()")
        page.wait(f"{SHOWN} === 2")
        assert page.run("location.search") == "?text=rather+NOT&topic=T1"
        exchange = "document.querySelector('.exchange')"
        assert page.run(f"{exchange}.open") is True
        said = page.text(".exchange")
        for text in ("refine_query", "2 attempts before", "the server is busy", "I would rather not.", "3 calls"):
            assert text in said, said
        assert "Your previous reply could not be used" in said
        (gender,) = got(studio, "runs/one/topic", id="T1")["systems"][1]["outcome"]["exposures"]
        share, target = (round(100 * gender[name][0]) for name in ("shares", "target"))
        assert f"female\n{share}%, target {target}%" in page.text(".panel:nth-of-type(2)")
        assert page.run(f"[...{exchange}.querySelectorAll('.role')].map((one) => one.textContent)") == [
            "system",
            "user",
            "what came",
            "added to the last message of the next request",
            "reply",
        ]

    def test_a_step_says_why_it_was_taken_or_left(self, page: Browser, studio: Studio) -> None:
        page.open(f"{studio.url}/runs/one/topics?topic=T1")
        page.wait(f"{SHOWN} === 2")
        first, second = got(studio, "runs/one/topic", id="T1")["systems"][1]["outcome"]["steps"]
        said = page.text(".panel:nth-of-type(2) .story li:nth-child(2) .verdict-of")
        verdict = "accepted" if second["accepted"] else "refused"
        assert said == f"{verdict} the gap is {second['gap']:.4f}, was {first['gap']:.4f}"
        # The first list is nobody's decision.
        assert not page.run("document.querySelector('.panel:nth-of-type(2) .story li:first-child .verdict-of')")

    def test_a_hostile_reply_is_text(self, page: Browser, studio: Studio) -> None:
        page.open(f"{studio.url}/runs/one/topics?topic=T2&text=zanzibar")
        page.wait(f"{SHOWN} === 2")
        reply = page.run("[...document.querySelectorAll('.exchange pre')].at(-1).textContent")
        assert reply.startswith("<img src=x onerror=")
        assert "\x1b" not in reply
        assert "\u202e" not in reply
        assert page.run("document.querySelectorAll('main img, main script').length") == 0
        assert page.run("document.title") == "one: fairagent studio"

    def test_two_runs_are_compared_and_shown_side_by_side(self, page: Browser, studio: Studio) -> None:
        page.open(f"{studio.url}/runs")
        page.wait("document.querySelectorAll('#runs tbody tr').length === 2")
        assert page.run("document.querySelector('#compare button').disabled") is True
        page.run("[...document.querySelectorAll('#runs input')].reverse().forEach((box) => box.click())")
        page.run("document.querySelector('#compare button').click()")
        page.wait("location.search === '?left=one&right=two' && document.getElementById('found')?.hidden === false")
        assert page.run("document.querySelectorAll('#rows tbody tr').length") == 4
        assert "temperature: was 0.1, is 0.9" in page.text("#made")
        page.run("document.querySelector('#rows p a').click()")
        page.wait(f"location.pathname === '/runs/one/topics' && {ROWS} === 3")
        page.run("document.querySelector('#topics tbody a').click()")
        page.wait(f"{SHOWN} === 4")
        assert page.run("document.querySelectorAll('#panels .twin').length") == 2
        assert page.run("document.getElementById('with').value") == "two"

    @pytest.mark.parametrize("width", [360, 768])
    def test_nothing_is_wider_than_the_screen(self, page: Browser, studio: Studio, width: int) -> None:
        page.size(width)
        for place, there in (
            ("runs", "document.querySelectorAll('#runs tbody tr').length === 2"),
            ("runs/one/topics?topic=T1&with=two&text=she", f"{SHOWN} === 4"),
            ("compare?left=one&right=two", "!document.getElementById('found').hidden"),
        ):
            page.open(f"{studio.url}/{place}")
            page.wait(there)
            assert page.run("document.documentElement.scrollWidth") == width, place
            assert page.beyond(width, ".scroll, pre, nav, svg") == [], place

    def test_the_keyboard_is_enough(self, page: Browser, studio: Studio) -> None:
        """From the list of runs to the text of an exchange."""
        page.open(f"{studio.url}/runs")
        page.wait("document.querySelectorAll('#runs tbody tr').length === 2")
        focused = "document.activeElement.textContent"
        tab_to(page, f"{focused} === 'one'")
        page.press("Enter")
        page.wait(f"location.pathname === '/runs/one/topics' && {ROWS} === 3")
        tab_to(page, "document.activeElement.id === 'text'")
        page.type("lawyer")
        page.press("Enter")
        page.wait("location.search === '?text=lawyer'")
        tab_to(page, f"{focused} === 'T1'")
        page.press("Enter")
        page.wait(f"{SHOWN} === 2 && document.activeElement.id === 'topic-name'")
        tab_to(page, "document.activeElement.matches('.exchange summary')")
        page.press("Enter")
        page.wait("document.querySelector('.exchange').open === false")
        page.press("Enter")
        page.wait("document.querySelector('.exchange').open")
        tab_to(page, "document.activeElement.matches('.exchange pre')")

    def test_a_run_that_goes_on_is_seen_to(self, page: Browser, studio: Studio, runs: Path) -> None:
        """What comes while somebody looks appears; what is ticked and open stays so."""
        going = runs / "three"
        shutil.copytree(runs / "one", going)
        journal = going / "journal.jsonl"
        lines = journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(b"".join(lines[:2]))
        row = "[...document.querySelectorAll('#runs tbody tr')].find((one) => one.textContent.startsWith('three'))"
        try:
            page.open(f"{studio.url}/runs")
            page.wait(f"{row}?.textContent.includes('2 of 6')")
            page.run(f"{row}.querySelector('input').click()")
            page.run(f"{row}.querySelector('input').focus()")
            journal.write_bytes(b"".join(lines[:4]))
            page.wait(f"{row}.textContent.includes('4 of 6')")
            assert page.run(f"{row}.querySelector('input').checked") is True
            assert page.run(f"document.activeElement === {row}.querySelector('input')") is True
            page.open(f"{studio.url}/runs/three/topics?topic=T1")
            page.wait(f"{SHOWN} === 2")
            page.run("document.querySelector('.exchange').open = true")
            assert "4 of 6" in page.text("#about")
            journal.write_bytes(b"".join(lines))
            page.wait("document.getElementById('about').textContent.includes('6 of 6')")
            assert page.run("document.querySelector('.exchange').open") is True
            assert page.run("document.querySelector('progress')") is None
        finally:
            shutil.rmtree(going)


def tab_to(page: Browser, there: str) -> None:
    """Press the tabulator until it holds."""
    for _ in range(60):
        if page.run(there):
            return
        page.press("Tab")
    pytest.fail(f"in vain: {there}")
