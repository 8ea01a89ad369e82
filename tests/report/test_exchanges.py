"""What models were asked, on a run's page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fairagent.llm.exchange import Attempt, Exchange, Transcript
from fairagent.report import topics
from fairagent.report.page import write_page
from fairagent.report.topics import ShownExchange, shown_exchanges

from .runs import tiny_run
from .test_page import HOSTILE, data_of

QUESTION = Exchange(
    at="2026-01-01T00:00:00.000+00:00",
    prompt="refine_query",
    messages=(("system", "Choose keywords."), ("user", HOSTILE)),
    reply="Keywords",
    temperature=None,
    max_tokens=None,
    seed=None,
    model="m",
    text='{"keywords": ["judge"]}',
    error="",
    finish="stop",
    calls=2,
    input_tokens=30,
    output_tokens=8,
    estimated=False,
    cost=None,
    seconds=1.5,
    cached=False,
    notes=(),
    attempts=(Attempt("no JSON", "well,"),),
    system="B",
    topic="t1",
)


@pytest.fixture
def write(tmp_path: Path):
    """A transcript of these exchanges."""

    def write(*listed: Exchange) -> Path:
        with Transcript(tmp_path / "transcript.jsonl") as file:
            for one in listed:
                file.add(one)
        return tmp_path / "transcript.jsonl"

    return write


def test_they_stand_by_topic_and_system_and_a_question_once(write) -> None:
    again = replace(QUESTION, attempts=(), cached=True, seconds=0.0)
    other = replace(QUESTION, prompt="judge_relevance", error="the model is down", text="")
    opening = replace(QUESTION, topic="", system="")
    found = shown_exchanges(write(QUESTION, other, opening, again))
    messages = QUESTION.messages
    assert found == {
        ("t1", "B"): [
            ShownExchange("refine_query", messages, QUESTION.text, (), 30, 8),
            ShownExchange("judge_relevance", messages, "", ("no JSON", "the model is down"), 30, 8),
        ]
    }
    assert shown_exchanges(Path("nowhere")) == {}


def test_what_is_long_is_cut_and_what_is_too_much_left_out(write, monkeypatch: pytest.MonkeyPatch) -> None:
    long = replace(QUESTION, text="x" * 5000)
    path = write(long, replace(long, topic="t2"))
    assert shown_exchanges(path)["t1", "B"][0].reply == "x" * 4000 + "… (1,000 more characters)"
    monkeypatch.setattr(topics, "MOST", 6000)
    assert shown_exchanges(path).keys() == {("t1", "B")}


def test_the_page_has_them_as_text(write, tmp_path: Path) -> None:
    write(QUESTION)
    write_page(tiny_run(), tmp_path / "report.html")
    data = data_of((tmp_path / "report.html").read_text(encoding="utf-8"))
    plain, agent = data["topics"][0]["panels"]
    assert "exchanges" not in plain
    ((prompt, messages, reply, faults, *tokens),) = agent["exchanges"]
    assert (prompt, reply, faults, tokens) == ("refine_query", QUESTION.text, ["no JSON"], [30, 8])
    assert [role for role, _ in messages] == ["system", "user"]
    assert data["texts"][messages[0][1]] == "Choose keywords."
    assert "<script>alert" not in (tmp_path / "report.html").read_text(encoding="utf-8")
