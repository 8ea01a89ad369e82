"""Cases 2, 36 to 40 and 52: whatever ends a run, what is done is kept, and nothing is paid for twice."""

from __future__ import annotations

import json
import os
import pickle
import pty
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fairagent.errors import BackendUnavailable, BudgetExceeded, FatalModelError, SettingsError, UsageError
from fairagent.evaluate.check import check_experiment
from fairagent.evaluate.experiment import run_experiment
from fairagent.evaluate.outcome import to_line
from fairagent.evaluate.run import load_run, read_outcomes
from fairagent.evaluate.workers import Workers, threads
from fairagent.guests.testing import LoopbackServer, completion, error
from fairagent.llm.cache import ReplyCache
from fairagent.llm.exchange import read_transcript
from fairagent.storage.files import locked

from . import life
from .life import run


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return life.write(tmp_path_factory.mktemp("life"))


@pytest.fixture
def server(no_variables: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    with LoopbackServer(life.Moody()) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


def until(condition: object, seconds: float = 250.0) -> None:
    end = time.monotonic() + seconds
    assert callable(condition)
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


# Cases 2 and 36


@pytest.mark.slow
def test_36_killed_at_every_7th_call_it_pays_for_each_call_once(
    file: Path, server: LoopbackServer, tmp_path: Path
) -> None:
    command = ("evaluate", str(file), "--workers", "1", "--limit-topics", "5", "--run", "run")
    assert life.finish(life.start(*command, folder=tmp_path / "whole", server=server))[0] == 0
    expected = life.files(tmp_path / "whole" / "run" / "runs")
    whole = server.requests.copy()
    assert len(whole) > 2 * 7

    server.requests.clear()
    server.script = life.Moody()
    kills = 0
    for _ in range(20):
        code, said = life.finish(life.start(*command, folder=tmp_path / "killed", server=server, kill_at=7))
        if code != -signal.SIGKILL:
            break
        kills += 1
    assert code == 0, said
    assert kills == (len(whole) - 1) // 6
    assert server.requests == whole
    assert life.paid_twice(server) == []
    assert life.files(tmp_path / "killed" / "run" / "runs") == expected
    # Case 155: no answered call is missing, though a topic was done again.
    found = [one for one in read_transcript(tmp_path / "killed" / "run" / "transcript.jsonl") if one]
    asked = Counter(request["messages"][-1]["content"] for request in server.requests)
    assert Counter(one.messages[-1][1] for one in found if not one.cached) == asked
    assert any(one.cached for one in found)


def test_02_no_quota_in_the_middle_ends_the_run_and_the_next_goes_on(
    file: Path, server: LoopbackServer, tmp_path: Path
) -> None:
    good = life.Moody()
    refused = error(429, "You exceeded your current quota", "insufficient_quota")
    server.script = lambda request: good(request) if len(server.requests) < 13 else refused
    with pytest.raises(FatalModelError, match="quota") as caught:
        run(file, tmp_path / "run", limit=5)
    assert caught.value.exit_code == 5
    assert len(server.requests) == 13
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


# Case 37


@pytest.mark.parametrize("damage", ["cut", "no database", "older"])
def test_37_a_damaged_cache_is_moved_aside_and_what_is_done_is_kept(
    file: Path, server: LoopbackServer, tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    cache = tmp_path / "run-cache"
    with pytest.raises(BudgetExceeded):
        run(file, tmp_path / "run", limit=5, FAIRAGENT_BUDGET="{calls: 10}")
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
    finished, _ = run(file, tmp_path / "run", limit=5)
    assert not finished.partial
    assert (tmp_path / "run" / "journal.jsonl").read_bytes().startswith(done)
    (aside,) = tmp_path.glob("run-cache.bad-*")
    assert f"{cache} is damaged" in caplog.text
    assert str(aside) in caplog.text


@pytest.mark.parametrize("pragma", ["query_only = 1", "max_page_count = 1"])
def test_37_a_disk_that_is_full_or_read_only_in_the_middle_loses_no_reply(
    file: Path,
    server: LoopbackServer,
    tmp_path: Path,
    pragma: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
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
    finished, paid = run(file, tmp_path / "run", limit=5)
    assert finished.comparisons
    assert not finished.partial
    assert len(finished.outcomes) == 5 * 4
    assert paid.calls
    assert sum("replies are not kept" in record.message for record in caplog.records) == 1


# Case 38


class Trap:
    """Unpickled, it leaves a canary."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.canary),)


def test_38_a_tampered_row_is_refused_and_never_executed(file: Path, server: LoopbackServer, tmp_path: Path) -> None:
    run(file, tmp_path / "run", limit=4)
    expected, asked = life.files(tmp_path / "run"), len(server.requests)
    canary = tmp_path / "canary"
    # The trap works where somebody falls into it.
    pickle.loads(pickle.dumps(Trap(canary)))
    canary.rmdir()
    with sqlite3.connect(tmp_path / "run-cache" / "cache.db") as database:
        row = pickle.dumps(Trap(canary), protocol=0)
        changed = database.execute("UPDATE Cache SET mode = 4, value = ?", (row,)).rowcount
    database.close()
    assert changed > 10
    server.script = life.Moody()
    run(file, tmp_path / "run", limit=4, new=True)
    assert not canary.exists()
    assert len(server.requests) == 2 * asked
    assert life.files(tmp_path / "run") == expected


# Case 39


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


@pytest.mark.parametrize(
    ("limit", "named"),
    [("{tokens: 8000}", "8000 tokens"), ("{dollars: 0.001}", "0.001 dollars"), ("{seconds: 0.000001}", "1e-06 sec")],
)
def test_39_tokens_dollars_and_seconds_end_a_run_too(
    file: Path, server: LoopbackServer, tmp_path: Path, limit: str, named: str
) -> None:
    with pytest.raises(BudgetExceeded, match=f"the budget of {named}"):
        run(file, tmp_path / "run", 8, limit=5, FAIRAGENT_BUDGET=limit)
    assert load_run(tmp_path / "run").partial
    paid = len(server.requests)
    assert paid * (400 + 30) <= 8000 or "tokens" not in limit
    assert paid * (400 * 0.1 + 30 * 0.3) / 1e6 <= 0.001 or "dollars" not in limit
    assert (paid == 0) == ("seconds" in limit)
    assert life.paid_twice(server) == []


def test_39_budgets_that_cannot_be_kept_are_refused_at_the_start(
    file: Path, server: LoopbackServer, tmp_path: Path
) -> None:
    """Dollars without a price; a budget of a cluster, to which it is not shared out."""
    unpriced = file.with_name("unpriced.yaml")
    text = file.read_text(encoding="utf-8").replace("prices: {tiny: {input: 0.1, output: 0.3}}\n", "")
    unpriced.write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError, match="'tiny' may cost, and its price is not known"):
        check_experiment(unpriced, environ={**os.environ, "FAIRAGENT_BUDGET": "{dollars: 1}"})
    checked = check_experiment(file, environ={**os.environ, "FAIRAGENT_BUDGET": "{calls: 5}"})
    with threads(1) as workers, pytest.raises(UsageError, match="a budget does not go with --dask"):
        run_experiment(checked, tmp_path / "run", Workers(workers.executor, 2, here=False))
    assert server.requests == []
    assert not (tmp_path / "run").exists()


# Cases 39 and 52


@pytest.mark.parametrize(
    ("number", "code", "words"),
    [
        pytest.param(signal.SIGINT, 130, "interrupted; what is done stays", marks=pytest.mark.slow),
        (signal.SIGTERM, 143, "ended by SIGTERM; what is done stays"),
    ],
)
def test_52_a_signal_keeps_what_is_done_and_the_budget(
    file: Path, server: LoopbackServer, tmp_path: Path, number: signal.Signals, code: int, words: str
) -> None:
    server.script = life.Moody(lambda text: replace(completion(text), delay=0.1))
    command = ("evaluate", str(file), "--workers", "8", "--limit-topics", "5", "--run", "run")
    process = life.start(*command, folder=tmp_path, server=server)
    until(lambda: len(server.requests) >= 8)
    process.send_signal(number)
    ended, said = life.finish(process)
    assert ended == code, said
    assert said.endswith(f"fairagent: {words}; to go on, repeat the command\n")
    assert "Traceback" not in said
    assert "PARTIAL" in (tmp_path / "run" / "results.txt").read_text(encoding="utf-8")
    server.script = life.Moody()
    finished, _ = run(file, tmp_path / "run", limit=5, FAIRAGENT_CACHE=str(tmp_path / ".fairagent" / "replies"))
    assert not finished.partial
    assert life.paid_twice(server) == []


@pytest.mark.slow
def test_52_a_terminal_that_is_gone_is_no_other_error(file: Path, server: LoopbackServer, tmp_path: Path) -> None:
    server.script = life.Moody(lambda text: replace(completion(text), delay=0.5))
    terminal, inside = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", "from fairagent.cli import main; main()", "evaluate", str(file), "--run", "run"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TERM": "xterm", "NO_PROXY": "127.0.0.1"},
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
        preexec_fn=_take_terminal,
    )
    os.close(inside)
    reader = threading.Thread(target=_read_all, args=(terminal, stop := threading.Event()))
    reader.start()
    until(lambda: len(server.requests) >= 8)
    stop.set()
    reader.join()
    os.close(terminal)
    assert process.wait(timeout=250) == 129
    assert "PARTIAL" in (tmp_path / "run" / "results.txt").read_text(encoding="utf-8")


def _take_terminal() -> None:
    import fcntl
    import termios

    # Who runs the tests with nohup ignores the signal, and so would the process.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _read_all(terminal: int, stop: threading.Event) -> None:
    """Read what is written to a terminal, or its buffer would fill."""
    import select

    while not stop.is_set():
        if select.select([terminal], [], [], 0.05)[0]:
            os.read(terminal, 65536)


@pytest.mark.slow
def test_52_the_workers_of_a_cluster_end_with_it(file: Path, server: LoopbackServer, tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="the package distributed (extra: dask) is not installed")
    server.script = life.Moody(lambda text: replace(completion(text), delay=0.2))
    command = ("evaluate", str(file), "--dask", "local", "--workers", "2", "--run", "run")
    process = life.start(*command, folder=tmp_path, server=server)
    until(lambda: len(server.requests) >= 4, 120.0)
    workers = _children(process.pid)
    assert workers
    process.send_signal(signal.SIGTERM)
    ended, said = life.finish(process)
    assert ended == 143, said
    assert "PARTIAL" in (tmp_path / "run" / "results.txt").read_text(encoding="utf-8")
    until(lambda: not any(map(_lives, workers)), 20.0)


def _stat(process: int) -> list[str]:
    """State, parent and more of a process; nothing where it is gone."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _children(process: int) -> list[int]:
    """The processes that a process has started, and theirs."""
    found = [int(one.name) for one in Path("/proc").glob("[0-9]*") if _stat(int(one.name))[1:2] == [str(process)]]
    return [*found, *(child for one in found for child in _children(one))]


def _lives(process: int) -> bool:
    return _stat(process)[:1] not in ([], ["Z"])


# Case 40


def test_40_concurrency_and_order_change_nothing(file: Path, server: LoopbackServer, tmp_path: Path) -> None:
    seen = []
    for count, kind in ((1, Workers), (16, Workers), (4, life.Shuffled)):
        server.script = life.Moody()
        server.requests.clear()
        folder = tmp_path / f"{count}"
        run(file, folder, count, kind, limit=5)
        seen.append((life.files(folder), sorted(_timeless(folder))))
        assert life.paid_twice(server) == []
    assert seen[0] == seen[1] == seen[2]


def _timeless(folder: Path) -> list[str]:
    """The lines of a journal without how long everything took."""
    return [json.dumps(json.loads(to_line(one)) | {"seconds": 0}) for one in read_outcomes(folder)]


def test_40_a_second_process_is_refused(file: Path, server: LoopbackServer, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with (
        locked(tmp_path / "run"),
        pytest.raises(BackendUnavailable, match=rf"process {os.getpid()} on .* is working in"),
    ):
        run(file, tmp_path / "run", limit=1)
    assert server.requests == []
