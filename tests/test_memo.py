from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from fairagent.memo import Memo


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
