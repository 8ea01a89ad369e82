"""Servers at random that want to hurt: whatever they do, there is a reply or an error of ours, in time and in memory.

FAIRAGENT_FUZZ_CASES is how many servers are asked (default: 60). One that fails is asked alone by its seed:
`python -m fuzz.attack SEED 1` in tests/.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .attack import MOST_SECONDS
from .hostile import KINDS, hostile_plan

CASES = int(os.environ.get("FAIRAGENT_FUZZ_CASES") or 60)
MOST_MEMORY = 1000
"""MB of the process that asks, four servers at a time, and of the servers, which are in it."""


@pytest.mark.fuzz
@pytest.mark.timeout(60 + CASES)
def test_whatever_a_server_does_it_ends_in_a_reply_or_an_error_of_ours() -> None:
    tests = Path(__file__).parents[1]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FAIRAGENT_", "OPENAI_"))}
    paths = {"PYTHONPATH": os.pathsep.join([str(tests.parent), *sys.path]), "NO_PROXY": "127.0.0.1"}
    command = [sys.executable, "-W", "error", "-m", "fuzz.attack", "0", str(CASES)]
    done = subprocess.run(command, cwd=tests, env=kept | paths, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    *cases, memory = map(json.loads, done.stdout.splitlines())
    assert len(cases) == CASES
    wrong = [case for case in cases if not case[2].isidentifier()]
    assert wrong == []
    assert [case for case in cases if case[3] > MOST_SECONDS] == []
    assert memory < MOST_MEMORY
    # Not all are refused, and not all are let in.
    assert {"reply", "FatalModelError", "TransientModelError"} <= {case[2] for case in cases}


def test_a_seed_is_a_server_and_no_kind_is_left_out() -> None:
    assert hostile_plan(7) == hostile_plan(7)
    assert {hostile_plan(seed)[0].split()[0] for seed in range(CASES + 60)} == set(KINDS)
