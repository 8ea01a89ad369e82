"""How long a call or a process takes: what the benchmarks share."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

Way = Callable[[], object]
FAIRAGENT = (sys.executable, "-m", "fairagent")


class Cost(NamedTuple):
    """Wall seconds of a process, CPU seconds of it and those it started, the most MB of memory that one of them had."""

    wall: float
    cpu: float
    memory: float


def milliseconds(way: Way, seconds: float) -> float:
    """The median time of a call; at least three calls."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        way()
        times.append(time.perf_counter() - start)
    return 1000 * float(np.median(times))


def cost(arguments: Sequence[str], environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> Cost:
    """What a command costs; nothing that it prints is shown unless it fails, which ends the benchmark."""
    start = time.perf_counter()
    with subprocess.Popen(
        arguments,
        cwd=cwd,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **(environ or {})},
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"exit code {process.returncode}: {' '.join(arguments)}")
    return Cost(time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def megabytes(folder: Path) -> float:
    """The size of the files in a folder (of those beside it that begin with its name too), in MB."""
    beside = folder.parent.glob(f"{folder.name}*")
    files = (path for place in beside for path in (place.rglob("*") if place.is_dir() else [place]))
    return sum(path.stat().st_size for path in files if path.is_file()) / 1e6
