"""Results as plain values, for many queries, on an event loop, and the same through every door."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scripted import drawing
from typer.main import get_command
from typer.testing import CliRunner

import fairagent
from fairagent.cli.app import app
from fairagent.errors import SettingsError
from fairagent.search.agent import FairAgent
from fairagent.search.rerank.base import Pool
from fairagent.settings import SearchOptions
from fairagent.types import AnswerResult, Ranking, SearchResult, Step

TEXT = "lawyer number {} of the court"
ROWS = [
    {"id": f"d{i:02}", "text": TEXT.format(i), "gender": "fm"[i % 2], "city": ("Oslo", "Rome")[i % 3 == 0]}
    for i in range(40)
]
COLLECTION = """
name: rows
documents: {path: rows.jsonl, id: id, text: [text]}
groups: {path: rows.jsonl, id: id, dimensions: {gender: {column: gender}}}
target: uniform
"""


@pytest.fixture(scope="module")
def agent() -> FairAgent:
    return FairAgent.from_records(ROWS, groups=["gender"], target="uniform", n=6)


def test_results_are_plain_values_with_texts_and_columns(agent: FairAgent) -> None:
    first = agent.search("lawyer court").hits[0]
    row = next(row for row in ROWS if row["id"] == first.id)
    assert first.text == row["text"]
    assert first.columns["city"] == row["city"]
    long = FairAgent.from_records([{"id": "a", "text": "word " * 1000}]).search("word")
    assert len(long.hits[0].text) >= 4999
    assert len(long.to_dict()["hits"][0]["text"]) == 2000
    found, answered = agent.search("lawyer court"), agent.answer("lawyer court")
    assert json.loads(found.to_json())["hits"] == json.loads(json.dumps(found.to_dict()["hits"]))
    assert json.loads(answered.to_json())["answer"] == answered.answer.text
    assert found.to_dict()["collection"] == "records"
    pytest.importorskip("pandas")
    frame = found.to_frame()
    assert list(frame["id"]) == list(found.ranking.ids)
    assert {"rank", "score", "text", "gender", "city"} <= set(frame.columns)
    assert (len(answered.to_frame()), len(agent.search("nowhere").to_frame())) == (6, 0)


def test_many_queries_are_as_each_alone(agent: FairAgent) -> None:
    queries = ["lawyer", "court", "number"]
    many = agent.search_many(queries, n=3, where={"city": "Oslo"})
    alone = [agent.search(query, n=3, where={"city": "Oslo"}) for query in queries]
    assert [one.ranking.ids for one in many] == [one.ranking.ids for one in alone]
    assert agent.search_many([]) == []


class Meeting:
    """A re-ranker that goes on once two searches have come to it, or, where it `keeps`, notes its threads."""

    def __init__(self, keeps: bool) -> None:
        self.keeps, self.threads, self.barrier = keeps, set[str](), threading.Barrier(2)

    def rerank(self, pool: Pool) -> Ranking:
        self.threads.add(threading.current_thread().name)
        if not self.keeps:
            self.barrier.wait(60)
        return pool.ranking.top(pool.n)

    def keep(self, pool: Pool, served: Pool) -> tuple[str, ...]:
        return ()


@pytest.mark.parametrize("keeps", [False, True], ids=["at once", "with an account"])
@pytest.mark.parametrize("drawn", [False, True], ids=["ranked", "drawn"])
def test_many_queries_are_searched_at_once_but_with_an_account(
    agent: FairAgent, keeps: bool, drawn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairagent.search.agent.cores", lambda: 2)
    made, queries = replace(agent, loop=None, reranker=Meeting(keeps)), ["lawyer", "court", "lawyer", "number"]
    many = (drawing(made, 1.0) if drawn else made).search_many(queries, n=3)
    assert [one.query.text for one in many] == queries
    assert made.reranker.threads == {"MainThread"} if keeps else len(made.reranker.threads) == 2
    requests = [one.trace.draw and one.trace.draw.request for one in many]
    assert requests == ([0, 0, 1, 0] if drawn else [None] * 4)


def test_on_an_event_loop(agent: FairAgent) -> None:
    async def both() -> tuple[SearchResult, AnswerResult, list[Step], list[str]]:
        steps: list[Step] = []
        pieces: list[str] = []
        found = await agent.asearch("lawyer court", steps.append, n=3)
        return found, await agent.aanswer("lawyer court", pieces.append, n=3), steps, pieces

    found, answered, steps, pieces = asyncio.run(both())
    plain = agent.search("lawyer court", n=3)
    assert found.ranking.ids == plain.ranking.ids
    assert len(steps) == len(plain.trace.steps)
    assert "".join(pieces) in ("", answered.answer.text)
    assert answered.answer.text == agent.answer("lawyer court", n=3).answer.text
    with pytest.raises(SettingsError):
        asyncio.run(agent.asearch("lawyer", fairness=-1))


def test_the_command_line_has_an_option_for_each_field() -> None:
    commands: Any = get_command(app)
    for name in ("search", "answer"):
        there = {option for parameter in commands.get_command(None, name).params for option in parameter.opts}
        assert {f"--{field}" for field in SearchOptions.model_fields} <= there


def test_the_same_list_from_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS), encoding="utf-8")
    Path("collection.yaml").write_text(COLLECTION, encoding="utf-8")
    fairagent.build_index("collection.yaml", "index")
    options = ["-c", "collection.yaml", "--index", "index"]
    words = ["--n", "4", "--fairness", "2", "--unknown", "ignore", "--shares", "{gender: {f: 0.25, m: 0.75}}"]
    done = CliRunner().invoke(app, ["search", "lawyer court", *options, *words, "--where", "city=Oslo", "--json"])
    assert done.exit_code == 0, done.output
    printed = json.loads(done.stdout)
    opened = fairagent.open_agent("collection.yaml", "index")
    shares = {"gender": {"f": 0.25, "m": 0.75}}
    found = opened.search("lawyer court", n=4, fairness=2, unknown="ignore", shares=shares, where={"city": "Oslo"})
    mine = json.loads(found.to_json())
    assert {**printed, "seconds": 0} == {**mine, "seconds": 0}
    assert [hit["columns"]["city"] for hit in mine["hits"]] == ["Oslo"] * 4
