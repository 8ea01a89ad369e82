"""How much work something is, as a number that no other process changes: the functions that it calls."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass
class Calls:
    """So many functions were called, Python's own included."""

    number: int = 0


@contextmanager
def at_most(most: int) -> Iterator[Calls]:
    """Counts the calls in the block, in this thread; AssertionError as soon as there are more, so that nothing hangs.

    A second of Python alone is some ten millions.
    """
    calls, before = Calls(), sys.getprofile()

    def count(frame: FrameType, event: str, argument: object) -> None:
        if event in ("call", "c_call"):
            calls.number += 1
            if calls.number > most:
                sys.setprofile(before)
                raise AssertionError(f"more than {most:,} calls")

    sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(before)
