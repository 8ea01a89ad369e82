"""Values that are made once however many threads need them; one BLAS thread whatever other searches begin meanwhile."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from fairagent.storage.threads import Memo, one_blas_thread


class Key:
    """Counts how often it was looked up."""

    def __init__(self) -> None:
        self.lookups = threading.Semaphore(0)

    def __hash__(self) -> int:
        self.lookups.release()
        return 1


@pytest.mark.parametrize("fails", [False, True])
def test_threads_share_what_one_makes_or_its_error(fails: bool) -> None:
    key, memo, made = Key(), Memo(), []

    def make() -> int:
        made.append(1)
        # Twice by the one who makes it; the third is the one who waits.
        for _ in range(3):
            assert key.lookups.acquire(timeout=250)
        return int("no") if fails else 7

    with ThreadPoolExecutor(2) as threads:
        for waiting in [threads.submit(memo.get, key, make) for _ in range(2)]:
            if fails:
                with pytest.raises(ValueError, match="no"):
                    waiting.result(10)
            else:
                assert waiting.result(10) == 7
    assert made == [1]
    assert memo.get(key, lambda: 5) == (5 if fails else 7)


def test_values_and_none_as_a_value() -> None:
    memo = Memo()
    assert memo.values() == []
    memo.get("b", lambda: memo.get("c", lambda: 3) + 1)  # one may need another
    with pytest.raises(ValueError, match="no"):
        memo.get("d", lambda: int("no"))
    assert sorted(memo.values()) == [3, 4]
    assert memo.get("e", lambda: None) is memo.get("e", lambda: 1) is None


@pytest.mark.parametrize("in_thread", [False, True])
def test_one_blas_thread_until_the_last_block_ends_from_any_thread(in_thread: bool) -> None:
    def threads() -> set[int]:
        return {part["num_threads"] for part in threadpool_info() if part["user_api"] == "blas"}

    def nested() -> tuple[set[int], bool]:
        before = threads()
        first, second = one_blas_thread(), one_blas_thread()
        first.__enter__()
        other = threading.Thread(target=second.__enter__)
        other.start()
        other.join()
        first.__exit__(None, None, None)
        inside = threads()
        second.__exit__(None, None, None)
        return inside, threads() == before != inside

    # This thread holds the limit of two, and with it threadpoolctl's right to set one.
    with threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(1) as pool:
        assert threads() == {2}
        assert (pool.submit(nested).result() if in_thread else nested()) == ({1}, True)
