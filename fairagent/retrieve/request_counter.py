"""Counting the requests for each topic: what lets two draws for one query differ, and each be had again."""

import threading
from collections import OrderedDict

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
