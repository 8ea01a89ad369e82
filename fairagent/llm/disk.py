"""Where diskcache keeps replies: texts in the database, and nothing that could be a program."""

from __future__ import annotations

from typing import Any

import diskcache

IN_THE_ROW = 1
"""diskcache's mode of a value that stands in its row as it is."""


class TextDisk(diskcache.Disk):  # type: ignore[misc]
    """Keeps texts under texts.

    diskcache's own Disk, and its JSONDisk too, unpickle what a row says is a pickle, so that whoever can write to the
    database can run code. Here such a row is no value at all, and a row's file name is never opened nor removed.
    """

    def put(self, key: Any) -> tuple[str, bool]:
        """The key as it is stored."""
        return _text(key), True

    def get(self, key: Any, raw: Any) -> str:
        """A stored key; "" where it is none of ours."""
        return key if raw and isinstance(key, str) else ""

    def store(self, value: Any, read: Any, key: Any = None) -> tuple[int, int, None, str]:
        """The value as it is stored: size (as diskcache counts: 0 in the database), mode, no file name, the text."""
        return 0, IN_THE_ROW, None, _text(value)

    def fetch(self, mode: Any, filename: Any, value: Any, read: Any) -> str:
        """A stored value; "" where it is none of ours."""
        return value if mode == IN_THE_ROW and filename is None and isinstance(value, str) else ""

    def remove(self, file_path: Any) -> None:
        """Nothing: no row of ours names a file."""


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, found {type(value).__name__}")
    return value
