"""Options that add up to settings, and what a command says of its work on a terminal and in a pipe."""

from __future__ import annotations

import io
import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.progress import Progress

from fairagent.cli import options
from fairagent.cli.options import announce_calls, overrides, report_lines, requests_of, settings_of, status, undone
from fairagent.errors import SettingsError, UsageError
from fairagent.llm.prompts import Calls
from fairagent.settings import ModelSettings, Price, Settings, load_settings
from fairagent.storage.threads import listening, progress

from .conftest import Call, Small


def test_values_are_yaml_add_up_and_options_win() -> None:
    given = overrides(["n=5", "depth=1e3", "dimensions=[a, b]", "prompts=", "model.name='7'", "collection=a=b.yaml"])
    more = {"prompts": None, "model": {"name": "7"}, "collection": "a=b.yaml"}
    assert given == {"n": 5, "depth": "1e3", "dimensions": ["a", "b"], **more}
    given = overrides(["rerank.kind=fused", "rerank.refined=0.2", "n=5"], n=7, index=None)
    assert given == {"rerank": {"kind": "fused", "refined": 0.2}, "n": 7}
    for assignment in ("n", "=5", " =5", "n: 5", "n={"):
        with pytest.raises(UsageError, match="--set"):
            overrides([assignment])


def test_the_file_in_the_folder_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert options.settings_file(None) is None
    Path("fairagent.yaml").write_text("n: 3\n", encoding="utf-8")
    assert options.settings_file(None) == Path("fairagent.yaml")
    assert options.settings_file(Path("mine.yaml")) == Path("mine.yaml")
    assert settings_of(None, None).n == 3
    assert settings_of(None, ["n=4"], collection=Path("c.yaml")).collection == "c.yaml"
    with pytest.raises(SettingsError, match="no such file"):
        settings_of(Path("mine.yaml"), None)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def waits_for(shown: Terminal, text: str) -> None:
    deadline = time.monotonic() + 250
    while text not in shown.getvalue():
        assert time.monotonic() < deadline, shown.getvalue()
        time.sleep(0.01)


def test_what_is_done_is_shown_and_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    with status(), progress("searching [b]"):
        waits_for(shown, "searching [b] ...")
        with progress("starting Java"):
            waits_for(shown, "starting Java ...")
    # The last thing written erases the line.
    assert shown.getvalue().endswith("\x1b[2K")


def test_a_search_and_an_answer_say_what_they_do(call: Call, small: Small) -> None:
    heard: list[str] = []
    with listening(heard.append):
        call.well("answer", "lawyer", *small.options)
    order = ["reading the collection", f"opening the index {small.index}", "searching", "writing the answer"]
    assert [one for one in dict.fromkeys(heard) if one in order] == order


def ticks(count: int) -> Callable[[float], bool]:
    """A clock: so many waits, each of which must be of ten seconds, before it is time to end."""
    left = iter(range(count))

    def wait(seconds: float) -> bool:
        assert seconds == options.EVERY
        return next(left, None) is None

    return wait


def test_a_line_every_ten_seconds_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    bar = Progress(disable=True)
    first = bar.add_task("evaluating first\n\x1b[31m", total=160, completed=12)
    bar.add_task("done before", total=3, completed=3)
    report_lines(lambda: undone(bar), ticks(2))
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(": ")[2] for line in lines] == ["12 of 160 (0:00:10)", "12 of 160 (0:00:20)"]
    bar.update(first, completed=160)
    report_lines(lambda: undone(bar), ticks(3))
    bar.add_task("reading", total=None, completed=12345)
    report_lines(lambda: undone(bar), ticks(1))
    assert capsys.readouterr().err == "reading: 12,345 (0:00:10)\n"


def test_calls_by_model_with_their_price(capsys: pytest.CaptureFixture[str]) -> None:
    prices = {"small": Price(input=1.0, output=2.0)}
    small, large = ModelSettings(name="small"), ModelSettings(name="large")
    announce_calls(requests_of([Calls(small, 3, 1_000_000, 500_000), Calls(large, 1, 10, 10)], prices))
    announce_calls(requests_of([], prices), corrected=True)
    small_line = "small 3 times (1,500,000 tokens and $2.0000 at most)"
    assert capsys.readouterr().err == f"may ask {small_line} and large once (20 tokens at most, price unknown)\n"
    announce_calls(requests_of([Calls(small, 3, 3_000_000, 0), Calls(small, 1, 0, 2_000_000)], prices), corrected=True)
    assert (
        capsys.readouterr().err
        == "may ask small 4 times, 5 with a correction (7,000,000 tokens and $11.0000 at most)\n"
    )


def test_a_search_and_an_answer_say_before_what_they_may_ask(
    call: Call, small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    model = ["--set", "model.name=gpt-x", "--set", "model.attempts=1"]
    asking = ["--set", "loop=fair-qr", "--set", "refine=llm", "--set", "iterations=2"]
    writing = ["--set", "profile=engine", "--set", "generate.kind=llm"]
    for command, more, line in (("search", asking, "2 times, 3 with a correction"), ("answer", writing, "once")):
        first = call(command, "lawyer", *small.options, *model, *more).stderr.splitlines()[0]
        assert re.fullmatch(rf"may ask gpt-x {line} \([\d,]+ tokens at most, price unknown\)", first)
    unnamed = "OPENAI_API_KEY is set, but no model is named, so none is asked; --model NAME asks one\n"
    assert call("search", "lawyer", *small.options).stderr == unnamed
    unused = "gpt-x is named, and nothing asks it under profile: offline; --set profile=agent does\n"
    assert call("search", "lawyer", *small.options, "--model", "gpt-x", "--set", "profile=offline").stderr == unused
    priced = ["--set", "prices={gpt-4: {input: 1, output: 2}}", "--set", "cache=''"]
    result = call("search", "lawyer", *small.options, *model, *priced, "--json")
    unpriced = "no price is known for gpt-x: money is not counted; set prices: {gpt-x: {input: ..., output: ...}}"
    assert unpriced in result.stderr.splitlines()
    assert unpriced in json.loads(result.stdout)["notes"]
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_BASE_URL")
    assert call("search", "lawyer", *small.options).stderr == ""


def test_servers_take_the_name_of_a_model(call: Call, small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fastapi")
    pytest.importorskip("mcp")
    asked: list[Settings] = []

    def desk(file: Path | None, called: dict[str, Any]) -> None:
        asked.append(load_settings(file, called))
        raise UsageError("enough")

    monkeypatch.setattr("fairagent.studio.desk.Desk", desk)
    for command in (["serve", "--port", "0"], ["mcp"]):
        assert call(*command, "--model", "tiny", "--set", "model.timeout=7", *small.options).exit_code == 2
    assert [(one.model.name, one.model.timeout, one.profile) for one in asked] == [("tiny", 7, "agent")] * 2
