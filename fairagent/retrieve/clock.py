"""How long the current thread has waited for its search engine, so that the loop's own time can be told apart."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter


class _Clock(threading.local):
    seconds = 0.0
    running = False


_clock = _Clock()


def engine_seconds() -> float:
    """Seconds that this thread has spent in `engine_time` so far; callers take differences."""
    return _clock.seconds


@contextmanager
def engine_time() -> Iterator[None]:
    """Counts what it encloses as the engine's time; nested uses count once."""
    if _clock.running:
        yield
        return
    _clock.running = True
    start = perf_counter()
    try:
        yield
    finally:
        _clock.running = False
        _clock.seconds += perf_counter() - start
