"""The clock of the engine's time."""

from __future__ import annotations

import threading

import pytest

from fairagent.retrieve import base as clock
from fairagent.retrieve.base import engine_accounts, engine_seconds, engine_time


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
    before = engine_seconds()
    others: list[float] = []

    def work() -> None:
        with engine_time():
            pass
        others.append(engine_seconds())

    with engine_time():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    # The other's reading fell between this thread's two.
    assert others == [1]
    assert engine_seconds() - before == 3
