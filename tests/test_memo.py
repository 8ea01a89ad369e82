"""Values that are made once however many threads ask for them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from fairagent.storage.threads import Memo


def test_threads_share_what_one_makes() -> None:
    made: list[int] = []
    begun, go_on = threading.Event(), threading.Event()

    def make() -> int:
        made.append(1)
        begun.set()
        assert go_on.wait(10)
        return 7

    once = Memo()
    with ThreadPoolExecutor(3) as threads:
        futures = [threads.submit(once.get, "a", make) for _ in range(3)]
        assert begun.wait(10)
        go_on.set()
        assert [future.result(10) for future in futures] == [7, 7, 7]
    assert made == [1]
    assert once.get("b", lambda: 8) == 8


def test_a_failure_is_told_and_not_kept() -> None:
    once = Memo()

    def fail() -> int:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        once.get("a", fail)
    assert once.get("a", lambda: 3) == 3


def test_a_failure_is_told_to_all_who_wait() -> None:
    class Key:
        """Says how often it was looked for."""

        def __init__(self) -> None:
            self.looked_for = threading.Semaphore(0)

        def __hash__(self) -> int:
            self.looked_for.release()
            return 1

    key, once = Key(), Memo()

    def fail() -> int:
        # Twice by the one who makes it; the third is the one who waits.
        for _ in range(3):
            assert key.looked_for.acquire(timeout=10)
        raise ValueError("no")

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(once.get, key, fail)
        second = threads.submit(once.get, key, fail)
        for waiting in (first, second):
            with pytest.raises(ValueError, match="no"):
                waiting.result(10)
    assert once.get(key, lambda: 5) == 5


def test_nothing_can_be_a_value() -> None:
    made: list[int] = []
    once = Memo()
    for _ in range(2):
        assert once.get(("none", 1), lambda: made.append(1)) is None
    assert made == [1]


def test_the_values_are_those_that_are_made() -> None:
    once = Memo()
    assert once.values() == []
    once.get("a", lambda: 1)
    once.get("b", lambda: once.get("c", lambda: 3) + 1)  # one may need another
    with pytest.raises(ValueError, match="no"):
        once.get("d", lambda: int("no"))
    assert sorted(once.values()) == [1, 3, 4]
