"""How much time the request that this thread sends may still take, by the clock on the wall."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_end: ContextVar[float] = ContextVar("end", default=math.inf)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """All that this thread sends and hears inside the block may take so many seconds together, waits included."""
    token = _end.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _end.reset(token)


def seconds_left() -> float:
    """The seconds until the end of the block (`within`) that this thread is in, <= 0 when they are over; else inf."""
    return _end.get() - time.monotonic()
