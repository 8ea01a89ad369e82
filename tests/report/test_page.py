"""The page as HTML: whole, closed to the network, escaped, and saying what the run says."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from fairagent.evaluate.comparison import compare
from fairagent.evaluate.outcome import GroupShares, HitRecord
from fairagent.evaluate.run import Results
from fairagent.report.page import cut, digest, page

from .runs import MEASURES, ORACLE, failed, made_run, tiny_run, wide_run

VOID = {"meta", "input", "br", "img", "link", "hr"}
HOSTILE = "</style></script><script>alert(1)</script><img src=x onerror=alert(1)> \"'&amp; {{ 7 * 7 }} \u202e\x00\ud800"


class Parsed(HTMLParser):
    """A page as its elements and its text; raises where a tag is closed that is not open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.texts.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())


@pytest.fixture(scope="module")
def text() -> str:
    return page(made_run())


@pytest.fixture(scope="module")
def parsed(text) -> Parsed:
    return Parsed(text)


def test_the_page_is_whole_and_reaches_out_to_nothing(text, parsed):
    assert parsed.open == []
    ids = [attributes["id"] for _, attributes in parsed.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = [attributes["href"][1:] for name, attributes in parsed.elements if "href" in attributes]
    targets += [attributes["for"] for attributes in parsed.all("label") if "for" in attributes]
    assert set(targets) <= set(ids)
    assert not re.search(r"https?://|url\((?!#)|@import|fetch\(|XMLHttpRequest", text)
    (policy,) = [m["content"] for m in parsed.all("meta") if m.get("http-equiv") == "Content-Security-Policy"]
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    allowed = f"style-src '{digest(style)}'; script-src '{digest(script)}'"
    assert policy == f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
    # None of these would be allowed, so none may be there.
    for name, attributes in parsed.elements:
        assert not [one for one in attributes if one in ("style", "src") or one.startswith("on")]
        assert attributes.get("href", "#").startswith("#"), (name, attributes)
    assert not parsed.all("link")


def test_everything_from_outside_is_text():
    run = hostile_run()
    text = page(run)
    told = Parsed(text)
    assert [script.get("type") for script in told.all("script")] == ["application/json", None]
    assert len(told.all("style")) == 1
    assert not told.all("img")
    assert told.open == []
    shown = HOSTILE.translate(dict.fromkeys((0x00, 0xD800, 0x202E), "\ufffd"))
    # Name, collection, systems, titles, queries, terms, labels, reasons, messages, provenance, measures.
    assert told.text.count(shown) > 40
    data = json.dumps(data_of(text), ensure_ascii=False)
    assert json.dumps(shown, ensure_ascii=False)[1:-1] in data
    assert not re.search("[\u202e\x00\ud800]", data)


def hostile_run() -> Results:
    """A run in which everything that can be a text from outside is an attack."""
    run = made_run(12)
    systems = (HOSTILE, *run.systems[1:])
    gender = GroupShares(HOSTILE, (HOSTILE, "male"), (0.4, 0.6), (0.5, 0.5), 0.1)
    hit = HitRecord(HOSTILE, HOSTILE, 1.0, True, {HOSTILE: {HOSTILE: 0.7, "male": 0.3}})

    def spoiled(outcome):
        values = {("" if not d else HOSTILE): v for d, v in outcome.values.items()}
        said = {"query": HOSTILE, "exposures": (gender,)}
        told = {**said, "dropped": (HOSTILE,), "source": HOSTILE}
        steps = tuple(
            replace(
                one, **told, terms=tuple((HOSTILE, 1.0) for _ in one.terms), aim=one.aim and f"{HOSTILE} ({HOSTILE})"
            )
            for one in outcome.steps
        )
        own = {"topic": f"{outcome.topic} {HOSTILE}", "system": systems[run.systems.index(outcome.system)]}
        made = {"values": values, "hits": (hit,), "steps": steps, "stopped": HOSTILE}
        return replace(outcome, **said, **own, **made, failed=outcome.failed and HOSTILE)

    outcomes = tuple(map(spoiled, run.outcomes))
    answers = {(outcome.topic, outcome.system): outcome for outcome in outcomes}
    topics = [t for t in dict.fromkeys(o.topic for o in outcomes) if not t.startswith("T09")]
    columns = [("", str(MEASURES[0])), *((HOSTILE, str(m)) for m in MEASURES[1:])]
    return replace(
        run,
        name=HOSTILE,
        collection=HOSTILE,
        systems=systems,
        baseline=HOSTILE,
        dimensions=(HOSTILE,),
        comparisons=compare(answers, topics, systems, columns, 1),
        outcomes=outcomes,
        excluded={f"T09 {HOSTILE}": HOSTILE},
        provenance={HOSTILE: {HOSTILE: [HOSTILE, {HOSTILE: HOSTILE}]}, "about": HOSTILE},
    )


def test_equal_runs_give_equal_bytes(text):
    made_run.cache_clear()
    assert page(made_run()) == text


@pytest.mark.slow
@pytest.mark.parametrize(("topics", "systems", "megabytes"), [(60, 26, 3), (2000, 3, 8)])
def test_a_page_of_many_rankings_stays_a_page(topics, systems, megabytes):
    assert megabytes / 2 < len(page(wide_run(topics, systems)).encode()) / 1e6 < megabytes


def test_the_tables_have_every_number(parsed):
    shown = parsed.text
    for row in made_run().comparisons:
        assert f"{row.mean:.4f}" in shown
        assert f"[{row.low:.4f}, {row.high:.4f}]" in shown
        if row.difference is not None:
            assert f"{row.wins}/{row.ties}/{row.losses}" in shown
    assert "0.6640" in parsed.texts


def test_oracles_are_marked_wherever_they_stand(text):
    name = rf'<span class="sys"><svg[^>]*>.{{,40}}</svg><span>{re.escape(ORACLE)}</span></span>'
    badge = ' <span class="badge oracle">oracle</span>'
    assert len(re.findall(name, text)) == len(re.findall(name + badge, text)) >= 10
    assert "no fair comparison" in text


def test_what_is_missing_is_named(text, parsed):
    assert "T98: no relevant document" in parsed.text
    assert "T09: agent, exposure failed: the model refused three times" in parsed.text
    assert "not finished" not in text
    run = made_run()
    partial = page(replace(run, partial=True, outcomes=run.outcomes[:-1]))
    assert "<b>This run is not finished.</b> The numbers cover only the 10 topics" in partial


def data_of(text: str) -> dict[str, Any]:
    """What the page's script draws topics from."""
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    return json.loads(found)


def test_every_topic_has_its_line_and_its_data(text, parsed):
    lines = [attributes["id"] for attributes in parsed.all("details") if attributes.get("class") == "topic"]
    assert lines == [f"topic-{number}" for number in range(1, 14)]
    topics = data_of(text)["topics"]
    assert [topic["id"] for topic in topics] == [*dict.fromkeys(o.topic for o in made_run().outcomes), "T98"]
    assert [len(topic["panels"]) for topic in topics] == [5] * 12 + [0]
    assert "This page's own script draws the topics." in parsed.text


def test_the_data_of_a_topic_by_hand():
    data = data_of(page(tiny_run()))
    assert data["documents"] == [["Judges of the courts", [[0, "female"]]], ["d2", []]]
    assert data["scales"] == [["gender", ["female", "male"], [0, 1], [0.5, 0.5]]]
    assert data["snippets"] == ["They <b>sat</b> in court.", ""]
    words = ["query", "topic words", "court", "feedback", "female (gender)", "judg", "the gap did not fall"]
    assert data["texts"] == words
    assert (data["ranked"], data["baseline"]) == (True, 0)
    plain, agent = data["topics"][0]["panels"]
    assert plain["steps"] == [{"source": 0, "gap": "0.4000", "exposures": [[0, [0.2, 0.8], 0]]}]
    assert plain["hits"] == [[0, 1, 0], [1, 0, 0]]
    assert plain["values"] == [0.5, 0.8, 0.4]
    # d2 rose by one.
    assert agent["hits"] == [[1, 0, 1], [0, 1, -1]]
    assert agent["steps"][1]["terms"] == [[2, "0.5"]]
    tried = {"source": 3, "aim": 4, "was": [0.4, 0.4, 0.5], "terms": [[5, "0.2"]], "gap": "0.3500"}
    assert agent["steps"][2] == {**tried, "discarded": True, "exposures": [[0, [0.4, 0.6], 0]]}
    assert agent["stopped"] == 6
    assert agent["gains"] == [0.14]


def test_snippets_are_cut_or_left_out_where_there_are_many():
    assert [len(text) for text in cut(["x" * 200] * 4)] == [200] * 4
    assert {len(text) for text in cut(["x" * 200] * 10_000)} == {150}
    assert cut(["x" * 200] * 30_000) == []
    assert cut([]) == []


TINY = tiny_run()


@pytest.mark.parametrize(
    "changes",
    [
        {"comparisons": (), "outcomes": (), "partial": True},
        {"comparisons": (), "outcomes": (), "excluded": {"t1": "why"}},
        {"comparisons": (), "outcomes": TINY.outcomes[:1], "partial": True},
        {"comparisons": (), "outcomes": tuple(failed(o, "no") for o in TINY.outcomes)},
        {"systems": ("A",), "outcomes": TINY.outcomes[::2], "comparisons": TINY.comparisons[::2]},
        {"dimensions": (), "comparisons": TINY.comparisons[:2]},
        {"outcomes": tuple(replace(o, hits=(), steps=(), exposures=()) for o in TINY.outcomes)},
        {"outcomes": tuple(replace(o, cost=None, calls=3) for o in TINY.outcomes)},
    ],
)
def test_odd_runs_have_a_page(changes):
    parsed = Parsed(page(replace(TINY, **changes)))
    assert parsed.open == []
    assert "two topics" in parsed.text
