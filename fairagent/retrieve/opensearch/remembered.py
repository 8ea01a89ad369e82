"""Values that a server told, kept until others need the room. Threads may share them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Remembered(Generic[T]):
    """The values of the keys used last, at most `most` of them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[str, T] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, values: Mapping[str, T]) -> None:
        """Remember these, and forget the oldest beyond `most`."""
        with self._lock:
            self._kept.update(values)
            for key in values:
                self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def known(self, keys: Iterable[str]) -> dict[str, T]:
        """Those of the keys that are remembered, with their values."""
        with self._lock:
            found = {key: self._kept[key] for key in keys if key in self._kept}
            for key in found:
                self._kept.move_to_end(key)
        return found

    def all(self, keys: Sequence[str], ask: Callable[[list[str]], Mapping[str, T]], batch: int) -> dict[str, T]:
        """The values of all keys; those that are not remembered are asked for, `batch` at a time."""
        found = self.known(keys)
        unknown = [key for key in dict.fromkeys(keys) if key not in found]
        for start in range(0, len(unknown), batch):
            told = ask(unknown[start : start + batch])
            self.keep(told)
            found.update(told)
        return found
