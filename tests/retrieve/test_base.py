"""Ids and strings on disk, and the clock of the engine's time."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairagent.errors import DataError
from fairagent.retrieve import base as clock
from fairagent.retrieve.base import engine_accounts, engine_seconds, engine_time
from fairagent.retrieve.catalog import IdTable, Strings, encode_id

IDS = ["b", "a", "ab", "日本", "é", "e\u0301", "🙂", "0", "00", "x" * 255, " ", "a\x01"]


def table(folder, ids):
    IdTable.save(folder, [encode_id(id) for id in ids])
    return IdTable.load(folder)


def test_ids_that_are_not_there_are_minus_1(tmp_path):
    ids = table(tmp_path, IDS)
    others = ["", "B", "a\0", "b\0\0", "ac", "x" * 254, "x" * 256, "zzz", "\U0010ffff", "\ud800", "\0"]
    numbers = ids.numbers(["a", *others, "b"])
    assert numbers.dtype == np.intp
    assert numbers.tolist() == [1, *[-1] * len(others), 0]


def test_what_is_no_table_of_ids(tmp_path):
    with pytest.raises(DataError, match=r"^2 document ids occur twice, 'a' first$"):
        table(tmp_path, ["b", "a", "c", "a", "b"])
    for id in ("", "a\0b", "é" * 128, "\udcff"):
        with pytest.raises(DataError, match="a document id is 1 to 255 bytes of UTF-8 without NUL"):
            encode_id(id)
    assert not list(tmp_path.iterdir())


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8), unique=True))
@settings(max_examples=30)
def test_every_table_finds_its_ids(tmp_path_factory, names):
    ids = table(tmp_path_factory.mktemp("ids"), names)
    assert ids.numbers(names).tolist() == list(range(len(names)))
    assert ids.numbers([name + "\0" for name in names]).tolist() == [-1] * len(names)


@pytest.mark.parametrize("strings", [[], ["", "", ""], ["a", "", "日本 🙂", "x" * 70_000, "\0"]])
def test_strings_round_trip(tmp_path, strings):
    Strings.save(tmp_path, "words", (string.encode() for string in strings))
    loaded = Strings(tmp_path, "words")
    assert [loaded[number] for number in range(len(loaded))] == strings


@pytest.fixture
def ticks(monkeypatch):
    """A clock that goes on by 1 second each time it is read."""
    readings: list[float] = []

    def read() -> float:
        readings.append(float(len(readings)))
        return readings[-1]

    monkeypatch.setattr(clock, "perf_counter", read)
    return readings


def test_within_another_account_time_counts_there_alone(ticks):
    before, accounts = engine_seconds(), engine_accounts()
    with engine_time("bridge"):
        with engine_time("lucene"), engine_time("lucene"):
            ticks.extend([0.0] * 10)
        ticks.extend([0.0] * 5)
    # Six readings, a second each, ten seconds inside and five outside of the inner account.
    assert engine_seconds() - before == 5 + 10 + 5
    spent = {name: seconds - accounts.get(name, 0) for name, seconds in engine_accounts().items()}
    assert {name: seconds for name, seconds in spent.items() if seconds} == {"lucene": 1 + 11 + 1, "bridge": 1 + 6}


def test_each_thread_has_its_own(ticks):
    before, others = engine_seconds(), list[float]()

    def work() -> None:
        with engine_time():
            pass
        others.append(engine_seconds())

    with engine_time():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    # The other's reading fell between this thread's two.
    assert (others, engine_seconds() - before) == ([1], 3)
