"""How long the current thread has waited for its search engine, and for what of it: the rest is the loop's own time.

An account is what the time went to: `matrix` (BM25), `texts`, `terms` (those of documents), `vectors`, `fusion` (of
several lists), `server` (an engine elsewhere), `bridge` (an index of Anserini's, in Java), `engine` (any other).

Counting the requests for each topic: what lets two draws for one query differ, and each be had again.
"""

import threading
from collections import OrderedDict, defaultdict
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


KEPT = 100_000
"""Topics whose counts are kept: a server may see any number of different queries."""


class RequestCounter:
    """The number of each request among those for its topic, from 0; threads may share it.

    A topic that `kept` others have been asked for since is forgotten, and counted from 0 again.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._next: OrderedDict[str, int] = OrderedDict()
        self._lock = threading.Lock()

    def number(self, topic: str) -> int:
        """That of this request.

        >>> requests = RequestCounter()
        >>> [requests.number(topic) for topic in ("a", "b", "a", "a")]
        [0, 0, 1, 2]
        """
        with self._lock:
            number = self._next.pop(topic, 0)
            self._next[topic] = number + 1
            if len(self._next) > self._kept:
                self._next.popitem(last=False)
            return number
