"""Every target's cases: fairagent's own error or success, within 5 seconds of the processor and a gigabyte.

FAIRAGENT_FUZZ=TARGET:NUMBER:1 pytest tests/fuzz      one case again
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import tempfile
import time
import traceback
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from random import Random
from types import FrameType

import pytest

from fairagent.errors import FairAgentError
from fuzz import targets
from fuzz.mutate import Whole
from fuzz.targets import TARGETS, WEIGHTS

CASES = int(os.environ.get("FAIRAGENT_FUZZ_CASES") or 200)
GROUPS = 1 if CASES < 2000 else 6
"""So many processes, whose start takes longer than the cases of most targets."""
SECONDS, WALL = 5.0, 60.0
"""Of the processor, since others may be at work on it as well; and by the clock."""
BYTES = 1 << 30


class Hung(BaseException):
    """A case took longer than it may."""


def attempt(name: str, random: Random, folder: Path) -> None:
    """One case of a target; its own errors are swallowed, whatever else it raises is not."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise Hung(f"longer than {SECONDS} s in {traceback.format_stack(frame)[-1].strip()}")

    signal.signal(signal.SIGPROF, ring)
    signal.signal(signal.SIGALRM, ring)
    folder.mkdir()
    before = time.process_time()
    try:
        if not isinstance(random, Whole):
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            signal.setitimer(signal.ITIMER_REAL, WALL)
        # What is not damaged is fine: else a fuzzer would see errors alone.
        with contextlib.suppress(*() if isinstance(random, Whole) else (FairAgentError,)):
            TARGETS[name](random, folder)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        shutil.rmtree(folder, ignore_errors=True)
    if not isinstance(random, Whole) and (took := time.process_time() - before) > SECONDS:
        raise Hung(f"{took:.1f} s")


def run(group: list[str]) -> tuple[list[str], int]:
    """What failed of the cases of these targets (TARGET:FIRST:COUNT), and the most bytes that it took."""
    warnings.simplefilter("error")
    for name in list(os.environ):
        if name.startswith(("FAIRAGENT_", "OPENAI_")):
            del os.environ[name]
    failed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="fuzz-") as made:
        place = Path(made)
        os.environ["HOME"] = os.environ["XDG_CACHE_HOME"] = made
        for one in group:
            name, first, count = one.split(":")
            targets.prepare(name, place)
            # It imports what the target needs, too.
            attempt(name, Whole(name), place / "case")
            if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
                pages = int(Path("/proc/self/statm").read_text().split()[0])
                limit = pages * resource.getpagesize() + BYTES
                resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            for number in range(int(first), int(first) + int(count)):
                try:
                    attempt(name, Random(f"{name}-{number}"), place / "case")
                except KeyboardInterrupt:
                    raise
                except BaseException as error:
                    failed.append(f"{name}:{number}:1 {''.join(traceback.format_exception(error))[-1000:]}")
    # This process alone: rusage also knows that of who began it.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return failed, int(status.partition("VmHWM:")[2].split()[0]) * 1024


def groups() -> list[list[str]]:
    """The targets, with their numbers of cases, in groups of about the same size."""
    if one := os.environ.get("FAIRAGENT_FUZZ"):
        return [[one]]
    whole = sum(WEIGHTS.values())
    found: list[list[str]] = [[] for _ in range(GROUPS)]
    for place, name in enumerate(sorted(TARGETS, key=lambda name: -WEIGHTS[name])):
        found[place % GROUPS].append(f"{name}:0:{max(1, round(CASES * WEIGHTS[name] / whole))}")
    return found


@pytest.mark.fuzz
@pytest.mark.timeout(120 + CASES)
@pytest.mark.parametrize("group", groups(), ids=lambda group: group[0].partition(":")[0])
def test_own_error_or_success(group: list[str]) -> None:
    if any(one.startswith("collection:") for one in group):
        # Some of its collections are cut into passages.
        pytest.importorskip("llama_index.core")
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        failed, most = process.submit(run, group).result()
    assert failed == []
    assert most < BYTES
