"""Cases 260 to 265 of docs/reliability.md: the account of exposure, its bounds, writers, and what is none."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from fairagent.errors import BackendUnavailable, DataError, NotRegular
from fairagent.search import account as accounts
from fairagent.search.account import Account, AccountBounds, Entry, Identity, open_account

BASIS = {"due": "relevance", "discount": "uniform"}
MADE = Identity("made", "one", BASIS)
WOMEN, MEN = ("gender", "female"), ("gender", "male")
COLUMNS = [WOMEN, MEN]


def entry(query: str = "q", shown: str = "m1", due: float = 0.5) -> Entry:
    """Two candidates, f1 and m1, of which one is shown alone."""
    got = float(shown == "f1")
    groups = {WOMEN: (got, due), MEN: (1 - got, 1 - due)}
    return Entry(query, {shown: 1.0}, {"f1": due, "m1": 1 - due}, groups, 0.9, calls=3, unusable=1)


class Ticks:
    """A clock that says what it is told."""

    def __init__(self, *times: float) -> None:
        self.times = list(times)

    def __call__(self) -> float:
        return self.times.pop(0) if len(self.times) > 1 else self.times[0]


@pytest.mark.parametrize(
    ("identity", "named"),
    [
        (Identity("other", "one", BASIS), "of collection 'made', not of 'other'"),
        (Identity("made", "one", {**BASIS, "due": "target"}), "kept with due relevance, not target"),
        (Identity("made", "two", BASIS, lambda ids: [False] * len(ids)), "another collection of the name 'made'"),
    ],
    ids=["name", "basis", "documents"],
)
def test_263_an_account_of_something_else_is_refused(tmp_path: Path, identity: Identity, named: str) -> None:
    Account(tmp_path / "a.sqlite", MADE).add(entry())
    with pytest.raises(DataError, match=named):
        Account(tmp_path / "a.sqlite", identity)
    assert Account(tmp_path / "a.sqlite", MADE).size().requests == 1


def test_264_what_is_no_account_is_told(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database at all " * 100)
    for opened in (lambda path: Account(path, MADE), open_account):
        with pytest.raises(DataError, match="damaged"):
            opened(tmp_path / "text")
    with sqlite3.connect(tmp_path / "other.sqlite") as other:
        other.execute("CREATE TABLE about (key TEXT, value TEXT)")
        other.execute("INSERT INTO about VALUES ('format', '9')")
    other.close()
    with pytest.raises(DataError, match="format 9"):
        open_account(tmp_path / "other.sqlite")
    (tmp_path / "link").symlink_to(tmp_path / "text")
    with pytest.raises(NotRegular, match="a link"):
        Account(tmp_path / "link", MADE)
    with pytest.raises((DataError, BackendUnavailable)):
        open_account(tmp_path / "absent")
    assert not (tmp_path / "absent").exists()


def test_265_documents_beyond_the_bound_are_folded_into_their_groups(tmp_path: Path) -> None:
    made = Account(tmp_path / "a.sqlite", MADE, bounds=AccountBounds(documents=50, requests=20))
    for number in range(100):
        # d99 has the largest debt.
        groups = {WOMEN: (1.0, 0.25)}
        made.add(Entry("q", {f"d{number}": 0.5}, {f"d{number}": 0.5 + number / 100}, groups, 1.0))
    size = made.size()
    assert (size.documents, size.folded, size.single) == (45, 55, 20)
    assert made.documents(["d99", "d54", "d55"]) == pytest.approx([0.99, 0, 0.55])
    assert made.groups([WOMEN]) == pytest.approx([-75])
    assert [one.number for one in made.requests()] == list(range(81, 101))


def test_262_and_265_a_clock_that_goes_back_makes_no_new_day_and_old_days_go(tmp_path: Path) -> None:
    day = 86400.0
    clock = Ticks(day, 2 * day, 3 * day, 0.5 * day, 3 * day + 5, 4 * day)
    made = Account(tmp_path / "a.sqlite", MADE, bounds=AccountBounds(days=2), clock=clock)
    notes = [made.add(entry()) for _ in range(6)]
    assert [len(note) for note in notes] == [0, 0, 0, 1, 0, 0]
    assert "went back by 216000 s" in notes[3][0]
    assert [one.time / day for one in made.requests()] == pytest.approx([1, 2, 3, 3, 3, 4], abs=1e-4)
    assert (made.size().days, made.size().set_back) == (2, 1)
    assert "went back 1 time" in str(made.size())


def _write(path: Path, count: int) -> None:
    made = Account(path, MADE)
    for number in range(count):
        made.add(entry(shown="mf"[number % 2] + "1"))


def test_261_two_processes_and_threads_write_one_account(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_write, args=(path, 60)) for _ in range(2)]
    for process in processes:
        process.start()
    made = Account(path, MADE)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: made.add(entry(shown="m1")), range(40)))
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert made.size().requests == 160
    # 60 times f1, 100 times m1, which were each due 80.
    assert made.groups(COLUMNS) == pytest.approx([20, -20])
    assert made.documents(["f1", "m1"]) == pytest.approx([20, -20])


def _write_and_tell(path: Path, told: Any) -> None:
    made = Account(path, MADE)
    for number in range(100_000):
        made.add(entry(shown="mf"[number % 2] + "1"))
        told.value = number + 1


def test_260_a_process_that_is_killed_leaves_whole_requests(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    context = multiprocessing.get_context("spawn")
    told = context.Value("i", 0)
    process = context.Process(target=_write_and_tell, args=(path, told))
    process.start()
    while told.value < 50 and process.is_alive():
        pass
    assert process.pid
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    made = Account(path, MADE)
    count = made.size().requests
    # The one that was being written is there as a whole, or not at all.
    assert told.value <= count <= told.value + 1
    assert made.groups(COLUMNS) == pytest.approx([count / 2 - count // 2, count // 2 - count / 2])
    assert made.documents(["f1", "m1"]) == pytest.approx(made.groups(COLUMNS))
    assert sum(len(one.groups) for one in made.requests()) == 2 * count


def test_261_a_writer_that_does_not_end_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "LONGEST_WAIT", 0.05)
    made = Account(tmp_path / "a.sqlite", MADE)
    made.add(entry())
    other = sqlite3.connect(tmp_path / "a.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(BackendUnavailable, match="locked"):
        made.add(entry())
    # Reading goes on.
    assert made.groups(COLUMNS) == pytest.approx([0.5, -0.5])
    other.execute("ROLLBACK")
    other.close()
    made.add(entry())
    assert made.size().requests == 2
