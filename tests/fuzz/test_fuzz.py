"""Every target's cases: fairagent's own error or success, within 5 seconds of the processor and a gigabyte."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.targets import TARGETS, WEIGHTS
from fuzz.worker import BYTES

CASES = int(os.environ.get("FAIRAGENT_FUZZ_CASES") or 200)
GROUPS = 1 if CASES < 2000 else 6
"""So many processes, whose start takes longer than the cases of most targets."""
TESTS = Path(__file__).parents[1]


def groups() -> list[list[str]]:
    """The targets, with their numbers of cases, in groups of about the same size."""
    whole = sum(WEIGHTS.values())
    found: list[list[str]] = [[] for _ in range(GROUPS)]
    taken = [0] * GROUPS
    for name in sorted(TARGETS, key=lambda name: -WEIGHTS[name]):
        place = taken.index(min(taken))
        taken[place] += WEIGHTS[name]
        found[place].append(f"{name}:0:{max(1, round(CASES * WEIGHTS[name] / whole))}")
    return found


@pytest.mark.fuzz
@pytest.mark.timeout(120 + CASES)
@pytest.mark.parametrize("group", groups(), ids=lambda group: group[0].partition(":")[0])
def test_own_error_or_success(group: list[str]) -> None:
    if any(one.startswith("collection:") for one in group):
        # Some of its collections are cut into passages.
        pytest.importorskip("llama_index.core")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FAIRAGENT_", "OPENAI_"))}
    path = os.pathsep.join([str(TESTS.parent), str(TESTS), kept.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "fuzz.worker", *group],
        env={**kept, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120 + CASES,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["failed"] == [], "one of them again: cd tests && python -m fuzz.worker TARGET NUMBER"
    assert told["peak"] < BYTES
