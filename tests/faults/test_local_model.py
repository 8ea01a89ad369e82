"""Cases 85 and 86 of docs/reliability.md: a server of a small context, and one that stops in the middle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from evaluate import words
from evaluate.stereotypes import bench

from fairagent.errors import ModelError
from fairagent.evaluate.check import check_experiment
from fairagent.evaluate.experiment import run_experiment
from fairagent.evaluate.run import Run, load_run
from fairagent.evaluate.workers import threads
from fairagent.guests.testing import LoopbackServer, ServerReply, streamed
from fairagent.llm import ModelRequest, stream
from fairagent.llm.models import Models
from fairagent.settings import ModelSettings

pytestmark = pytest.mark.usefixtures("no_variables")

ASKED = ModelRequest((("user", "word " * 80),))
"""400 bytes: about 100 tokens."""


def run_of(file: Path, folder: Path) -> Run:
    with threads(1) as workers:
        return run_experiment(check_experiment(file), folder, workers)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("FAIRAGENT_CACHE", "''")
    with LoopbackServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


def test_85_a_context_that_is_too_small_is_said_before_anything_is_sent(server: LoopbackServer) -> None:
    model = Models().open(ModelSettings(name="tiny", context=149, max_tokens=50))
    with pytest.raises(ModelError, match=r"about 100 tokens and the reply .* is 149 tokens.* nothing was sent"):
        model.complete(ASKED)
    assert server.requests == []


def test_85_items_that_do_not_fit_fail_and_the_others_are_asked(server: LoopbackServer, tmp_path: Path) -> None:
    server.script = bench.model
    systems = "systems: {small: {profile: engine, engine: none, model: {name: tiny, max_tokens: 20, context: 600}}}\n"
    file = words.write(tmp_path, f"kind: stereoset\nname: small\nquestions: {{path: benchmark.txt}}\n{systems}")
    benchmark = bench.write_stereoset(tmp_path / "benchmark.txt")
    text = benchmark.read_text(encoding="utf-8").replace('"The nurse is good."', f'"{"The nurse is good. " * 200}"')
    benchmark.write_text(text, encoding="utf-8")
    run = run_of(file, tmp_path / "run")
    failed = {one.topic: str(one.failed) for one in run.outcomes if one.failed}
    assert list(failed) == ["q4"]
    assert "the context of 'tiny' is 600 tokens" in failed["q4"]
    assert len(server.requests) == 3


def test_86_a_server_that_stops_while_it_answers(server: LoopbackServer) -> None:
    server.script = [replace(streamed("red", " and", " blue"), cut=200), streamed("green")]
    model, told = Models().open(ModelSettings(name="tiny")), list[str]()
    with pytest.raises(ModelError, match="not asked for again, since part of it was shown"):
        stream(model, ASKED, told.append)
    assert told[0] == "red"
    assert len(server.requests) == 1


def test_86_what_is_done_is_kept_and_the_same_run_goes_on(server: LoopbackServer, tmp_path: Path) -> None:
    down = [False, False, True, True]

    def answer(request: dict[str, object]) -> ServerReply:
        reply = bench.model(request)
        return replace(reply, cut=20) if down and down.pop(0) else reply

    server.script = answer
    systems = "systems: {alone: {profile: engine, engine: none, model: {name: tiny, attempts: 1}}}\n"
    file = words.write(tmp_path, f"kind: stereoset\nname: gone\nquestions: {{path: benchmark.txt}}\n{systems}")
    bench.write_stereoset(tmp_path / "benchmark.txt")
    run = run_of(file, tmp_path / "run")
    assert [bool(one.failed) for one in run.outcomes] == [False, False, True, True]
    assert len(server.requests) == 4
    again = run_of(file, tmp_path / "run")
    assert not any(one.failed for one in again.outcomes)
    assert len(server.requests) == 6
    assert load_run(tmp_path / "run").excluded == {}
