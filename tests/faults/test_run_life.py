"""Cases 2, 36 to 40, 52 and 155 to 161: whatever ends a run, its results and requests stay; nothing is paid twice."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from browser import waited
from typer.testing import CliRunner, Result

from fairagent.cli import app
from fairagent.cli.doctor import verified
from fairagent.errors import BackendUnavailable, BudgetExceeded, FatalModelError, SettingsError
from fairagent.evaluate import workers as engine_workers
from fairagent.evaluate.check import check_experiment
from fairagent.evaluate.experiment import run_experiment
from fairagent.evaluate.outcome import to_line
from fairagent.evaluate.run import load_run, read_outcomes
from fairagent.evaluate.workers import Workers, crew, threads
from fairagent.guests.testing import LoopbackServer, completion, error
from fairagent.llm.exchange import Exchange, read_transcript
from fairagent.storage.files import locked

from . import life
from .life import run


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return life.write(tmp_path_factory.mktemp("life"))


def test_02_and_155_no_quota_in_the_middle_ends_the_run_and_the_next_goes_on(
    file: Path, server: LoopbackServer, tmp_path: Path
) -> None:
    good = life.Moody()
    refused = error(429, "You exceeded your current quota", "insufficient_quota")
    server.script = lambda request: good(request) if len(server.requests) < 13 else refused
    with pytest.raises(FatalModelError, match="quota") as caught:
        run(file, tmp_path / "run", limit=5)
    assert caught.value.exit_code == 5
    assert len(server.requests) == 13
    # Its transcript has the call that ended it.
    ended = [one for one in kept(tmp_path / "run") if one.error]
    assert ("429" in ended[0].error, ended[0].text, sum(one.calls for one in ended)) == (True, "", 1)
    done = (tmp_path / "run" / "journal.jsonl").read_bytes()
    assert done.count(b"\n") > 1

    last = server.requests.pop()
    server.script = good
    run(file, tmp_path / "run", limit=5)
    assert server.requests[12] == last
    assert life.paid_twice(server) == []
    assert (tmp_path / "run" / "journal.jsonl").read_bytes().startswith(done)


def test_36_a_second_run_with_the_replies_at_hand_asks_nothing(
    file: Path, server: LoopbackServer, tmp_path: Path
) -> None:
    first, paid = run(file, tmp_path / "run", limit=5)
    asked = len(server.requests)
    assert paid.calls == asked > 20
    assert paid.saved is None or paid.saved.calls < asked
    expected = life.files(tmp_path / "run")
    second, again = run(file, tmp_path / "run", limit=5, new=True)
    assert len(server.requests) == asked
    assert (again.calls, again.input_tokens, again.cost) == (0, 0, 0.0)
    assert again.saved
    assert (again.saved.calls, again.saved.input_tokens) == (paid.whole.calls, paid.whole.input_tokens)
    assert again.saved.cost == pytest.approx(paid.whole.cost)
    assert life.files(tmp_path / "run") == expected
    assert second.comparisons == first.comparisons


def test_39_no_more_requests_leave_than_the_budget_has(file: Path, server: LoopbackServer, tmp_path: Path) -> None:
    """Each time it has 10 more; with enough it comes to its end, and has paid for nothing twice."""
    for times in (1, 2):
        with pytest.raises(BudgetExceeded, match="the budget of 10 calls is used up") as caught:
            run(file, tmp_path / "run", 8 * times, limit=6, FAIRAGENT_BUDGET="{calls: 10}")
        assert caught.value.exit_code == 6
        assert len(server.requests) == 10 * times
        assert "PARTIAL" in (tmp_path / "run" / "results.txt").read_text(encoding="utf-8")
        assert load_run(tmp_path / "run").partial
    finished, _ = run(file, tmp_path / "run", 16, limit=6)
    assert not finished.partial
    assert life.paid_twice(server) == []
    # Dollars without a price cannot be kept.
    unpriced = file.with_name("unpriced.yaml")
    prices = "prices: {tiny: {input: 0.1, output: 0.3}}\n"
    unpriced.write_text(file.read_text(encoding="utf-8").replace(prices, ""), encoding="utf-8")
    with pytest.raises(SettingsError, match="'tiny' may cost, and its price is not known"):
        check_experiment(unpriced, environ={**os.environ, "FAIRAGENT_BUDGET": "{dollars: 1}"})


def test_40_concurrency_and_order_change_nothing_and_a_second_process_is_refused(
    file: Path, server: LoopbackServer, tmp_path: Path
) -> None:
    seen = []
    for count, kind in ((1, Workers), (16, life.Shuffled)):
        server.script = life.Moody()
        server.requests.clear()
        folder = tmp_path / f"{count}"
        run(file, folder, count, kind, limit=5)
        lines = (json.loads(to_line(one)) | {"seconds": 0} for one in read_outcomes(folder))
        seen.append((life.files(folder), sorted(map(json.dumps, lines))))
        assert life.paid_twice(server) == []
    assert seen[0] == seen[1]
    server.requests.clear()
    told = rf"process {os.getpid()} on .* is working in"
    with locked(tmp_path / "1"), pytest.raises(BackendUnavailable, match=told):
        run(file, tmp_path / "1", limit=1)
    assert server.requests == []


@pytest.mark.parametrize(
    ("number", "code"),
    [
        pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, 129, marks=pytest.mark.slow),
        (signal.SIGTERM, 143),
    ],
)
def test_39_and_52_a_signal_keeps_what_is_done_and_the_budget(
    file: Path, server: LoopbackServer, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    server.script = life.Moody(lambda text: replace(completion(text), delay=0.1))
    command = ("evaluate", str(file), "--workers", "8", "--limit-topics", "5", "--run", "run")
    process = life.start(*command, folder=tmp_path, server=server)
    waited(lambda: len(server.requests) >= 8)
    process.send_signal(number)
    ended, said = life.finish(process)
    assert ended == code, said
    assert "what is done stays" in said
    assert "Traceback" not in said
    assert "PARTIAL" in (tmp_path / "run" / "results.txt").read_text(encoding="utf-8")
    server.script = life.Moody()
    finished, _ = run(file, tmp_path / "run", limit=5, FAIRAGENT_CACHE=str(tmp_path / ".fairagent" / "replies"))
    assert not finished.partial
    assert life.paid_twice(server) == []


def kept(folder: Path) -> list[Exchange]:
    """The exchanges of a run; every line can be read."""
    found = list(read_transcript(folder / "transcript.jsonl"))
    assert None not in found
    return [one for one in found if one]


def asked_of(server: LoopbackServer) -> Counter[str]:
    return Counter(request["messages"][-1]["content"] for request in server.requests)


@pytest.mark.parametrize("processes", [False, True])
def test_155_and_161_every_call_is_kept_with_its_topic_and_system(
    file: Path, server: LoopbackServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: bool
) -> None:
    monkeypatch.setattr(engine_workers, "PATIENCE", 0.0)
    monkeypatch.setattr(engine_workers, "WORTH", 0.0)
    checked = check_experiment(file, 5, environ={**os.environ, "FAIRAGENT_CACHE": "''"})
    with crew(2) if processes else threads(3) as workers:
        run_experiment(checked, tmp_path / "run", workers)
    paid = [one for one in kept(tmp_path / "run") if not one.cached]
    assert Counter(one.messages[-1][1] for one in paid) == asked_of(server)
    assert {one.system for one in paid} == {"asked", "asked more", "asked warmly"}
    assert len({one.topic for one in paid}) == 5
    assert {one.prompt for one in paid} == {"refine_query"}
    journal = [json.loads(line) for line in (tmp_path / "run" / "journal.jsonl").read_text().splitlines()]
    calls = {(one["topic"], one["system"]): one["calls"] for one in journal if one["calls"]}
    assert Counter((one.topic, one.system) for one in kept(tmp_path / "run")) == calls


def search(tmp_path: Path, file: Path, *more: str, command: str = "search") -> Result:
    chosen = ("engine=bm25", "loop=fair-qr", "refine=llm", "model.name=tiny", "iterations=1", "target=uniform")
    asked = [part for one in (*chosen, f"cache={tmp_path / 'replies'}") for part in ("--set", one)]
    options = ["-c", str(file.with_name("collection.yaml")), "--index", str(file.with_name("index"))]
    return CliRunner().invoke(app, [command, "judge", *options, *asked, *more])


def test_156_a_transcript_that_cannot_be_written_is_said_before_anything_is_asked(
    file: Path, server: LoopbackServer, tmp_path: Path
) -> None:
    (tmp_path / "notes.md").write_text("mine\n")
    for name, code, says in (
        ("notes.md", 2, "is there and is no transcript; name another file"),
        (".", 4, "is a folder and no regular file"),
        ("no/such/place.jsonl", 3, "cannot be written (No such file or directory)"),
    ):
        done = search(tmp_path, file, "--transcript", str(tmp_path / name))
        assert done.exit_code == code, done.output
        assert says in done.stderr.replace("\n", " ")
        assert "fairagent: " in done.stderr
    assert server.requests == []
    assert (tmp_path / "notes.md").read_text() == "mine\n"


def test_156_a_search_adds_to_its_transcript(file: Path, server: LoopbackServer, tmp_path: Path) -> None:
    for _ in range(2):
        done = search(tmp_path, file, "--transcript", str(tmp_path / "asked.jsonl"))
        assert done.exit_code == 0, done.output
    first, second = (one for one in read_transcript(tmp_path / "asked.jsonl") if one)
    assert (first.cached, second.cached) == (False, True)
    assert first.messages == second.messages
    assert len(server.requests) == 1
    path = tmp_path / "answered.jsonl"
    more = ("--set", "generate.kind=llm", "--transcript", str(path))
    # The scripted model names words and gives no verdict, so that its filter is an alarm.
    assert search(tmp_path, file, *more, command="answer").exit_code == 7
    told = [one.prompt for one in read_transcript(path) if one]
    assert (told[0], told[-1], set(told[1:-1])) == ("refine_query", "answer", {"fairness_filter"})


def test_160_torn_and_damaged_lines_cost_themselves_alone(file: Path, server: LoopbackServer, tmp_path: Path) -> None:
    life.run(file, tmp_path / "run", limit=4)
    expected, path = life.files(tmp_path / "run"), tmp_path / "run" / "transcript.jsonl"
    kept = path.read_bytes().splitlines(keepends=True)
    kept[1] = kept[1].replace(b'"calls":1', b'"calls":2')
    path.write_bytes(b"".join(kept) + b'{"exchange":1,"at":"20')
    journal = tmp_path / "run" / "journal.jsonl"
    # The last lines are of the systems and, beside each, of what it is without its loop.
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-4]))
    life.run(file, tmp_path / "run", limit=4)
    found = list(read_transcript(path))
    assert [place for place, one in enumerate(found) if one is None] == [1]
    told = {check.name: check for check in verified(tmp_path / "run")}
    assert told["transcript"].status == "problem"
    assert "line 2" in told["transcript"].detail
    assert told["tables"].status == "ok"
    assert len(found) > len(kept)
    assert life.files(tmp_path / "run") == expected
