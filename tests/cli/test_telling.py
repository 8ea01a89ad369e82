"""What a command says in a pipe: a line every ten seconds of what is not done, and what it may ask a model."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import pytest

from fairagent.cli import telling
from fairagent.cli.options import status
from fairagent.cli.telling import EVERY, ToldProgress, ahead, of_calls, tell
from fairagent.llm.prompts.calls import Calls
from fairagent.settings import ModelSettings
from fairagent.settings.models import Price
from fairagent.storage.threads import progress

from .conftest import Call, Small
from .test_evaluate import write


def ticks(count: int) -> Callable[[float], bool]:
    """A clock: so many waits, each of which must be of ten seconds, before it is time to end."""
    left = iter(range(count))

    def wait(seconds: float) -> bool:
        assert seconds == EVERY
        return next(left, None) is None

    return wait


def test_a_line_every_ten_seconds() -> None:
    said: list[str] = []
    bar = ToldProgress(said.append)
    first = bar.add_task("evaluating first\n\x1b[31m", total=160)
    bar.add_task("done before", total=3, completed=3)
    bar.update(first, completed=12)
    tell(bar.lines, said.append, ticks(2))
    assert len(said) == 2
    assert said[0].endswith(": 12 of 160 (0:00:10)")
    assert said[1].endswith(": 12 of 160 (0:00:20)")
    assert "\n" not in "".join(said)
    bar.update(first, completed=160)
    tell(bar.lines, said.append, ticks(3))
    assert len(said) == 2
    unknown: list[str] = []
    counting = ToldProgress(unknown.append)
    counting.update(counting.add_task("reading", total=None), completed=12345)
    tell(counting.lines, unknown.append, ticks(1))
    assert unknown == ["reading: 12,345 (0:00:10)"]


def test_what_is_done_is_told_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    monkeypatch.setattr(sys, "stderr", io.StringIO())

    def at_once(what: Callable[[], list[str]], write: object) -> AbstractContextManager[None]:
        lines.extend(what())
        return nullcontext()

    monkeypatch.setattr(telling, "telling", at_once)
    with progress("starting Java"), status():
        pass
    assert lines == ["starting ..."]


def test_calls_by_model_with_their_price() -> None:
    prices = {"small": Price(input=1.0, output=2.0)}
    calls = [Calls(ModelSettings(name="small"), 3, 1_000_000, 500_000), Calls(ModelSettings(name="large"), 1, 10, 10)]
    assert ahead(of_calls(calls, prices)) == "may ask small 3 times ($2.0000 at most) and large once (price unknown)"
    assert ahead(of_calls([], prices)) == ""


def test_an_experiment_says_before_what_it_may_ask(call: Call, small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where its results are JSON: that stands alone on standard output."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    more = "  asking: {loop: fair-qr, refine: llm, iterations: 2, model: {name: gpt-x, attempts: 1}}\n"
    file = write(small, more + "prices: {gpt-x: {input: 1.5, output: 10}}\n")
    result = call("evaluate", file, "--json")
    first = result.stderr.splitlines()[0]
    assert first.startswith("may ask gpt-x 4 times ($0.")
    assert first.endswith(" at most)")
    assert "may ask" not in result.stdout
    quiet = call("evaluate", write(small, name="quiet.yaml"), "--run", "quiet", "--json")
    assert quiet.stderr == ""
    json.loads(quiet.stdout)


def test_a_search_and_an_answer_say_before_what_they_may_ask(
    call: Call, small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    model = ["--set", "model.name=gpt-x", "--set", "model.attempts=1"]
    for command, more, said in (
        ("search", ["--set", "loop=fair-qr", "--set", "refine=llm", "--set", "iterations=2"], "may ask gpt-x 2 times"),
        ("answer", ["--set", "profile=engine", "--set", "generate.kind=llm"], "may ask gpt-x once"),
    ):
        result = call(command, "lawyer", *small.options, *model, *more)
        assert result.stderr.splitlines()[0] == f"{said} (price unknown)"
    assert call("search", "lawyer", *small.options).stderr == ""
