"""Work in threads: values made once, one BLAS thread, and work that is ended from outside, wherever it waits."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from browser import waited
from llm.hostile import LEFT, HostileServer
from threadpoolctl import threadpool_info, threadpool_limits

from fairagent.errors import ModelError
from fairagent.llm.budget import Budget, in_threads
from fairagent.llm.cache import ReplyCache
from fairagent.llm.openai import OpenAIModel
from fairagent.llm.request import ModelRequest
from fairagent.llm.server import Breaker
from fairagent.settings import BudgetSettings, ModelSettings
from fairagent.storage.files import one_at_a_time
from fairagent.storage.threads import (
    Cancellation,
    Cancelled,
    Memo,
    abandonable,
    cancelled_by,
    check_cancelled,
    ended_by,
    one_blas_thread,
    progress,
    result_of,
    sleep,
)


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
    memo.get("b", lambda: memo.get("c", lambda: 3) + 1)  # one may need another
    assert sorted(memo.values()) == [3, 4, 5 if fails else 7]


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


LONG = 60


class Work:
    """Work in a thread of its own, that can be cancelled."""

    def __init__(self, act: Callable[[], Any]) -> None:
        self.cancellation = Cancellation()
        self._pool = ThreadPoolExecutor(1)
        self._future = self._pool.submit(self._run, act)

    def _run(self, act: Callable[[], Any]) -> Any:
        with cancelled_by(self.cancellation):
            return act()

    def end(self) -> None:
        """Cancel it; it has to end by that."""
        self.cancellation.cancel()
        with pytest.raises(Cancelled):
            self._future.result(LONG)
        self._pool.shutdown()

    def result(self) -> Any:
        return self._future.result(LONG)


def test_what_is_cancelled_before_it_begins_does_not_begin_and_nothing_else_is_cancelled() -> None:
    cancellation, called = Cancellation(), []
    cancellation.cancel()
    cancellation.cancel()
    for waiting in (check_cancelled, lambda: sleep(LONG), lambda: progress("working").__enter__()):
        with cancelled_by(cancellation), pytest.raises(Cancelled):
            waiting()
    with cancelled_by(cancellation), pytest.raises(Cancelled), ended_by(lambda: called.append(1)):
        called.append(2)
    assert called == []
    # No handler of failures takes it for one.
    assert not issubclass(Cancelled, Exception)
    check_cancelled()
    with ended_by(lambda: None), progress("working"):
        assert abandonable(lambda: threading.current_thread(), print) is threading.current_thread()


@pytest.mark.parametrize("where", ["pause", "future", "lock", "process", "turn", "budget", "threads", "left behind"])
def test_a_wait_ends(where: str, tmp_path: Any) -> None:
    begun, held = threading.Event(), threading.Event()

    def noted(wait: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: (begun.set(), wait())

    cache, memo, breaker, budget = ReplyCache(tmp_path), Memo(), Breaker(), Budget(BudgetSettings(tokens=10))

    def alone() -> None:
        with cache.alone("key", LONG):
            raise AssertionError("two at once")

    def another_process() -> None:
        with one_at_a_time(tmp_path / "taken", LONG):
            raise AssertionError("two at once")

    waits: dict[str, Callable[[], Any]] = {
        "pause": lambda: sleep(LONG),
        "future": lambda: memo.get("key", held.wait),
        "lock": alone,
        "process": another_process,
        "turn": lambda: breaker.run(held.wait),
        "budget": lambda: budget.reserve(10, 0.0),
        "threads": lambda: in_threads(lambda _: sleep(LONG), range(3), 3, "tests"),
        "left behind": lambda: abandonable(held.wait, lambda _: None),
    }
    # Another object of a lock is as another process's.
    taken = one_at_a_time(tmp_path / "taken", LONG)
    with ThreadPoolExecutor(2) as pool, taken, cache.alone("key", LONG), budget.reserve(10, 0.0):
        # Somebody else has the turn, and makes the value.
        others = [pool.submit(breaker.run, held.wait), pool.submit(memo.get, "key", held.wait)]
        try:
            work = Work(noted(waits[where]))
            assert begun.wait(LONG)
            work.end()
        finally:
            held.set()
        assert [other.result(LONG) for other in others] == [True, True]
    cache.close()


def test_a_value_that_somebody_cancelled_was_making_is_made_by_the_next() -> None:
    memo, begun = Memo(), threading.Event()
    first = Work(lambda: memo.get("key", lambda: (begun.set(), sleep(LONG))))
    assert begun.wait(LONG)
    second = Work(lambda: memo.get("key", lambda: "made"))
    first.end()
    assert second.result() == "made"


def test_what_is_left_behind_is_put_away_when_it_comes() -> None:
    held, put_away = threading.Event(), list[str]()
    work = Work(lambda: abandonable(lambda: (held.wait(LONG), "late")[1], put_away.append))
    work.end()
    held.set()
    waited(lambda: put_away == ["late"])


def test_an_error_is_that_of_the_work() -> None:
    def wrong() -> None:
        raise TimeoutError("of the work itself")

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(wrong)
        for run in (lambda: abandonable(wrong, print), lambda: Memo().get("k", wrong), lambda: result_of(done)):
            with pytest.raises(TimeoutError, match="of the work itself"):
                Work(run).result()


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n"


def model_at(url: str, seconds: float) -> OpenAIModel:
    settings = ModelSettings(name="tiny", base_url=url, timeout=seconds, deadline=seconds, attempts=1)
    return OpenAIModel(settings, {"OPENAI_API_KEY": "not-a-real-key"})


@pytest.mark.parametrize(
    ("scheme", "sends"),
    [("https", b""), ("http", b""), ("http", HEAD[:20]), ("http", HEAD), ("http", HEAD + b"{" * 900)],
    ids=["in the handshake", "before the answer", "in its head", "in its body", "near its end"],
)
def test_a_request_ends_wherever_it_is_with_its_connection(scheme: str, sends: bytes) -> None:
    with HostileServer(lambda: [sends, LEFT]) as server:
        model = model_at(f"{scheme}{server.url.removeprefix('http')}", 3000)
        work = Work(lambda: model.complete(ModelRequest((("user", "hello"),))))
        waited(lambda: server.asked if scheme == "https" else server.sent == len(sends) and server.requests)
        work.end()
        waited(lambda: server.ended)
        model.close()


def test_a_connection_that_is_never_taken_is_left_behind() -> None:
    """The listener's queue is full, so that the system goes on trying to connect."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        fillers = [socket.socket() for _ in range(3)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
        model = model_at(f"http://127.0.0.1:{full.getsockname()[1]}/v1", 5)
        begun = threading.Event()
        work = Work(lambda: (begun.set(), model.complete(ModelRequest((("user", "hello"),)))))
        assert begun.wait(LONG)
        try:
            work.end()
        except ModelError:
            pytest.skip("this system takes connections beyond the queue")
        for filler in fillers:
            filler.close()
        model.close()
