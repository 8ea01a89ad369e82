"""Searches that are done, kept for a while so that what they found can be put into another order at once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from fairagent.extend import Query, SearchOptions, SearchRun, UsageError
from fairagent.studio.calls import Choices

KEPT = 32
"""Searches; each has about a thousand candidates with their groups."""


class NotFinished(UsageError):
    """There is no such search any more, or it was never made."""


Key = tuple[Query, Choices, SearchOptions]
"""Of the options what the engine looks at: `where`."""


class FinishedRuns:
    """The last `most` searches by query, settings and what they were kept to; threads may share it."""

    def __init__(self, most: int = KEPT) -> None:
        self._most = most
        self._runs = OrderedDict[Key, SearchRun]()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._runs)

    def keep(self, key: Key, run: SearchRun) -> SearchRun:
        """Keep a search, and drop that which was not looked at for longest where there are too many."""
        with self._lock:
            self._runs[key] = run
            self._runs.move_to_end(key)
            if len(self._runs) > self._most:
                self._runs.popitem(last=False)
        return run

    def get(self, key: Key, make: Callable[[], SearchRun]) -> SearchRun:
        """A search that was kept, or else what `make` gives, kept from now on."""
        with self._lock:
            run = self._runs.get(key)
            if run is not None:
                self._runs.move_to_end(key)
        return self.keep(key, make()) if run is None else run
