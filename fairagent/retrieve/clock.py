"""How long the current thread has waited for its search engine, and for what of it: the rest is the loop's own time.

An account is what the time went to: `matrix` (BM25), `texts`, `terms` (those of documents), `vectors`, `fusion` (of
several lists), `server` (an engine elsewhere), `bridge` (an index of Anserini's, in Java), `engine` (any other).
"""

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter


class _Clock(threading.local):
    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.account = ""
        self.since = 0.0


_clock = _Clock()


def engine_seconds() -> float:
    """Seconds that this thread has spent in `engine_time` so far; callers take differences."""
    return sum(_clock.seconds.values())


def engine_accounts() -> dict[str, float]:
    """The same by account."""
    return dict(_clock.seconds)


@contextmanager
def engine_time(account: str = "engine") -> Iterator[None]:
    """Counts what it encloses as the engine's time, on `account`; within another one it counts here and not there."""
    outer = _clock.account
    _change(account)
    try:
        yield
    finally:
        _change(outer)


def _change(account: str) -> None:
    now = perf_counter()
    if _clock.account:
        _clock.seconds[_clock.account] += now - _clock.since
    _clock.account, _clock.since = account, now
