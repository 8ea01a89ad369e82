"""Runs the cases of targets in a process of its own, each within 5 seconds and all within a gigabyte.

python -m fuzz.worker TARGET:FIRST:COUNT ...      the cases of these targets; prints what failed as JSON
python -m fuzz.worker TARGET NUMBER               one case, with its traceback
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

from fairagent.errors import FairAgentError
from fuzz.mutate import Whole

SECONDS = 5.0
"""Of the processor: others may be at work on it as well."""
WALL = 60.0
BYTES = 1 << 30


def peak_memory() -> int:
    """The most bytes that this process has had in memory, itself alone: rusage also knows that of who began it."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


class Hung(BaseException):
    """A case took longer than it may."""


def warm_up(name: str, folder: Path) -> None:
    """What is not damaged is fine: else a fuzzer would see errors alone. It imports what the target needs, too."""
    from fuzz.targets import TARGETS

    folder.mkdir()
    try:
        TARGETS[name](Whole(name), folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def attempt(name: str, number: int, folder: Path) -> None:
    """One case of a target; its own errors are swallowed, whatever else it raises is not."""
    from fuzz.targets import TARGETS

    random = Random(f"{name}-{number}")
    folder.mkdir()
    try:
        before = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        signal.setitimer(signal.ITIMER_REAL, WALL)
        with contextlib.suppress(FairAgentError):
            TARGETS[name](random, folder)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        shutil.rmtree(folder, ignore_errors=True)
    if (took := time.process_time() - before) > SECONDS:
        raise Hung(f"{took:.1f} s")


def _ring(number: int, frame: FrameType | None) -> None:
    raise Hung(f"longer than {SECONDS} s in {traceback.format_stack(frame)[-1].strip()}")


def _limit() -> None:
    """A gigabyte more than is taken when all is imported."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def main(arguments: list[str]) -> None:
    """Run the cases and print what failed."""
    warnings.simplefilter("error")
    for name in list(os.environ):
        if name.startswith(("FAIRAGENT_", "OPENAI_")):
            del os.environ[name]
    signal.signal(signal.SIGPROF, _ring)
    signal.signal(signal.SIGALRM, _ring)
    place = Path(tempfile.mkdtemp(prefix="fuzz-"))
    os.environ["HOME"] = os.environ["XDG_CACHE_HOME"] = str(place)
    from fuzz import targets

    try:
        os.chdir(place)
        if ":" not in arguments[0]:
            targets.prepare(arguments[0], place)
            attempt(arguments[0], int(arguments[1]), place / "case")
            print("survived")
            return
        failed: list[dict[str, Any]] = []
        for argument in arguments:
            name, first, count = argument.split(":")
            targets.prepare(name, place)
            warm_up(name, place / "case")
            if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
                _limit()
            for number in range(int(first), int(first) + int(count)):
                try:
                    attempt(name, number, place / "case")
                except KeyboardInterrupt:
                    raise
                except BaseException as error:
                    where = traceback.extract_tb(error.__traceback__)[-1]
                    said = f"{type(error).__name__}: {str(error)[:300]}"
                    failed.append({"case": f"{name} {number}", "error": said, "at": f"{where.filename}:{where.lineno}"})
        peak = peak_memory()
        print(json.dumps({"failed": failed, "peak": peak, "seconds": time.process_time()}))
    finally:
        os.chdir("/")
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])
