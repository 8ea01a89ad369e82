"""Cases 260 to 264: the account of exposure, its sums by hand, its writers, and what is none."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import waited

from fairagent.errors import BackendUnavailable, DataError, NotRegular
from fairagent.search import account as accounts
from fairagent.search.account import Account, Entry

BASIS = {"due": "relevance", "discount": "uniform"}
WOMEN, MEN = ("gender", "female"), ("gender", "male")
COLUMNS = [WOMEN, MEN]


def made(path: Path) -> Account:
    return Account(path, "made", BASIS)


def entry(shown: str = "m1", due: float = 0.5) -> Entry:
    """Two candidates, f1 and m1, of which one is shown alone."""
    got = float(shown == "f1")
    return Entry({shown: 1.0}, {"f1": due, "m1": 1 - due}, {WOMEN: (got, due), MEN: (1 - got, 1 - due)})


def test_sums_by_hand_are_there_again(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        account = made(tmp_path / "a.sqlite")
    finally:
        os.umask(before)
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
    assert account.documents(["f1", "x"]).tolist() == [0, 0]
    assert account.shares(COLUMNS)[0].tolist() == [0, 0]
    for shown in ("m1", "m1", "f1"):
        account.add(entry(shown))
    for there in (account, made(tmp_path / "a.sqlite"), Account(tmp_path / "a.sqlite")):
        # f1 was due 1.5 and got 1; m1 the reverse.
        assert there.documents(["f1", "m1", "x"]) == pytest.approx([0.5, -0.5, 0])
        assert there.groups(COLUMNS) == pytest.approx([0.5, -0.5])
        received, deserved = there.shares(COLUMNS)
        assert received == pytest.approx([1 / 3, 2 / 3])
        assert deserved == pytest.approx([1 / 2, 1 / 2])
        assert (there.requests, there.columns, there.collection, there.basis) == (3, tuple(COLUMNS), "made", BASIS)
        assert "3 requests, 2 documents" in str(there)
    many = [f"d{number}" for number in range(1200)]
    account.add(Entry({"d0": 1.0}, dict.fromkeys(many, 1 / 1200), {}))
    assert account.documents(many)[1:] == pytest.approx(np.full(1199, 1 / 1200))


def test_263_and_264_an_account_of_something_else_or_what_is_none_is_refused(tmp_path: Path) -> None:
    made(tmp_path / "a.sqlite").add(entry())
    for name, basis, named in (
        ("other", BASIS, "of collection 'made', not of 'other'"),
        ("made", {**BASIS, "due": "target"}, "kept with due relevance, not target"),
    ):
        with pytest.raises(DataError, match=named):
            Account(tmp_path / "a.sqlite", name, basis)
    assert made(tmp_path / "a.sqlite").requests == 1
    (tmp_path / "text").write_text("no database at all " * 100)
    for name, statements in (
        ("earlier", ("CREATE TABLE about (key TEXT, value TEXT)", "INSERT INTO about VALUES ('format', '1')")),
        ("strange", ("CREATE TABLE people (name TEXT)",)),
    ):
        changed(tmp_path / name, *statements)
    for name, said in (("text", "damaged"), ("earlier", "format 1"), ("strange", "no account")):
        before = (tmp_path / name).read_bytes()
        for opened in (made, Account):
            with pytest.raises(DataError, match=said):
                opened(tmp_path / name)
        assert (tmp_path / name).read_bytes() == before
    (tmp_path / "link").symlink_to(tmp_path / "text")
    with pytest.raises(NotRegular, match="a link"):
        made(tmp_path / "link")
    with pytest.raises(BackendUnavailable):
        Account(tmp_path / "absent")
    assert not (tmp_path / "absent").exists()


def changed(path: Path, *statements: str) -> int:
    """How many rows the last statement has changed, by whoever else writes."""
    with closing(sqlite3.connect(path)) as other, other:
        return [other.execute(one).rowcount for one in statements][-1]


@pytest.mark.parametrize(
    ("damage", "row"),
    [
        ("UPDATE sums SET received = received + 1 WHERE label = 'female'", "gender: female"),
        ("UPDATE sums SET deserved = 'much' WHERE label = 'male'", "gender: male"),
        ("UPDATE sums SET received = -1.0 WHERE label = 'f1'", "documents: f1"),
        ("UPDATE sums SET label = CAST(x'ff' AS TEXT) WHERE label = 'f1'", "documents: \ufffd"),
        ("UPDATE sums SET checksum = checksum + 1 WHERE dimension = '' AND label = ''", "documents: all"),
        ("DELETE FROM sums WHERE label = 'female'", "gender: all"),
        ("DELETE FROM sums WHERE dimension = 'gender' AND label = ''", "gender: all"),
        ("UPDATE about SET value = '[' WHERE key = 'basis'", "collection and basis"),
    ],
)
def test_264_damage_is_told_with_its_row(tmp_path: Path, damage: str, row: str) -> None:
    account = made(tmp_path / "a.sqlite")
    for shown in ("m1", "f1", "m1"):
        account.add(entry(shown))
    assert changed(tmp_path / "a.sqlite", damage) == 1
    for opened in (made, Account):
        with pytest.raises(DataError, match="damaged") as caught:
            opened(tmp_path / "a.sqlite")
        assert row in str(caught.value)


def test_261_a_writer_that_does_not_end_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "LONGEST_WAIT", 0.05)
    account = made(tmp_path / "a.sqlite")
    account.add(entry())
    other = sqlite3.connect(tmp_path / "a.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(BackendUnavailable, match="locked"):
        account.add(entry())
    # Reading goes on.
    assert account.groups(COLUMNS) == pytest.approx([0.5, -0.5])
    other.execute("ROLLBACK")
    other.close()
    account.add(entry())
    assert account.requests == 2


def _write(path: Path, count: int, written: Any = None) -> None:
    account = made(path)
    for number in range(count):
        account.add(entry("mf"[number % 2] + "1"))
        if written:
            written.value = number + 1


SPAWN = multiprocessing.get_context("spawn")


def test_261_two_processes_and_threads_write_one_account(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    processes = [SPAWN.Process(target=_write, args=(path, 60)) for _ in range(2)]
    for process in processes:
        process.start()
    account = made(path)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: account.add(entry("m1")), range(40)))
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert account.requests == 160
    # 60 times f1, 100 times m1, which were each due 80.
    assert account.groups(COLUMNS) == pytest.approx([20, -20])
    assert account.documents(["f1", "m1"]) == pytest.approx([20, -20])


def test_260_a_process_that_is_killed_leaves_whole_requests(tmp_path: Path) -> None:
    path, written = tmp_path / "a.sqlite", SPAWN.Value("i", 0)
    process = SPAWN.Process(target=_write, args=(path, 100_000, written))
    process.start()
    waited(lambda: written.value >= 50)
    process.kill()
    process.join()
    account = made(path)
    count = account.requests
    # The one that was being written is there as a whole, or not at all.
    assert written.value <= count <= written.value + 1
    assert account.groups(COLUMNS) == pytest.approx([count / 2 - count // 2, count // 2 - count / 2])
    assert account.documents(["f1", "m1"]) == pytest.approx(account.groups(COLUMNS))
