"""How long a call takes: what the benchmarks share."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

Way = Callable[[], object]


def milliseconds(way: Way, seconds: float) -> float:
    """The median time of a call; at least three calls."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        way()
        times.append(time.perf_counter() - start)
    return 1000 * float(np.median(times))
