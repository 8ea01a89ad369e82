from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from fairagent.errors import BackendUnavailable, DataError, UsageError
from fairagent.evaluate import workers as engine_workers
from fairagent.evaluate.check import check_experiment
from fairagent.evaluate.experiment import build_indexes, run_experiment
from fairagent.evaluate.workers import ENDING, crew, interrupts_deferred, threads

from . import words


def test_jobs_are_handed_out_as_they_are_needed() -> None:
    begun: list[int] = []

    def jobs():
        for number in range(100):
            begun.append(number)
            yield time.sleep, (0.001,)

    most: list[int] = []
    done: list[None] = []

    def keep(_: None) -> None:
        done.append(None)
        most.append(len(begun) - len(done))

    with threads(2) as workers:
        workers.for_each(jobs(), keep)
    assert max(most) <= workers.width


def test_the_first_error_ends_it_and_what_runs_is_kept() -> None:
    gate = threading.Event()
    kept: list[str] = []

    def work(name: str) -> str:
        if name == "bad":
            gate.set()
            raise ValueError("bad")
        gate.wait(5)
        return name

    names = ["slow", "bad", *(f"later {n}" for n in range(100))]
    with threads(2) as workers, pytest.raises(ValueError, match="bad"):
        workers.for_each(((work, (name,)) for name in names), kept.append)
    assert "slow" in kept
    assert len(kept) < 10


def test_ctrl_c_while_something_is_kept_waits_for_what_runs() -> None:
    begun: list[int] = []
    kept: list[int] = []

    def work(number: int) -> int:
        begun.append(number)
        time.sleep(0.05 * number)
        return number

    def keep(number: int) -> None:
        if not kept:
            signal.raise_signal(signal.SIGINT)
        kept.append(number)

    before = signal.getsignal(signal.SIGINT)
    with threads(3) as workers, pytest.raises(KeyboardInterrupt):
        workers.for_each(((work, (number,)) for number in range(20)), keep)
    assert sorted(kept) == sorted(begun)
    assert 3 <= len(kept) < 20
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("number", ENDING)
def test_every_signal_that_ends_the_program_waits_for_the_end_of_the_block(number: signal.Signals) -> None:
    class Told(KeyboardInterrupt):
        pass

    def tell(number: int, frame: object) -> None:
        raise Told(number)

    done: list[bool] = []

    def work() -> None:
        with interrupts_deferred():
            signal.raise_signal(number)
            done.append(True)

    before = signal.signal(number, tell)
    try:
        with pytest.raises(Told) as caught:
            work()
        assert done
        assert caught.value.args == (number,)
        assert signal.getsignal(number) is tell
    finally:
        signal.signal(number, before)


def test_a_second_ctrl_c_does_not_wait() -> None:
    started, hold = threading.Event(), threading.Event()
    kept: list[int] = []

    def work(number: int) -> int:
        started.set()
        assert number == 0 or hold.wait(10)
        return number

    def keep(number: int) -> None:
        kept.append(number)
        signal.raise_signal(signal.SIGINT)
        # The second comes while what runs is waited for.
        threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT]).start()

    try:
        with threads(2) as workers:
            with pytest.raises(KeyboardInterrupt):
                workers.for_each(((work, (number,)) for number in range(3)), keep)
            assert kept == [0]
            hold.set()
    finally:
        hold.set()


def test_no_workers() -> None:
    for made, count in ((threads, 0), (threads, -1), (crew, 0), (crew, -1)):
        with pytest.raises(UsageError, match="at least 1"), made(count):
            pass


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other processes of a crew start with its first jobs."""
    monkeypatch.setattr(engine_workers, "PATIENCE", 0.0)


def slow_pid(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


@pytest.mark.parametrize("total", [0, 20])
def test_a_short_run_starts_no_process(total: int) -> None:
    """Nor one that takes more than a moment, of which little is left."""
    pids: set[int] = set()
    with crew(4) as workers:
        workers.for_each(((slow_pid, (0.04 * bool(total),)) for _ in range(20)), pids.add, total)
        assert workers.alone
    assert pids == {os.getpid()}


def elsewhere(here: int, how: str) -> str:
    """In the process `here` wait a little, in another fail in one of several ways."""
    if os.getpid() == here:
        time.sleep(0.02)
    elif how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif how == "data":
        raise DataError("line 7 is none")
    else:
        raise ZeroDivisionError("one of ours")
    return "done"


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    ("how", "error", "says"),
    [
        ("data", DataError, "line 7 is none"),
        ("fault", ZeroDivisionError, "one of ours"),
        ("killed", BackendUnavailable, r"a worker process has ended.*repeat the command"),
    ],
)
def test_what_happens_in_another_process_of_a_crew_is_raised_here(how: str, error: type[Exception], says: str) -> None:
    with crew(2) as workers, pytest.raises(error, match=says) as raised:
        workers.for_each(((elsewhere, (os.getpid(), how)) for _ in range(3000)), lambda done: None)
    # A fault of ours comes with the lines where it was.
    assert ("raise ZeroDivisionError" in str(raised.value.__cause__)) == (how == "fault")


ORPHANS = """
import os, time
from fairagent.evaluate import workers

def pid(seconds):
    time.sleep(seconds)
    return os.getpid()

if __name__ == "__main__":
    workers.PATIENCE = 0.0
    def told(one):
        if one != os.getpid():
            print(one, flush=True)
    with workers.crew(2) as crew:
        crew.for_each(((pid, (0.05,)) for _ in range(3000)), told)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_the_processes_of_a_crew_end_with_the_first(tmp_path: Path, number: signal.Signals) -> None:
    script = tmp_path / "orphans.py"
    script.write_text(ORPHANS, encoding="utf-8")
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout
        other = int(first.stdout.readline())
        first.send_signal(number)
    for _ in range(600):
        if not running(other):
            break
        time.sleep(0.05)
    assert not running(other)


def running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


def test_other_processes_give_the_same_results(tmp_path: Path, at_once: None) -> None:
    """Two processes, the collection and the index on the disk."""
    text = f"""\
name: elsewhere
collection: collection.yaml
settings: {{index: '{tmp_path / "index"}', depth: 20}}
systems: {{BM25: {{profile: engine}}, random: {{profile: engine, rerank: plackett-luce}}, agent: {{}}}}
topics: 6
"""
    checked = check_experiment(words.write(tmp_path, text), environ={})
    build_indexes(checked)
    with crew(2) as workers:
        assert workers.width == 4
        run_experiment(checked, tmp_path / "crew", workers, environ={})
    words.run_checked(checked, tmp_path / "threads")
    for name in ("results.csv", "results.txt", "topics.csv", "runs/agent.txt"):
        assert (tmp_path / "crew" / name).read_bytes() == (tmp_path / "threads" / name).read_bytes()
