"""Cases 2 and 36 to 40: whatever ends a run, what is done is kept, and nothing is paid for twice."""

from __future__ import annotations

import json
import os
import pickle
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fairagent.errors import BackendUnavailable, BudgetExceeded, SettingsError, UsageError
from fairagent.evaluate.check import check_experiment
from fairagent.evaluate.experiment import run_experiment
from fairagent.evaluate.outcome import to_line
from fairagent.evaluate.run import Run, load_run, read_outcomes
from fairagent.evaluate.workers import Workers, threads
from fairagent.guests.testing import LoopbackServer, ServerReply, completion, error
from fairagent.llm.models import Models
from fairagent.types import Usage

from . import life


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return life.write(tmp_path_factory.mktemp("life"))


@pytest.fixture
def server(no_variables: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    with LoopbackServer(life.Moody()) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


def run(
    file: Path, folder: Path, count: int = 1, kind: type[Workers] = Workers, *, new: bool = False, **environ: str
) -> tuple[Run, Usage]:
    """The run and what was paid for it; the cache is a folder beside that of the run."""
    here = {"FAIRAGENT_CACHE": str(folder.with_name(f"{folder.name}-cache"))}
    checked = check_experiment(file, environ={**os.environ, **here, **environ})
    models = Models(checked.plan.cache, checked.plan.budget, checked.plan.prices)
    try:
        with threads(count) as plain:
            mine = kind(plain.executor, plain.width, here=True)
            return run_experiment(checked, folder, mine, new, models=models), models.usage
    finally:
        models.close()


# Case 36


@pytest.mark.slow
def test_36_killed_at_every_7th_call_it_pays_for_each_call_once(
    file: Path, server: LoopbackServer, tmp_path: Path
) -> None:
    process = life.start("evaluate", str(file), "--workers", "1", folder=tmp_path / "whole", server=server)
    code, said = life.finish(process)
    assert code == 0, said
    expected = life.files(tmp_path / "whole" / "runs")
    whole = server.requests.copy()
    assert len(whole) > 3 * 7

    server.requests.clear()
    server.script = life.Moody()
    kills = 0
    for _ in range(20):
        process = life.start(
            "evaluate", str(file), "--workers", "1", folder=tmp_path / "killed", server=server, kill_at=7
        )
        code, said = life.finish(process)
        if code != -signal.SIGKILL:
            break
        kills += 1
    assert code == 0, said
    assert kills == (len(whole) - 1) // 6
    assert server.requests == whole
    assert life.paid_twice(server) == []
    assert life.files(tmp_path / "killed" / "runs") == expected


@pytest.mark.slow
def test_02_no_quota_in_the_middle_ends_the_run_and_the_next_goes_on(
    file: Path, server: LoopbackServer, tmp_path: Path
) -> None:
    good = life.Moody()

    def until_the_13th(request: dict[str, object]) -> ServerReply:
        refused = error(429, "You exceeded your current quota", "insufficient_quota")
        return good(request) if len(server.requests) < 13 else refused

    server.script = until_the_13th
    command = ("evaluate", str(file), "--workers", "1", "--run", "run")
    code, said = life.finish(life.start(*command, folder=tmp_path, server=server))
    assert code == 5
    assert "quota" in said
    assert len(server.requests) == 13
    done = (tmp_path / "run" / "journal.jsonl").read_bytes()
    assert done.count(b"\n") > 1

    refused = server.requests.pop()
    server.script = good
    code, said = life.finish(life.start(*command, folder=tmp_path, server=server))
    assert code == 0, said
    assert server.requests[12] == refused
    assert life.paid_twice(server) == []
    assert (tmp_path / "run" / "journal.jsonl").read_bytes().startswith(done)


def test_36_a_second_run_with_the_replies_at_hand_asks_nothing(
    file: Path, server: LoopbackServer, tmp_path: Path
) -> None:
    first, paid = run(file, tmp_path / "run")
    asked = len(server.requests)
    assert paid.calls == asked > 20
    assert paid.saved is None or paid.saved.calls < asked
    expected = life.files(tmp_path / "run")
    second, again = run(file, tmp_path / "run", new=True)
    assert len(server.requests) == asked
    assert (again.calls, again.input_tokens, again.cost) == (0, 0, 0.0)
    assert again.saved
    assert (again.saved.calls, again.saved.input_tokens) == (paid.whole.calls, paid.whole.input_tokens)
    assert again.saved.cost == pytest.approx(paid.whole.cost)
    assert life.files(tmp_path / "run") == expected
    assert second.comparisons == first.comparisons


# Case 37


def test_37_a_torn_last_line_asks_nothing_again(file: Path, server: LoopbackServer, tmp_path: Path) -> None:
    run(file, tmp_path / "run")
    expected, asked = life.files(tmp_path / "run"), len(server.requests)
    journal = tmp_path / "run" / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-100])
    run(file, tmp_path / "run")
    assert life.files(tmp_path / "run") == expected
    assert len(server.requests) == asked


@pytest.mark.parametrize("damage", ["cut", "no database", "older"])
def test_37_a_damaged_cache_is_moved_aside_and_what_is_done_is_kept(
    file: Path, server: LoopbackServer, tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    cache = tmp_path / "run-cache"
    with pytest.raises(BudgetExceeded):
        run(file, tmp_path / "run", FAIRAGENT_BUDGET="{calls: 10}")
    done = (tmp_path / "run" / "journal.jsonl").read_bytes()
    assert done
    database = cache / "cache.db"
    kept = database.read_bytes()
    # A new file in its place, as another process finds it.
    for path in cache.iterdir():
        path.unlink()
    if damage == "older":
        with sqlite3.connect(database) as old:
            old.execute("CREATE TABLE Cache (key TEXT, value TEXT)")
        old.close()
    else:
        database.write_bytes(kept[: len(kept) // 2] if damage == "cut" else b"something else " * 1000)
    finished, _ = run(file, tmp_path / "run")
    assert not finished.partial
    assert (tmp_path / "run" / "journal.jsonl").read_bytes().startswith(done)
    (aside,) = tmp_path.glob("run-cache.bad-*")
    assert f"{cache} is damaged" in caplog.text
    assert str(aside) in caplog.text


def test_37_a_cache_that_cannot_be_made_is_explained_before_anything_is_paid(
    file: Path, server: LoopbackServer, tmp_path: Path
) -> None:
    (tmp_path / "plain").write_text("a file", encoding="utf-8")
    with pytest.raises(BackendUnavailable, match=r"cache of replies cannot be made in .*; name another folder"):
        run(file, tmp_path / "run", FAIRAGENT_CACHE=str(tmp_path / "plain" / "cache"))
    assert server.requests == []


@pytest.mark.parametrize("pragma", ["query_only = 1", "max_page_count = 1"])
def test_37_a_disk_that_is_full_or_read_only_in_the_middle_loses_no_reply(
    file: Path,
    server: LoopbackServer,
    tmp_path: Path,
    pragma: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    from fairagent.llm.cache import ReplyCache

    expected, _ = run(file, tmp_path / "whole")
    server.script = life.Moody()
    connect = ReplyCache._connect

    def unwritable(self: ReplyCache) -> object:
        rows = connect(self)
        rows.set("filler", "x" * 100_000)
        original = rows.set

        def refused(*arguments: object, **more: object) -> object:
            rows._sql(f"PRAGMA {pragma}").fetchall()
            return original(*arguments, **more)

        rows.set = refused
        return rows

    monkeypatch.setattr(ReplyCache, "_connect", unwritable)
    finished, paid = run(file, tmp_path / "run")
    assert finished.comparisons
    assert not finished.partial
    assert len(finished.outcomes) == len(expected.outcomes)
    assert paid.calls
    warnings = [record for record in caplog.records if "replies are not kept" in record.message]
    assert len(warnings) == 1


# Case 38


class Trap:
    """Unpickled, it leaves a canary."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.canary),)


def test_38_a_tampered_row_is_refused_and_never_executed(file: Path, server: LoopbackServer, tmp_path: Path) -> None:
    run(file, tmp_path / "run")
    expected, asked = life.files(tmp_path / "run"), len(server.requests)
    canary = tmp_path / "canary"
    # The trap works where somebody falls into it.
    pickle.loads(pickle.dumps(Trap(canary)))
    canary.rmdir()
    with sqlite3.connect(tmp_path / "run-cache" / "cache.db") as database:
        changed = database.execute(
            "UPDATE Cache SET mode = 4, value = ?", (pickle.dumps(Trap(canary), protocol=0),)
        ).rowcount
    database.close()
    assert changed > 10
    server.script = life.Moody()
    run(file, tmp_path / "run", new=True)
    assert not canary.exists()
    assert len(server.requests) == 2 * asked
    assert life.files(tmp_path / "run") == expected


# Case 39


@pytest.mark.slow
def test_39_no_more_requests_leave_than_the_budget_has(file: Path, server: LoopbackServer, tmp_path: Path) -> None:
    limited = tmp_path / "limited.yaml"
    text = file.read_text(encoding="utf-8").replace("collection: ", f"collection: {file.parent}/")
    limited.write_text(f"{text}budget: {{calls: 10}}\n", encoding="utf-8")
    command = ("evaluate", str(limited), "--workers", "8", "--run", "run")
    code, said = life.finish(life.start(*command, folder=tmp_path, server=server))
    assert code == 6, said
    assert "the budget of 10 calls is used up" in said
    assert "paid now: 10 calls, " in said
    assert "Traceback" not in said
    assert len(server.requests) == 10
    assert life.paid_twice(server) == []
    assert "PARTIAL" in (tmp_path / "run" / "results.txt").read_text(encoding="utf-8")
    assert load_run(tmp_path / "run").partial

    # Each time it has 10 more; with enough it comes to its end, and has paid for nothing twice.
    here = {"FAIRAGENT_CACHE": str(tmp_path / ".fairagent" / "replies")}
    with pytest.raises(BudgetExceeded):
        run(limited, tmp_path / "run", count=16, **here)
    assert len(server.requests) == 20
    limited.write_text(text, encoding="utf-8")
    finished, _ = run(limited, tmp_path / "run", count=16, **here)
    assert not finished.partial
    assert life.paid_twice(server) == []


@pytest.mark.slow
def test_39_ctrl_c_keeps_what_is_done_and_the_budget(file: Path, server: LoopbackServer, tmp_path: Path) -> None:
    server.script = life.Moody(lambda text: replace(completion(text), delay=0.1))
    process = life.start("evaluate", str(file), "--workers", "8", "--run", "run", folder=tmp_path, server=server)
    deadline = time.monotonic() + 250
    while len(server.requests) < 8 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    code, said = life.finish(process)
    assert code == 130, said
    assert said.endswith("fairagent: interrupted; what is done stays; to go on, repeat the command\n")
    assert "PARTIAL" in (tmp_path / "run" / "results.txt").read_text(encoding="utf-8")
    finished, _ = run(file, tmp_path / "run", FAIRAGENT_CACHE=str(tmp_path / ".fairagent" / "replies"))
    assert not finished.partial
    assert life.paid_twice(server) == []


@pytest.mark.parametrize(
    ("limit", "named"),
    [("{tokens: 8000}", "8000 tokens"), ("{dollars: 0.001}", "0.001 dollars"), ("{seconds: 0.000001}", "1e-06 sec")],
)
def test_39_tokens_dollars_and_seconds_end_a_run_too(
    file: Path, server: LoopbackServer, tmp_path: Path, limit: str, named: str
) -> None:
    with pytest.raises(BudgetExceeded, match=f"the budget of {named}"):
        run(file, tmp_path / "run", count=8, FAIRAGENT_BUDGET=limit)
    assert load_run(tmp_path / "run").partial
    paid = len(server.requests)
    assert paid * (400 + 30) <= 8000 or "tokens" not in limit
    assert paid * (400 * 0.1 + 30 * 0.3) / 1e6 <= 0.001 or "dollars" not in limit
    assert (paid == 0) == ("seconds" in limit)
    finished, _ = run(file, tmp_path / "run", count=8)
    assert not finished.partial
    assert life.paid_twice(server) == []


def test_39_dollars_without_a_price_are_refused_at_the_start(file: Path, server: LoopbackServer) -> None:
    unpriced = file.with_name("unpriced.yaml")
    text = file.read_text(encoding="utf-8").replace("prices: {tiny: {input: 0.1, output: 0.3}}\n", "")
    unpriced.write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError, match=r"what 'tiny' may cost, and its price is not known: add `prices:"):
        check_experiment(unpriced, environ={**os.environ, "FAIRAGENT_BUDGET": "{dollars: 1}"})
    assert server.requests == []


def test_39_a_budget_is_not_shared_out_to_a_cluster(file: Path, server: LoopbackServer, tmp_path: Path) -> None:
    checked = check_experiment(file, environ={**os.environ, "FAIRAGENT_BUDGET": "{calls: 5}"})
    with threads(1) as workers, pytest.raises(UsageError, match="a budget does not go with --dask"):
        run_experiment(checked, tmp_path / "run", Workers(workers.executor, 2, here=False))
    assert not (tmp_path / "run").exists()


# Case 40


def test_40_concurrency_and_order_change_nothing(file: Path, server: LoopbackServer, tmp_path: Path) -> None:
    seen, journals = [], []
    for count, kind in ((1, Workers), (4, Workers), (16, Workers), (4, life.Shuffled)):
        server.script = life.Moody()
        server.requests.clear()
        folder = tmp_path / f"{count}-{kind.__name__}"
        run(file, folder, count, kind)
        seen.append(life.files(folder))
        journals.append(sorted(_timeless(folder / "journal.jsonl")))
        assert life.paid_twice(server) == []
    assert seen[0] == seen[1] == seen[2] == seen[3]
    assert journals[0] == journals[1] == journals[2] == journals[3]


def test_40_a_second_process_is_refused(file: Path, server: LoopbackServer, tmp_path: Path) -> None:
    hold = threading.Event()

    def held(text: str):
        hold.wait(60)
        return completion(text)

    server.script = life.Moody(held)
    process = life.start("evaluate", str(file), "--run", "run", folder=tmp_path, server=server)
    deadline = time.monotonic() + 250
    while not server.requests and time.monotonic() < deadline:
        time.sleep(0.01)
    asked = len(server.requests)
    try:
        with pytest.raises(BackendUnavailable, match=f"process {process.pid} on .* is working in"):
            run(file, tmp_path / "run")
        assert len(server.requests) <= max(asked, 4)
    finally:
        hold.set()
        assert life.finish(process)[0] == 0


def _timeless(journal: Path) -> list[str]:
    """The lines of a journal without how long everything took."""
    lines = []
    for outcome in read_outcomes(journal.parent):
        record = json.loads(to_line(outcome))
        del record["seconds"]
        lines.append(json.dumps(record))
    return lines
