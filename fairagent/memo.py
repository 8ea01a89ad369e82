"""Thread-safe memo: compute each key once, other threads wait for the value."""

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any


class Memo:
    """Values by key; of several threads that ask for one key, one computes and the others share its value or error."""

    def __init__(self) -> None:
        self._made: dict[Hashable, Future[Any]] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The value of `key`, computed by `make` if nobody has; a failure is not kept for those who come later."""
        with self._lock:
            future = self._made.get(key)
            mine = future is None
            if future is None:
                future = self._made[key] = Future()
        if mine:
            try:
                future.set_result(make())
            except BaseException as error:
                with self._lock:
                    del self._made[key]
                future.set_exception(error)
        return future.result()

    def values(self) -> list[Any]:
        """All values that were computed."""
        with self._lock:
            return [future.result() for future in self._made.values() if future.done() and not future.exception()]
